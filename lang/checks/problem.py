"""A mistake in a program: what it is, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..graph import Where

if TYPE_CHECKING:
    from .subject import Subject

Severity: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake that `check` found in a program.

    An "error" fails when it is reached; a "warning" runs, and most likely is not what the
    author meant. `rule` is the rule's name in the table, `node` the graph's node if it is at one.
    """

    rule: str
    severity: Severity
    where: Where | None
    message: str
    remedy: str
    node: int | None = None

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}: "
        return f"{place}{self.severity}: {self.message}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: a Problem without the rule's name and severity."""

    where: Where | None
    message: str
    remedy: str
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of the table: what is looked for, how bad it is, and who looks."""

    name: str
    severity: Severity
    find: Callable[[Subject], Iterator[Finding]]

    @property
    def summary(self) -> str:
        """Give what the rule looks for, in a sentence."""
        return (self.find.__doc__ or "").strip().splitlines()[0]

    def problems(self, subject: Subject) -> Iterator[Problem]:
        """Give what the rule finds in a program."""
        for found in self.find(subject):
            yield Problem(
                self.name, self.severity, found.where, found.message, found.remedy, found.node
            )
