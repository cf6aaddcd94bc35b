"""How fast the kernels and the runner are, against what the device gave in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from . import attention_speeds, linear_speeds, step_speeds
from .floors import Floors, measure_floors


@dataclass(frozen=True, slots=True)
class Speed:
    """A measured share, in %, and its goal; at least, or at most. Without a goal it informs."""

    name: str
    measured: str
    share: float
    goal: float | None
    is_at_most: bool = False

    @property
    def is_met(self) -> bool:
        """Say whether the goal is reached."""
        if self.goal is None:
            return True
        return self.share <= self.goal if self.is_at_most else self.share >= self.goal


def measure_all(device: torch.device, deadline: float) -> int:
    """Print a line for each speed; give the number of missed goals and of those not measured."""
    floors = measure_floors(device)
    print(
        f"floors: {floors.bytes_s / 1e12:.2f} TB/s copied, "
        f"{floors.flops_s / 1e12:.0f} TFLOP/s of bf16 products, on {torch.cuda.get_device_name()}"
    )
    missed = 0
    for name, measure in _measurements():
        if time.monotonic() > deadline:
            missed += 1
            print(f"{name:44} not measured: no time was left")
            continue
        try:
            speed = measure(device, floors)
        except Exception as e:  # the other lines are wanted all the more
            missed += 1
            print(f"{name:44} {type(e).__name__}: {e}"[:400])
            continue
        missed += not speed.is_met
        print(_line(speed), flush=True)
    return missed


def _line(speed: Speed) -> str:
    goal = ""
    if speed.goal is not None:
        sign, verdict = "<=" if speed.is_at_most else ">=", "met" if speed.is_met else "MISSED"
        goal = f"  goal {sign} {speed.goal:.0f} %  {verdict}"
    return f"{speed.name:44} {speed.measured:>24} {speed.share:8.1f} %{goal}"


Measure = Callable[[torch.device, Floors], Speed]


def _measurements() -> Iterator[tuple[str, Measure]]:
    for num_seqs, context in ((64, 4096), (1, 32768)):
        name = f"decode attention, {num_seqs} x {context}"

        def decode(
            device: torch.device, floors: Floors, at: tuple[int, int] = (num_seqs, context)
        ) -> Speed:
            took, read = attention_speeds.decode_seconds(device, *at)
            return Speed(
                f"decode attention, {at[0]} x {at[1]}, of bandwidth",
                f"{took * 1e6:.0f} us",
                100 * read / took / floors.bytes_s,
                80 if at[0] > 1 else None,
            )

        yield name, decode
    yield "prefill attention", _prefill
    yield "shared prefix", _shared
    yield "quantised product of one row", _one_row
    yield "quantised product of 512 rows", _many_rows
    yield "step overhead", _overhead
    yield "tokens/s against transformers", _tokens


def _prefill(device: torch.device, floors: Floors) -> Speed:
    took, flops = attention_speeds.prefill_seconds(device, 8192)
    share = 100 * flops / took / floors.flops_s
    return Speed("prefill attention, 8192, of products", f"{took * 1e6:.0f} us", share, 60)


def _shared(device: torch.device, floors: Floors) -> Speed:
    apart, shared = attention_speeds.shared_seconds(device, 64, 8192)
    name = "decode, 64 x 8192 shared, of its time apart"
    return Speed(name, f"{apart * 1e6:.0f} -> {shared * 1e6:.0f} us", 100 * shared / apart, None)


def _one_row(device: torch.device, floors: Floors) -> Speed:
    took, read = linear_speeds.decode_seconds("Q4_0", device)
    share = 100 * read / took / floors.bytes_s
    return Speed("Q4_0 product of one row, of bandwidth", f"{took * 1e6:.0f} us", share, None)


def _many_rows(device: torch.device, floors: Floors) -> Speed:
    plain, took = linear_speeds.prefill_seconds("Q4_0", device)
    name = "Q4_0 product of 512 rows, of bf16's time"
    return Speed(name, f"{plain * 1e6:.0f} -> {took * 1e6:.0f} us", 100 * took / plain, None)


def _overhead(device: torch.device, floors: Floors) -> Speed:
    step_s, device_s = step_speeds.step_seconds(device)
    return Speed(
        "step overhead, 1B-shaped, 64 sequences",
        f"{device_s * 1e3:.2f} of {step_s * 1e3:.2f} ms",
        100 * (step_s - device_s) / step_s,
        10,
        is_at_most=True,
    )


def _tokens(device: torch.device, floors: Floors) -> Speed:
    ours, theirs = step_speeds.tokens_per_second(device)
    return Speed(
        "tokens/s, of transformers' generate", f"{ours:.0f} to {theirs:.0f}", 100 * ours / theirs,
        None,
    )  # fmt: skip
