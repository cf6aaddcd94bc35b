"""What grammars cost a fresh process, with an empty disk cache, a filled one, and none.

Each round starts three processes. Each reads the default model's tokens, then takes some
everyday constraints one after the other: a compile, the first mask, and up to 100 masks along a
text drawn at random, the same in every process. Times are of the thread (CPU), medians.

Goal of `--check`: a filled cache halves the time to the first mask of a process.

Run it: python -m benchmarks.grammar_cache [--rounds 5] [--check]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.disk import DiskCache
from plait.runtime.grammar.disk_vocabulary import open_vocabulary
from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec
from plait.runtime.grammar.vocabulary import Vocabulary
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.tokenizer_source import tokenizer_source
from plait.runtime.model.tokenizer import TextTokenizer
from plait.serving import collect_rarely

ROOT = Path(__file__).resolve().parents[1]
NUM_MASKS = 100
GOAL = 2.0
KINDS = ("none", "empty", "filled")
PHASES = ("vocabulary", "first mask", "all first masks", "100 masks each")
NAME = {"type": "string", "minLength": 1, "maxLength": 20}
SCHEMAS = [
    {"type": "object", "properties": {"name": NAME, "age": {"type": "integer", "minimum": 0}},
     "required": ["name", "age"]},
    {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 2},
    {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 2},
    {"type": "array", "items": {"type": "string", "pattern": "^[A-Z][a-z]+ [A-Z][a-z]+$"}},
]  # fmt: skip
REGEXES = [
    r".{1,200}",
    r"[A-Z][^.!?]*[.!?]",
    r"(\w+ ){3,10}\w+",
    r"[\w.+-]+@[\w-]+(\.[\w-]+)+",
    r"(- [^\n]+\n){1,5}",
    r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w!?]{8,40}",
]
SPECS = [
    *(GrammarSpec("json_schema", (json.dumps(schema),)) for schema in SCHEMAS),
    *(GrammarSpec("regex", (pattern,)) for pattern in REGEXES),
]


def measure(folder: Path | None) -> list[float]:
    """Give the milliseconds of each phase in this process; the last has the one before it."""
    tokenizer = TextTokenizer(tokenizer_source(Store(default_home()).resolve(DEFAULT_MODEL)))
    tokens = (tokenizer.token_bytes, tokenizer.eos_token_ids, tokenizer.vocab_size)
    collect_rarely()
    start_s = time.thread_time()
    if folder is None:
        vocabulary, kept, disk = Vocabulary(*tokens), None, None
    else:
        disk = DiskCache(folder)
        vocabulary, kept = open_vocabulary(*tokens, disk)
    stamps_s = [time.thread_time() - start_s]
    compiler = GrammarCompiler(vocabulary, 10.0, 1_000_000, kept)
    firsts_s: list[float] = []
    alls_s: list[float] = []
    for spec in SPECS:
        begin_s = time.thread_time()
        grammar = compiler.compile(spec)
        grammar.matcher().fill_bitmask(np.zeros(vocabulary.mask_len, np.int32))
        firsts_s.append(time.thread_time() - begin_s)
        alls_s.append(firsts_s[-1] + _draw(grammar, vocabulary))
    if disk is not None:
        disk.flush()
    stamps_s += [stamps_s[0] + firsts_s[0], sum(firsts_s), sum(alls_s)]
    return [stamp * 1e3 for stamp in stamps_s]


def _draw(grammar: CompiledGrammar, vocabulary: Vocabulary) -> float:
    """Follow a random text; give the seconds that its masks took."""
    rng, row = random.Random(1), np.zeros(vocabulary.mask_len, np.int32)
    matcher, total_s = grammar.matcher(), 0.0
    for _ in range(NUM_MASKS):
        begin_s = time.thread_time()
        matcher.fill_bitmask(row)
        total_s += time.thread_time() - begin_s
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        ids = [i for i in np.flatnonzero(bits).tolist() if i not in vocabulary.eos_ids]
        if not ids:
            break
        matcher.accept(rng.choice(ids))
    return total_s


def child(folder: Path | None) -> list[float]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.grammar_cache", "--child", str(folder or "")]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: list[float] = json.loads(run.stdout)
    return found


def run(num_rounds: int) -> dict[str, list[float]]:
    """Give the median milliseconds of each phase by the kind of cache, in turn."""
    times: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for _ in range(num_rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for kind in KINDS:
                times[kind].append(child(None if kind == "none" else folder))
    return {
        kind: [statistics.median(column) for column in zip(*rows, strict=True)]
        for kind, rows in times.items()
    }


def main() -> int:
    """Print the table, then one line; with --check, 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        print(json.dumps(measure(Path(args.child) if args.child else None)))
        return 0
    medians = run(args.rounds)
    print(f"{'cache, ms':10} " + " ".join(f"{phase:>15}" for phase in PHASES))
    for kind, row in medians.items():
        print(f"{kind:10} " + " ".join(f"{value:15.1f}" for value in row))
    gain = medians["none"][1] / medians["filled"][1]
    print(f"grammar_cache: first mask {gain:.1f}x sooner (goal {GOAL:g}x), {args.rounds} rounds")
    return int(args.check and gain < GOAL)


if __name__ == "__main__":
    sys.exit(main())
