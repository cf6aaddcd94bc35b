"""Tests across processes; a package, so that they share their scripts."""
