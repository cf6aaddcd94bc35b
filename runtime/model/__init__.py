"""Models: configuration, layers, the runner that executes a batch, the tokenizer."""
