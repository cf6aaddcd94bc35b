"""A stream's events as text on a terminal: one variable at a time, each under its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TextIO

from ..interpreter.events import Event


@dataclass(slots=True)
class _Voice:
    """One gen or select that speaks: what it is called, and how far it is printed."""

    label: str
    text: str = ""
    num_printed: int = 0
    is_named: bool = False
    is_over: bool = False


class StreamDisplay:
    """Print `name: text` as it grows, or `branch/name: text` in a fork's branch.

    One variable has the floor until it is over; what parallel branches say meanwhile waits
    for its turn, in the order in which they began to speak. So lines never mix.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._voices: dict[int, _Voice] = {}  # node -> its voice, in order of speaking
        self._failures: list[str] = []

    @property
    def failures(self) -> tuple[str, ...]:
        """Give the messages of nodes that failed by themselves, not for another's sake."""
        return tuple(self._failures)

    def show(self, event: Event) -> None:
        """Take one event, and print what may be printed now."""
        match event.kind:
            case "delta":
                self._voice(event).text += event.text
            case "end":
                voice = self._voice(event)
                voice.text = event.value or ""  # a select has no deltas: its end has it all
                voice.is_over = True
            case "error":
                if event.node in self._voices:
                    self._voices[event.node].is_over = True
                if event.error is not None and event.error.origin == event.node:
                    self._failures.append(str(event.error))
            case "start":
                return
        self._print()

    def close(self) -> None:
        """Print what waits: no event comes after it. Idempotent."""
        for voice in self._voices.values():
            voice.is_over = True
        self._print()

    def _voice(self, event: Event) -> _Voice:
        name = event.variable or "gen"
        label = f"{event.branch}/{name}" if event.branch else name
        return self._voices.setdefault(event.node, _Voice(label))

    def _print(self) -> None:
        while self._voices:
            node, first = next(iter(self._voices.items()))
            label = "" if first.is_named else f"{first.label}: "
            self._out.write(label + first.text[first.num_printed :])
            first.is_named, first.num_printed = True, len(first.text)
            if not first.is_over:
                break
            self._out.write("\n")
            del self._voices[node]
        self._out.flush()
