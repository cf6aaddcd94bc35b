"""Programs meet a backend: graphs are executed, values come back."""
