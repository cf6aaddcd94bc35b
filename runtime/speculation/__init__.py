"""Guesses of what comes next, from the text itself; the forward pass says which are right."""
