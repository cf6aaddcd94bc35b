"""On the default model: drafts change no token, greedy or drawn, with and without a schema."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from plait.runtime.engine import Engine
from plait.runtime.grammar.spec import CompiledGrammar
from plait.runtime.model.interface import Model
from plait.runtime.model.native import NativeRunner
from plait.runtime.sequence import Request, SamplingParams
from plait.runtime.speculation import planner

from .cases import finish
from .test_jump_forward_default_model import SCHEMA, TICKETS, compiled, fresh_engine, model

pytestmark = pytest.mark.slow
__all__ = ["model"]  # the fixture

GREEDY = SamplingParams(temperature=0.0, max_tokens=60)


def answers(
    model: Model,
    requests: list[tuple[Request, CompiledGrammar | None]],
    **options: object,
) -> tuple[list[tuple[str, tuple[int, ...]]], Engine]:
    """Give what a fresh engine writes."""
    engine = fresh_engine(model, **options)
    for request, grammar in requests:
        engine.add(request, grammar)
    results = finish(engine)
    found = [results[request.id] for request, _ in requests]
    return [(result.text, result.last.token_ids) for result in found], engine


def letters(model: Model, task: str, sampling: SamplingParams, num: int) -> list[Request]:
    texts = [json.loads(line)["text"] for line in TICKETS.read_text().splitlines()[:num]]
    prompts = [model.tokenizer.encode(f"{text}\n{task}\n") for text in texts]
    return [
        Request(f"r{i}", np.array(prompt, np.int32), sampling, seed=i)
        for i, prompt in enumerate(prompts)
    ]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("num", [1, 3])
def test_drafts_change_no_token(
    model: Model, temperature: float, num: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(model.runner, NativeRunner):
        pytest.skip("needs the compiled kernels")
    sampling = replace(GREEDY, temperature=temperature)
    grammar = compiled(model)
    requests: list[tuple[Request, CompiledGrammar | None]] = [
        (request, None) for request in letters(model, "The same letter again:", sampling, num)
    ]
    shot = json.dumps({"name": "Eva Stone", "order": "AB-1200", "amount": 15, "topic": "damage"})
    task = f"For example: {shot}\nThe letter as JSON:"
    for request in letters(model, task, sampling, num):
        requests.append((replace(request, id=f"{request.id} as JSON"), grammar))
    assert set(SCHEMA["required"]) == set(json.loads(shot))  # type: ignore[call-overload]
    expected, plain = answers(model, requests, max_draft_tokens=0)
    found, drafting = answers(model, requests)
    assert found == expected
    assert drafting.stats().num_steps <= plain.stats().num_steps
    assert drafting.stats().num_drafted_tokens > 0 == plain.stats().num_drafted_tokens
    monkeypatch.setattr(planner, "_num_paying", lambda offers, *_: len(offers))
    found, drafting = answers(model, requests)
    assert found == expected, "with all that can be guessed"
    assert drafting.stats().num_accepted_tokens > 5
    assert answers(model, requests, block_size=1, token_budget=9)[0] == expected
