"""Dates and times: the schemas of their texts, and the texts read back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Final, TypeAlias

Moment: TypeAlias = date | time  # a datetime is a date

_MONTH_DAY = "((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
_FOURS = "(0[48]|[2468][048]|[13579][26])"
_DATE = f"(?!0000)([0-9]{{4}}-{_MONTH_DAY}|([0-9]{{2}}{_FOURS}|{_FOURS}00)-02-29)"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
# JSON Schema's own formats of times ask for seconds and a time zone, which few texts have.
TIME_SCHEMAS: Final[Mapping[object, Mapping[str, object]]] = {
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "pattern": f"^{_CLOCK}$"},
    datetime: {"type": "string", "pattern": f"^{_DATE}T{_CLOCK}{_ZONE}$"},
}


def read_time(hint: type, text: str) -> Moment:
    """Give the date, time or datetime of a text in ISO 8601. Raises: ValueError."""
    if hint is time:
        return time.fromisoformat(text)
    return datetime.fromisoformat(text) if hint is datetime else date.fromisoformat(text)
