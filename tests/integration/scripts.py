"""Scripts for the stand-in model of runtimes in other processes."""

from __future__ import annotations

import os
import time


def say(text: str) -> str:
    """Count the letters; a text that ends in a star makes the model talk for long."""
    return "la" * 2000 if text.endswith("*") else f"{len(text)} letters"


def slow(text: str) -> dict[str, float]:
    """Talk for ever, a hundred letters a second."""
    time.sleep(0.01)
    return {"a": 1.0}


def die(text: str) -> str:
    """End the engine's thread: no handler of errors stops this one."""
    raise SystemExit("the script ends")


if os.environ.get("PLAIT_TEST_SLOW_LOADING"):
    time.sleep(60)
