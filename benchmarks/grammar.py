"""JSON Schema as a grammar, against llguidance: the same schemas, tokenizer and instances.

Real schemas with valid and invalid instances (the 200 of `jsonschemabench`), written
compactly and tokenised by the default model. For each schema both engines take turns at going
first. An instance is accepted where each of its tokens is in the mask and the text may end;
what plait says is only checked is validated with `jsonschema`, as after a gen. "cold" is the
first time over the instances of a schema, "warm" the second. plait runs twice: with
properties as listed, as by default, and in any order, since JSON has none. Times are of the
thread (CPU), with garbage collected as rarely as in plait's own worker.

Goals of `--check`: 96 % of the schemas right; first mask p50 3 ms, p95 40 ms, none over 1 s;
warm mask 4 us; cold mask mean 30 us, p99 800 us, worst 20 ms; accept 2 us when warm; 24 % of
the tokens of valid instances forced.

Run it: pip install llguidance; python -m benchmarks.grammar [--data FOLDER] [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from jsonschema.validators import validator_for

from benchmarks.grammar_engines import Engine, LLGuidance, Plait, Schema
from plait.runtime.errors import RequestError
from plait.runtime.grammar.explain import explain
from plait.runtime.grammar.spec import GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.tokenizer_source import tokenizer_source
from plait.runtime.model.tokenizer import TextTokenizer
from plait.serving import collect_rarely

FIRST_MS, COLD_US = (3.0, 40.0, 1000.0), (30.0, 800.0, 20_000.0)
WARM_US, ACCEPT_US, SHARE_RIGHT, SHARE_FORCED = 4.0, 2.0, 0.96, 0.24


@dataclass
class Tally:
    """What one engine did. Times in seconds."""

    verdicts: Counter[str] = field(default_factory=Counter)
    first: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    accept: list[float] = field(default_factory=list)
    num_tokens: int = 0
    num_forced: int = 0

    def quantile(self, times: list[float], share: float) -> float:
        """Give a quantile in microseconds."""
        return float(np.quantile(times, share)) * 1e6 if times else 0.0


class Bench:
    """Runs engines over schemas and their instances."""

    def __init__(self, tokenizer: TextTokenizer, vocabulary: Vocabulary) -> None:
        self._tokenizer = tokenizer
        self._row = np.zeros(vocabulary.mask_len, np.int32)

    def schema(self, engine: Engine, tally: Tally, case: Schema, checked: bool) -> None:
        """Judge all instances of one schema."""
        start = time.thread_time()
        try:
            grammar = engine.compile(case["schema"])
            engine.session(grammar).fill(self._row)
        except Exception as e:  # whatever a library raises for what it refuses
            tally.verdicts["refused"] += 1
            print(f"  {type(engine).__name__} refuses {case['name']}: {str(e)[:100]}")
            return
        tally.first.append(time.thread_time() - start)
        wrong = 0
        for test in case["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False, separators=(",", ":"))
            ids = self._tokenizer.encode(text)
            accepts = [self._walk(engine, grammar, ids, tally, t) for t in (tally.cold, tally.warm)]
            if accepts[0] and checked:
                accepts[0] = _is_valid(case["schema"], test["data"])
            if accepts[0] != test["valid"]:
                wrong += 1
                tally.verdicts["wrong accepts" if accepts[0] else "wrong rejects"] += 1
            if test["valid"]:
                self._forced(engine, grammar, ids, tally)
        tally.verdicts["schemas right"] += not wrong

    def _walk(
        self, engine: Engine, grammar: object, ids: list[int], tally: Tally, times: list[float]
    ) -> bool:
        session, row, clock = engine.session(grammar), self._row, time.thread_time
        for token_id in ids:
            start = clock()
            try:
                session.fill(row)
            except Exception as e:
                tally.verdicts["failed masks"] += 1
                print(f"  {type(engine).__name__} fails: {str(e)[:100]}")
                return False
            times.append(clock() - start)
            if not row[token_id >> 5] >> (token_id & 31) & 1:
                return False
            start = clock()
            session.accept(token_id)
            if times is tally.warm:
                tally.accept.append(clock() - start)
        return session.is_accepting

    def _forced(self, engine: Engine, grammar: object, ids: list[int], tally: Tally) -> None:
        session = engine.session(grammar)
        place, last = 0, None
        while place < len(ids):
            found = session.forced(last)
            if found != tuple(ids[place : place + len(found)]):
                found = ()
            tally.num_forced += len(found)
            for token_id in found or ids[place : place + 1]:
                if not session.accept(token_id):
                    return
                place, last = place + 1, token_id
        tally.num_tokens += len(ids)


def _is_valid(schema: Schema, value: Any) -> bool:
    kind = validator_for(schema, jsonschema.Draft202012Validator)
    return bool(kind(schema).is_valid(value))


def _has_checked(spec: GrammarSpec) -> bool:
    try:
        return bool(explain(spec).checked)
    except RequestError:  # too large to look at as a whole
        return True


def find_data(name: str) -> Path:
    """Find `shared/data` beside the repository, or in a folder above it."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "shared" / "data" / name).is_dir():
            return folder / "shared" / "data" / name
    sys.exit(f"no folder shared/data/{name} here or above; give its place with --data")


def run(data: Path, num_schemas: int) -> dict[str, Tally]:
    """Run all engines over the schemas, interleaved."""
    model = Store(default_home()).resolve(DEFAULT_MODEL)
    tokenizer = TextTokenizer(tokenizer_source(model))
    vocabulary = Vocabulary(tokenizer.token_bytes, tokenizer.eos_token_ids, tokenizer.vocab_size)
    listed = Plait(vocabulary, tokenizer, is_any_order=False)
    engines: dict[str, Engine] = {
        "plait": listed,
        "plait, any order": Plait(vocabulary, tokenizer, is_any_order=True),
        "llguidance": LLGuidance(model / "tokenizer.json", vocabulary),
    }
    tallies = {name: Tally() for name in engines}
    bench = Bench(tokenizer, vocabulary)
    collect_rarely()
    lines = (data / "schemas.jsonl").read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(filter(None, lines[:num_schemas])):
        case = json.loads(line)
        is_checked = _has_checked(listed.spec(case["schema"]))
        for name in list(engines)[:: 1 if number % 2 else -1]:
            is_ours = name.startswith("plait")
            bench.schema(engines[name], tallies[name], case, is_checked and is_ours)
    return tallies


def report(tallies: dict[str, Tally], num_schemas: int) -> list[str]:
    """Print the tables; give what missed its goal."""
    print("\nengine              right  refused  failed  wrong accepts  wrong rejects  forced")
    for name, t in tallies.items():
        v, forced = t.verdicts, t.num_forced / max(1, t.num_tokens)
        print(
            f"{name:18} {v['schemas right'] / num_schemas:6.1%} {v['refused']:8} "
            f"{v['failed masks']:7} {v['wrong accepts']:14} {v['wrong rejects']:14} {forced:7.1%}"
        )
    print("\nengine             what         mean us      p50      p99     worst")
    for name, t in tallies.items():
        for what in ("first", "cold", "warm", "accept"):
            times = getattr(t, what)
            row = [float(np.mean(times)) * 1e6, *(t.quantile(times, q) for q in (0.5, 0.99, 1.0))]
            print(f"{name:18} {what:9} " + " ".join(f"{value:9.1f}" for value in row))
    ours, best = tallies["plait"], tallies["plait, any order"]
    first = [ours.quantile(ours.first, q) / 1e3 for q in (0.5, 0.95, 1.0)]
    cold = [float(np.mean(ours.cold)) * 1e6, *(ours.quantile(ours.cold, q) for q in (0.99, 1.0))]
    figures = [
        ("schemas right", -best.verdicts["schemas right"] / num_schemas, -SHARE_RIGHT),
        *zip(("first p50 ms", "first p95 ms", "first worst ms"), first, FIRST_MS, strict=True),
        *zip(("cold mean us", "cold p99 us", "cold worst us"), cold, COLD_US, strict=True),
        ("warm us", float(np.mean(ours.warm)) * 1e6, WARM_US),
        ("accept us", float(np.mean(ours.accept)) * 1e6, ACCEPT_US),
        ("forced", -ours.num_forced / max(1, ours.num_tokens), -SHARE_FORCED),
    ]
    missed = [figure for figure in figures if figure[1] > figure[2]]
    return [f"{name} {abs(got):.3g} (goal {abs(goal):g})" for name, got, goal in missed]


def main() -> int:
    """Print the tables and their summary; give the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=None, help="folder of schemas.jsonl")
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    args = parser.parse_args()
    missed = report(run(args.data or find_data("jsonschemabench"), args.schemas), args.schemas)
    print(f"grammar: {'all goals met' if not missed else 'missed: ' + '; '.join(missed)}")
    return int(args.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
