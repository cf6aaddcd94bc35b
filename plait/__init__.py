"""plait: a prompt-programming language in Python, and the runtime that executes it."""
