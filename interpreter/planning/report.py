"""A plan: what a program would ask a model for, and what that would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...lang.graph import Break, Where

CallKind: TypeAlias = Literal["gen", "select", "score"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One gen, select or score of one row.

    `output_tokens` are the most that it may write; where nothing bounds it (`is_bounded` is
    False), a guess.
    """

    row: int
    node: int
    where: Where | None
    kind: CallKind
    name: str  # as it is written: gen("x")
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    is_bounded: bool


@dataclass(frozen=True, slots=True)
class PlannedFailure:
    """A node that would fail, whatever the model says."""

    row: int
    where: Where | None
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run, or a batch, would cost. Nothing was asked of a model.

    Prompts are exact in tokens, with outputs as long as they may be. `peak_kv_tokens` are those
    of all requests that run at the same time, each shared prefix once; `all_kv_tokens` those
    of the whole run: a pool of this size evicts nothing. Where `is_complete` is False, a
    run goes on after the last of the `breaks`, as a value decides.
    """

    program: str
    num_rows: int
    calls: tuple[PlannedCall, ...]
    failures: tuple[PlannedFailure, ...]
    breaks: tuple[Break, ...]
    is_complete: bool
    peak_kv_tokens: int
    all_kv_tokens: int

    @property
    def num_gens(self) -> int:
        """Count the gens."""
        return sum(call.kind == "gen" for call in self.calls)

    @property
    def num_selects(self) -> int:
        """Count the selects."""
        return sum(call.kind == "select" for call in self.calls)

    @property
    def prompt_tokens(self) -> int:
        """Count the tokens of all prompts; of a select, those of all its choices' texts."""
        return sum(call.prompt_tokens for call in self.calls)

    @property
    def cached_tokens(self) -> int:
        """Count the prompt tokens that a cache without limits would have."""
        return sum(call.cached_tokens for call in self.calls)

    @property
    def hit_rate(self) -> float:
        """Give the share of the prompt tokens that are cached, 0 where there are none."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def output_tokens(self) -> int:
        """Count the tokens that the gens may write."""
        return sum(call.output_tokens for call in self.calls)

    @property
    def num_unbounded(self) -> int:
        """Count the gens that nothing but the context bounds."""
        return sum(not call.is_bounded for call in self.calls)

    def __str__(self) -> str:
        rows = "1 row" if self.num_rows == 1 else f"{self.num_rows:,} rows"
        lines = [
            f"{self.program}: {rows}",
            f"calls          {len(self.calls):>10,}  {self.num_gens:,} gens, "
            f"{self.num_selects:,} selects",
            f"prompt tokens  {self.prompt_tokens:>10,}",
            f"cached tokens  {self.cached_tokens:>10,}  {self.hit_rate:.1%} of the prompt tokens",
            f"output tokens  {self.output_tokens:>10,}  at most{self._guessed()}",
            f"peak KV tokens {self.peak_kv_tokens:>10,}  {self.all_kv_tokens:,} to keep all",
        ]
        for failure in self.failures:
            lines.append(f"fails at {failure.where}, row {failure.row}: {failure.message}")
        for found in self.breaks:
            lines.append(f"break at {found.where}: {found.name}: {found.reason}")
        if not self.is_complete:
            lines.append("incomplete: what follows the last break depends on a real value")
        return "\n".join(lines)

    def _guessed(self) -> str:
        if not self.num_unbounded:
            return ""
        return f", but for {self.num_unbounded:,} gens without max_tokens, which are guessed"
