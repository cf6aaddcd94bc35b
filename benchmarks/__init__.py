"""Measurements: ratios in one interleaved run, a summary line at the end, `--check` for goals."""
