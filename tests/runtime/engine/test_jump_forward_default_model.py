"""On the default model: jump-forward writes the same JSON in fewer passes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plait.runtime.config import EngineConfig
from plait.runtime.engine import Engine
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.interface import Model, Runner
from plait.runtime.model.native import NativeRunner
from plait.runtime.model.registry import load_model
from plait.runtime.model.runner import TorchRunner
from plait.runtime.sequence import Request, SamplingParams

from .bench import Result
from .cases import finish

pytestmark = pytest.mark.slow

TICKETS = Path(__file__).parents[3] / "examples" / "data" / "tickets.jsonl"
SAMPLING = SamplingParams(temperature=0.0, max_tokens=80)
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
        "amount": {"type": "number"},
        "topic": {"enum": ["delivery", "damage", "refund", "question"]},
    },
    "required": ["name", "order", "amount", "topic"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model() -> Model:
    """Load the default model once."""
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"needs `plait pull {DEFAULT_MODEL}`")
    return load_model(stored.path, EngineConfig(kv_cache_tokens=64))


def compiled(model: Model) -> CompiledGrammar:
    tokenizer, width = model.tokenizer, model.runner.limits.logits_width
    vocabulary = Vocabulary(tokenizer.token_bytes, tokenizer.eos_token_ids, width)
    compiler = GrammarCompiler(vocabulary, 10.0, 100_000)
    return compiler.compile(GrammarSpec("json_schema", (json.dumps(SCHEMA),)))


def fresh_engine(model: Model, **options: object) -> Engine:
    """Give an engine with a pool of its own on the weights of `model`."""
    config = EngineConfig(kv_cache_tokens=4096, max_context=1024, **options)  # type: ignore[arg-type]
    runner: Runner
    if isinstance(model.runner, NativeRunner):
        runner = NativeRunner(model.runner._weights, model.runner._library, config)
    else:
        assert isinstance(model.runner, TorchRunner)
        runner = TorchRunner(model.runner._model, config)
    return Engine(replace(model, runner=runner), config)


def extract(
    model: Model, grammar: CompiledGrammar, **options: object
) -> tuple[Engine, list[Result]]:
    """Read some letters on a fresh engine, and give what it wrote of each."""
    engine = fresh_engine(model, max_draft_tokens=0, **options)
    letters = [json.loads(line)["text"] for line in TICKETS.read_text().splitlines()[:2]]
    for i, letter in enumerate(letters):
        prompt = model.tokenizer.encode(f"{letter}\nName, order, amount and topic as JSON:\n")
        engine.add(Request(f"r{i}", np.array(prompt, np.int32), SAMPLING), grammar)
    results = finish(engine)
    return engine, [results[f"r{i}"] for i in range(len(letters))]


def test_the_same_json_comes_in_fewer_passes(model: Model) -> None:
    grammar = compiled(model)
    jumping, on = extract(model, grammar)
    plain, off = extract(model, grammar, jump_forward=False)
    _, narrow = extract(model, grammar, token_budget=9)
    for results in (on, narrow):
        assert [r.text for r in results] == [r.text for r in off]
        assert [r.last.token_ids for r in results] == [r.last.token_ids for r in off]
    for result in on:
        record = json.loads(result.text)
        assert list(record) == ["name", "order", "amount", "topic"]
        usage = result.last.usage
        assert usage.forced_tokens >= 0.24 * usage.output_tokens
    assert jumping.stats().num_steps < 0.8 * plain.stats().num_steps
