"""Weights and tokenizers from files, and the store where pulled models live."""
