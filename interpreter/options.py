"""What a run is given beside the program's arguments: a backend, a seed, sampling, a journal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

from ..lang.errors import InvalidArgument
from ..lang.ops import Sampling
from ..lang.options import refuse_unknown, seed_of
from ..lang.options import sampling as check_sampling
from .backend import Backend
from .defaults import checked_backend
from .seeds import fresh_seed, row_seed

if TYPE_CHECKING:
    from .journal import Journal

SAMPLING_NAMES = tuple(field.name for field in fields(Sampling))
OPTION_NAMES = ("backend", "seed", "journal", *SAMPLING_NAMES)


@dataclass(frozen=True, slots=True)
class Options:
    """How programs run: where, from which seed, and the sampling that gens inherit.

    `journal` is one that is open, or the path of one to open for each run.
    """

    backend: Backend | None = None
    seed: int | None = None
    sampling: Sampling = Sampling()
    journal: Journal | str | os.PathLike[str] | None = None

    def updated(self, given: Mapping[str, object]) -> Options:
        """Give these options with some replaced; None leaves one as it is.

        Raises: InvalidArgument for an unknown name or a value without meaning.
        """
        refuse_unknown(given, OPTION_NAMES)
        new = {name: value for name, value in given.items() if value is not None}
        backend = checked_backend(new.pop("backend")) if "backend" in new else self.backend
        seed = seed_of(new.pop("seed", self.seed))
        journal = checked_journal(new.pop("journal", self.journal))
        checked = check_sampling(**cast("dict[str, Any]", new))
        return Options(backend, seed, _over(checked, self.sampling), journal)

    def with_seed(self) -> Options:
        """Give these options with a seed: a fresh random one if none is set."""
        if self.seed is not None:
            return self
        return replace(self, seed=fresh_seed())

    def for_row(self, row: int) -> Options:
        """Give the options of one row of a batch, which needs a seed.

        A run with `result.seed` repeats any row.
        """
        assert self.seed is not None
        return replace(self, seed=row_seed(self.seed, row))


def checked_journal(value: object) -> Journal | str | os.PathLike[str] | None:
    """Check an optional journal. Raises: InvalidArgument."""
    if value is None:
        return None
    from .journal import Journal

    if isinstance(value, Journal | str | os.PathLike):
        return cast("Journal | str | os.PathLike[str] | None", value)
    raise InvalidArgument(f"journal={value!r}: pass the path of a file, or plait.journal(path)")


def _over(new: Sampling, old: Sampling) -> Sampling:
    given = {name: getattr(new, name) for name in SAMPLING_NAMES}
    return replace(old, **{name: value for name, value in given.items() if value is not None})
