"""The default model, as benchmarks open it."""

from __future__ import annotations

from plait.interpreter.backends.local import LocalBackend
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.interface import Model
from plait.runtime.model.registry import load_model


def load_default_model(config: EngineConfig) -> Model:
    """Load the default model. Raises: ModelLoadError unless it was pulled."""
    return load_model(Store(default_home()).resolve(DEFAULT_MODEL), config)


def open_default_backend(config: EngineConfig) -> LocalBackend:
    """Load the default model into an engine of its own."""
    return LocalBackend(load_default_model(config), config)
