"""The backends: local, remote, embedded and scripted."""
