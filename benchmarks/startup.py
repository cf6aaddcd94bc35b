"""Time from process start to the first token, split by phase.

Two ways to start: the engine in the program's own process (split by phase), and what a user
sees, `plait run`, whose embedded runtime is a second process. The latter is measured warm, and
cold: before a cold start the system is asked to drop the cached pages of the model, of Python's
libraries and of plait. It keeps those that a running process has mapped (Python itself, the C
library); how much of the model it kept is printed. A disk behind a virtual machine may have a
cache of its own. Goals of `--check`: medians of at most 3 s warm and 6 s cold on two cores.

Run it: python -m benchmarks.startup [--rounds 5] [--check]
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import mmap
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOAL_WARM_S, GOAL_COLD_S = 3.0, 6.0
PHASES = ("python", "import plait", "load model", "first token")
# Asked of a child: this process must not map the libraries that a cold start is to read.
FIND_MODEL = """
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
print(Store(default_home()).resolve(DEFAULT_MODEL))
"""
# Each stamp is the wall clock once a phase is over; the parent knows when the process began.
CHILD = """
import time; stamps = [time.time()]
import plait; stamps.append(time.time())
backend = plait.local("smollm2"); backend.capabilities(); stamps.append(time.time())

@plait.function
def hello(s):
    s += plait.user("Say hello.")
    s += plait.assistant(plait.gen("x", max_tokens=1, temperature=0))

hello.run(backend=backend); stamps.append(time.time())
backend.close()
import json; print(json.dumps(stamps))
"""


def in_process() -> list[float]:
    """Give the seconds of each phase with the engine in the program's process."""
    start_s = time.time()
    printed = subprocess.run(
        [sys.executable, "-c", CHILD], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
    stamps = [start_s, *json.loads(printed)]
    return [after - before for before, after in itertools.pairwise(stamps)]


def embedded() -> float:
    """Give the seconds from `plait run` to the first character of the first variable."""
    command = [sys.executable, "-m", "plait", "run", "examples/hello.py:hello"]
    start_s = time.time()
    with subprocess.Popen(
        [*command, "--arg", "name=Ada", "--stream"], stdout=subprocess.PIPE, cwd=ROOT
    ) as child:
        assert child.stdout is not None
        head = b""
        while not head.endswith(b": "):  # the variable's label comes before its first text
            read = child.stdout.read(1)
            if not read:
                raise SystemExit(
                    f"`plait run` ended with code {child.wait()} before it said a word"
                )
            head += read
        child.stdout.read(1)
        seconds = time.time() - start_s
        child.stdout.read()
    return seconds


def model_folder() -> Path:
    """Find the default model."""
    command = [sys.executable, "-c", FIND_MODEL]
    found = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return Path(found.strip())


def needed_files(model: Path) -> Iterator[Path]:
    """List what a start may read: the model, Python's libraries, plait."""
    parts = [ROOT / name for name in ("plait", "lang", "interpreter", "runtime", "kernels")]
    libraries = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platlib")]
    for folder in (model, *libraries, *parts):
        for path in folder.rglob("*"):
            if path.is_file():
                yield path


def drop_cached(paths: list[Path]) -> None:
    """Ask the system to drop the pages of files from its cache."""
    os.sync()  # a page that is not written yet would stay
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def cached_mb(path: Path) -> float:
    """Count the megabytes of a file that are in the system's cache."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE) as mapped:
        pages = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(mapped)
        code = ctypes.CDLL(None).mincore(
            ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(len(mapped)), pages
        )
        del start  # else the map could not be closed
        assert code == 0
    return sum(page & 1 for page in pages) * mmap.PAGESIZE / 1e6


def main() -> int:
    """Print the phases' medians, then one line; with --check, 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    model = model_folder()
    files = list(needed_files(model))
    phases: list[list[float]] = []
    warm: list[float] = []
    cold: list[float] = []
    kept: list[float] = []
    embedded()  # whatever was cold before, and the compiled Python
    for _ in range(args.rounds):
        phases.append(in_process())
        warm.append(embedded())
        drop_cached(files)
        kept.append(cached_mb(model / "model.gguf"))
        cold.append(embedded())
    medians = [statistics.median(times) for times in zip(*phases, strict=True)]
    for name, seconds in zip(PHASES, medians, strict=True):
        print(f"{name:14} {seconds:6.2f} s")
    warm_s, cold_s = statistics.median(warm), statistics.median(cold)
    print(
        f"startup: {sum(medians):.2f} s to the first token in one process; through `plait run` "
        f"{warm_s:.2f} s warm (goal {GOAL_WARM_S:.0f}), {cold_s:.2f} s cold (goal "
        f"{GOAL_COLD_S:.0f}; {max(kept):.0f} MB of the model were still cached), "
        f"{args.rounds} rounds"
    )
    return int(args.check and (warm_s > GOAL_WARM_S or cold_s > GOAL_COLD_S))


if __name__ == "__main__":
    sys.exit(main())
