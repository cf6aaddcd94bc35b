"""Checks and speeds of the GPU's kernels; `gpu_check` and `gpu_tune` run them."""
