"""Masks are made while a device computes: before anything looks at the logits of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import torch

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.grammar.spec import Bitmask
from plait.runtime.model.interface import Runner
from plait.runtime.model.scripted import scripted_model
from plait.runtime.sequence import Batch, ScoredText, ScoreRequest

from .bench import ask, drain, echo, ids
from .grammars import Digits


class Watched(torch.Tensor):
    """Logits that note it when they are looked at."""

    events: list[str]

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        for each in args:
            if isinstance(each, Watched):
                each.events.append("read")
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class WatchedRunner:
    """A runner whose logits are watched."""

    largest_ids: Sequence[int] = ()

    def __init__(self, runner: Runner, log: list[str]) -> None:
        self.limits = runner.limits
        self._runner = runner
        self._log = log

    def run(self, batch: Batch) -> torch.Tensor:
        logits = torch.as_tensor(self._runner.run(batch)).as_subclass(Watched)
        logits.events = self._log
        self._log.append("run")
        return logits


class Noting(Digits):
    """A grammar that notes each mask."""

    def __init__(self, count: int, log: list[str]) -> None:
        super().__init__(count)
        self.log = log

    def matcher(self) -> Digits:
        return Noting(self.count, self.log)

    def fill_bitmask(self, row: Bitmask) -> None:
        self.log.append("mask")
        super().fill_bitmask(row)


def test_all_masks_of_a_step_are_made_before_its_logits_are_looked_at() -> None:
    log: list[str] = []
    model = scripted_model(echo)
    model = replace(model, runner=WatchedRunner(model.runner, log))
    engine = Engine(model, EngineConfig())
    engine.add(ScoreRequest("scored", (ScoredText(ids("yes"), 1), ScoredText(ids("no"), 1))))
    for name in ("first", "second"):
        engine.add(ask(name, "hello"), Noting(3, log))
    outputs = engine.step()
    assert log[:4] == ["run", "mask", "mask", "read"]
    assert [output.request_id for output in outputs if output.finish_reason] == ["scored"]
    results = drain(engine)
    assert [results[name].last.finish_reason for name in ("first", "second")] == ["stop", "stop"]
    assert all(pair != ("read", "mask") for pair in pairwise(log))
