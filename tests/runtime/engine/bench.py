"""Engines on the scripted model, and what came out of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.model.scripted import Script, scripted_model
from plait.runtime.sequence import Int32, Output, Request, SamplingParams, ScoreRequest

GREEDY = SamplingParams(temperature=0.0)
WILD = SamplingParams(temperature=1.5, max_tokens=24, ignore_eos=True)


def ids(text: str) -> Int32:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


def ask(name: str, prompt: str, sampling: SamplingParams = GREEDY, seed: int = 0) -> Request:
    return Request(name, ids(prompt), sampling, seed=seed)


def echo(text: str) -> str:
    return f"you said {text[-12:]}"


def make(
    script: Script = echo,
    *,
    block_size: int = 16,
    num_blocks: int = 512,
    max_context: int = 2048,
    width: int | None = None,
    budget: int = 512,
    max_running: int = 64,
    max_waiting: int = 1000,
    is_caching: bool = True,
) -> Engine:
    model = scripted_model(
        script,
        block_size=block_size,
        num_blocks=num_blocks,
        max_context=max_context,
        logits_width=width,
    )
    config = EngineConfig(
        token_budget=budget,
        max_running=max_running,
        max_waiting=max_waiting,
        is_prefix_caching=is_caching,
    )
    return Engine(model, config)


@dataclass
class Result:
    """All outputs of one request."""

    text: str
    last: Output


def drain(engine: Engine, *requests: Request | ScoreRequest) -> dict[str, Result]:
    """Add all at once, run until idle, check after each step."""
    for request in requests:
        engine.add(request)
    outputs: list[Output] = []
    while engine.has_work:
        outputs += engine.step()
        engine.check()
    return collect(outputs)


def collect(outputs: Iterable[Output]) -> dict[str, Result]:
    texts: dict[str, str] = {}
    results: dict[str, Result] = {}
    for output in outputs:
        assert output.request_id not in results, "an output after the terminal one"
        texts[output.request_id] = texts.get(output.request_id, "") + output.text
        if output.finish_reason is not None:
            results[output.request_id] = Result(texts[output.request_id], output)
    return results


def check_idle(engine: Engine) -> None:
    """Check that nothing runs, waits or is held."""
    engine.check()
    stats = engine.stats()
    assert (stats.num_running, stats.num_waiting) == (0, 0)
    assert (stats.num_held_blocks, stats.num_locked_blocks) == (0, 0)


def answers(results: dict[str, Result]) -> dict[str, object]:
    """What must not depend on memory, cache, chunks or neighbours."""
    return {
        name: (r.text, r.last.token_ids, r.last.finish_reason, r.last.logprobs)
        for name, r in results.items()
    }
