"""Programs to read, run and change; each is run by a test."""
