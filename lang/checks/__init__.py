"""What authors get wrong, found before a model is asked: one function a rule, one table."""
