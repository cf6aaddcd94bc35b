"""The engine's thread, the ZeroMQ worker and its client link."""
