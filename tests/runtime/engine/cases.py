"""Random grammars, and requests under them, for what may not change their answers."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace

from plait.runtime.engine import Engine
from plait.runtime.grammar.spec import CompiledGrammar, GrammarKind, GrammarSpec
from plait.runtime.sequence import Output, Request, SamplingParams

from .bench import Result, ask, check_idle, collect
from .words import COMPILER


def compiled(kind: GrammarKind, source: str) -> CompiledGrammar:
    return COMPILER.compile(GrammarSpec(kind, (source,)))


def compiled_for(
    engine: Engine, request: Request, grammar: GrammarSpec | None
) -> CompiledGrammar | None:
    """Compile a request's grammar as the engine's thread does."""
    return None if grammar is None else COMPILER.compile(engine.gate.constraint(request, grammar))


def random_regex(rng: random.Random) -> str:
    """Give a regex of literal parts and of choices."""
    free = ["[ab]{1,3}", "[0-9]{1,2}", "(?:true|false)", "(?:yes|no)?", "[a-c ]*?", "(?:, [ab])*"]
    fixed = [r'\{"name":', r'"id": "', "true", "--ab", ", ", "é", r'":\[\["', "123", "name", "🙏"]
    return "".join(rng.choice(free if rng.random() < 0.4 else fixed) for _ in range(8))


def random_schema(rng: random.Random, depth: int = 2) -> dict[str, object]:
    """Give a schema of objects, lists and plain values."""
    kinds = ["integer", "text", "word", "boolean", "const"] + ["object", "array"] * (depth > 0)
    match rng.choice(kinds if depth < 2 else ["object"]):
        case "object":
            names = rng.sample(["name", "id", "yes", "ab", "true", "a b"], rng.randint(1, 4))
            properties = {name: random_schema(rng, depth - 1) for name in names}
            required = [name for name in names if rng.random() < 0.8]
            return {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            }
        case "array":
            items = random_schema(rng, depth - 1)
            return {"type": "array", "items": items, "minItems": rng.randint(0, 2), "maxItems": 3}
        case "integer":
            return {"type": "integer", "minimum": 0, "maximum": rng.choice([9, 1234])}
        case "text":
            return {"type": "string", "maxLength": rng.randint(0, 9)}
        case "word":
            return {"enum": rng.sample(["yes", "no", "name", "na", "true", "abc", 12, None], 3)}
        case "boolean":
            return {"type": "boolean"}
        case _:
            return {"const": rng.choice(["name", {"id": 12}, ["ab", "abc"], True])}


def random_grammar(seed: int) -> GrammarSpec:
    rng = random.Random(seed)
    if seed % 2:
        return GrammarSpec("regex", (random_regex(rng),))
    return GrammarSpec("json_schema", (json.dumps(random_schema(rng)),))


def random_request(name: str, rng: random.Random) -> Request:
    sampling = SamplingParams(
        temperature=rng.choice([0.0, 1.0, 2.0]),
        max_tokens=rng.choice([None, None, rng.randint(0, 40), 60]),
        min_tokens=rng.choice([0, 0, 12]),
        stop=rng.choice([(), (), (), ("me",), ('"id', "ue"), (', "', "-"), ("é",)]),
        heal=rng.random() < 0.5,
    )
    prompt = rng.choice(["say ", "answer:", "na"]) * rng.randint(1, 9)
    return replace(ask(name, prompt, sampling, seed=rng.randint(0, 99)), namespace="")


@dataclass(frozen=True)
class Case:
    """Some requests, each with its grammar."""

    requests: list[tuple[Request, GrammarSpec | None]]

    @classmethod
    def of(cls, seed: int, count: int = 4) -> Case:
        rng = random.Random(f"case {seed}")
        grammar = random_grammar(seed)
        return cls(
            [
                (random_request(f"r{i}", rng), None if rng.random() < 0.1 else grammar)
                for i in range(count)
            ]
        )

    def run(self, engine: Engine) -> dict[str, tuple[object, ...]]:
        for request, grammar in self.requests:
            limited = request
            if grammar is None and request.sampling.max_tokens is None:
                limited = replace(request, sampling=replace(request.sampling, max_tokens=30))
            engine.add(limited, compiled_for(engine, limited, grammar))
        return {name: answer(result) for name, result in finish(engine).items()}


def finish(engine: Engine) -> dict[str, Result]:
    """Step until all is answered, check after each step, and that nothing is held then."""
    outputs: list[Output] = []
    while engine.has_work:
        outputs += engine.step()
        engine.check()
    check_idle(engine)
    return collect(outputs)


def answer(result: Result) -> tuple[object, ...]:
    """What may not depend on jumping, memory or chunks."""
    last = result.last
    usage = last.usage
    assert usage.forced_tokens <= usage.output_tokens
    assert usage.cached_tokens <= usage.prompt_tokens
    return (
        result.text,
        last.token_ids,
        last.is_healed,
        last.tail,
        last.finish_reason,
        last.stop_reason,
        last.error_code,
        usage.prompt_tokens,
        usage.output_tokens,
    )
