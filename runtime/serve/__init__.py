"""A service on a socket: the worker that serves it, and the link of its clients."""
