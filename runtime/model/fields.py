"""Typed look-ups in a JSON object whose content is not trusted."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ModelLoadError


class Fields:
    """The keys of a config; null counts as a missing key.

    Look-ups raise ModelLoadError, naming the key, for a value of another type and for a
    missing key without default.
    """

    def __init__(self, values: Mapping[str, object], where: str = "") -> None:
        self._values = values
        self._where = where

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __bool__(self) -> bool:
        return bool(self._values)

    def integer(self, key: str, default: int | None = None) -> int:
        """Give a count, 1 or more."""
        value = self._get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise self._wrong(key, value, "an integer of 1 or more")

    def whole(self, key: str, default: int) -> int:
        """Give a count, 0 or more."""
        value = self._get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise self._wrong(key, value, "an integer of 0 or more")

    def optional(self, key: str) -> int | None:
        """Give a count, None if the key is missing or null."""
        return None if self._values.get(key) is None else self.integer(key)

    def number(self, key: str, default: float | None = None) -> float:
        """Give a number over 0."""
        value = self._get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return float(value)
        raise self._wrong(key, value, "a number over 0")

    def flag(self, key: str) -> bool:
        """Give a flag, False if the key is missing."""
        value = self._get(key, False)
        if isinstance(value, bool):
            return value
        raise self._wrong(key, value, "true or false")

    def text(self, key: str, default: str) -> str:
        """Give a text."""
        value = self._get(key, default)
        if isinstance(value, str):
            return value
        raise self._wrong(key, value, "a text")

    def texts(self, key: str) -> tuple[str, ...]:
        """Give a list of texts, empty if the key is missing."""
        value = self._get(key, ())
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise self._wrong(key, value, "a list of texts")

    def section(self, key: str) -> Fields:
        """Give an object, empty if the key is missing."""
        value = self._get(key, {})
        if isinstance(value, Mapping):
            return Fields(value, f"{self._where}{key}.")
        raise self._wrong(key, value, "an object")

    def merged(self, other: Fields) -> Fields:
        """Give these keys and those of `other`, which win."""
        return Fields({**self._values, **other._values}, other._where if other else self._where)

    def _get(self, key: str, default: object) -> object:
        value = self._values.get(key)
        if value is None and default is None:
            raise ModelLoadError(f"config: {self._where}{key} is missing; the config is damaged")
        return default if value is None else value

    def _wrong(self, key: str, value: object, wanted: str) -> ModelLoadError:
        return ModelLoadError(f"config: {self._where}{key} is {value!r}; it must be {wanted}")
