"""A program that starts an embedded runtime and says how far it is; run by test_lifetime.py."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from plait.interpreter.backend import Delta, SessionConfig
from plait.interpreter.backends.embedded import EmbeddedBackend
from plait.lang.graph import Node
from plait.lang.ops import Gen, Sampling, Text

SCRIPT = f"{Path(__file__).parent / 'scripts.py'}:slow"


def main(stage: str) -> None:
    """Reach the stage, say so, and wait for the end."""
    # The tests may run in the background, where a shell has the signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("loading", flush=True)
    backend = EmbeddedBackend(scripted=SCRIPT)
    has_delta = threading.Event()
    if stage == "streaming":
        session = backend.open(
            SessionConfig("run", 1, Sampling(), is_streaming=True),
            lambda events: has_delta.set() if isinstance(events[-1], Delta) else None,
            lambda error: print("lost", flush=True),
        )
        session.submit([Node(0, Text("go"), None), Node(1, Gen("x"), 0)])
        has_delta.wait(20)
    print(stage, flush=True)
    threading.Event().wait(60)


if __name__ == "__main__":
    main(sys.argv[1])
