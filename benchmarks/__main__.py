"""Run all benchmarks one after the other; a missed goal stops none of those after it.

Each prints its table and, last, one line. These lines come again at the end, and which of the
benchmarks failed: then the exit code is 1. Not among them: `grammar`, which needs llguidance
and its data, and those for GPUs.

Run it: make bench, or python -m benchmarks [--check] [NAME ...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = (
    "radix_match",
    "prefix_sharing",
    "future",
    "decode_batch",
    "jump_forward",
    "speculation",
    "healing",
    "startup",
    "memory",
    "grammar_cache",
    "lark_masks",
    "overhead",
    "programs",
    "engine",
)


def run_all(commands: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Run named commands, whatever becomes of each; give the names of those that failed."""
    lasts: list[str] = []
    failed: list[str] = []
    for name, command in commands:
        print(f"--- {name}", flush=True)
        code, last = _run(command)
        if code:
            failed.append(name)
        lasts.append(last if code in (0, 1) and last else f"{name}: ended with code {code}")
    print("---", *lasts, sep="\n")
    print(f"failed: {', '.join(failed)}" if failed else "no benchmark failed")
    return failed


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Run one, showing what it prints; give its exit code and its last line."""
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return child.returncode, last


def main() -> int:
    """Run the chosen ones; give 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--check", action="store_true", help="count a missed goal as a failure")
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; pass some of {', '.join(NAMES)}")
    flags = ["--check"] if args.check else []
    chosen = args.names or NAMES
    return int(
        bool(
            run_all((name, [sys.executable, "-m", f"benchmarks.{name}", *flags]) for name in chosen)
        )
    )


if __name__ == "__main__":
    sys.exit(main())
