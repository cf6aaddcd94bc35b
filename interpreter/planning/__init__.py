"""What a run would cost, found without a model: the same prompts, with outputs made up."""
