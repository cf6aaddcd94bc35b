"""Requests on a device: engine, scheduler, cache, model, grammars and sockets."""
