"""Programs against an HTTP server that takes text, not tokens."""
