"""JSON Schema as a grammar: each keyword exact, validated at the end, or refused by name."""
