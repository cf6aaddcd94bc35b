"""Grammar-constrained decoding: automata over bytes, token masks, matchers."""
