"""Resident memory of a runtime process with the default model, and what takes it.

A child process imports what a worker imports. Then `plait serve` runs with a KV pool of 4,096
tokens, is looked at once the model is loaded, and again after it has served: texts that fill the
pool, sampled and greedy, JSON of a schema, and choices that are scored. Goal of `--check`: after
serving at most 350 MB are resident (VmRSS, files that are mapped included). Linux only.

Run it: python -m benchmarks.memory [--check]
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import plait
from plait import State, assistant, function, gen, select, user
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.weights import GGUF_NAME

ROOT = Path(__file__).resolve().parents[1]
GOAL_MB = 350
KV_TOKENS = 4096
FIELDS = ("VmRSS", "RssAnon", "RssFile", "VmHWM")
IMPORTS = """
import plait.interpreter.service, plait.runtime.loop, plait.runtime.model.registry
import plait.runtime.serve.worker, plait.serving
print(open("/proc/self/status").read())
"""
TOPICS = (
    *("rivers", "glass", "the moon", "bread", "trains", "bees", "paper", "salt"),
    *("clocks", "rain", "bridges", "tea", "maps", "wool", "lamps", "ships"),
)


@dataclass
class Place:
    """What the schema asks for."""

    name: str
    country: str
    inhabitants: int


@function
def essay(s: State, topic: str, temperature: float) -> None:
    """Write a long text."""
    s += user(f"Write a long essay about {topic}.")
    s += assistant(gen("text", max_tokens=230, min_tokens=220, temperature=temperature, top_p=0.9))


@function
def place(s: State, topic: str) -> None:
    """Fill in a schema, then choose."""
    s += user(f"Name a town that is known for {topic}, as JSON.")
    s += assistant(gen("place", Place, max_tokens=80, temperature=0))
    s += user("Is it a large town?")
    s += assistant(select("answer", ["yes", "no", "nobody knows"]))


def megabytes(status: str) -> dict[str, float]:
    """Read the numbers of a /proc/PID/status."""
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {name: int(lines[name].split()[0]) * 1024 / 1e6 for name in FIELDS}


@contextlib.contextmanager
def worker() -> Iterator[tuple[str, Path]]:
    """Give the endpoint of a worker, and its status file."""
    command = [sys.executable, "-m", "plait", "serve", "--kv-cache-tokens", str(KV_TOKENS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if " at " not in line:
                raise SystemExit(f"`plait serve` ended with code {process.wait()}")
            yield line.split(" at ")[-1].strip(), Path(f"/proc/{process.pid}/status")
        finally:
            process.terminate()


def serve_some(endpoint: str) -> int:
    """Run the programs; give the number of tokens that the worker wrote."""
    backend = plait.connect(endpoint)
    results = []
    with contextlib.closing(backend):
        for temperature in (0.0, 0.9):
            rows = [{"topic": topic, "temperature": temperature} for topic in TOPICS]
            results += essay.run_batch(rows, backend=backend)
        results += place.run_batch([{"topic": topic} for topic in TOPICS], backend=backend)
    return sum(result.usage.output_tokens for result in results)


def model_mb() -> float:
    """Give the size of the default model's weights."""
    folder = Store(default_home()).resolve(DEFAULT_MODEL)
    return (folder / GGUF_NAME).stat().st_size / 1e6


def main() -> int:
    """Print a table of memory by stage, then one line; with --check, 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    command = [sys.executable, "-c", IMPORTS]
    imported = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    stages = {"after imports": megabytes(imported)}
    with worker() as (endpoint, status):
        stages["after load"] = megabytes(status.read_text())
        num_tokens = serve_some(endpoint)
        stages["after serving"] = megabytes(status.read_text())
    print(f"{'MB':16}{'resident':>10}{'own':>8}{'files':>8}{'peak':>8}")
    for name, found in stages.items():
        resident, own, files, peak = (found[field] for field in FIELDS)
        print(f"{name:16}{resident:10.0f}{own:8.0f}{files:8.0f}{peak:8.0f}")
    total = stages["after serving"]["VmRSS"]
    print(
        f"memory: {total:.0f} MB resident (goal {GOAL_MB}) after {num_tokens} tokens, weights of "
        f"{model_mb():.0f} MB, a KV pool of {KV_TOKENS} tokens"
    )
    return int(args.check and total > GOAL_MB)


if __name__ == "__main__":
    sys.exit(main())
