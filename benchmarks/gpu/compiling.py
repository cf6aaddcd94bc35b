"""Compile every kernel for GPUs that are not there: to machine code, by the assembler's own rules.

`python -m benchmarks.gpu.compiling` prints a line a kernel. It runs the checks of `gpu_check` with
a launch that compiles and computes nothing, so what a kernel is given is what it gets there.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .attention_cases import attention_cases
from .small_cases import small_cases

# Bytes of shared memory that one program may have.
SHARED_BYTES = {80: 163 * 1024, 86: 99 * 1024, 89: 99 * 1024, 90: 227 * 1024}
# Parts of the names of checks that together launch every kernel, and attention as it is served.
QUICK = (
    "17x130 bfloat16",
    "17x48 bfloat16",
    "Q4_1 63x32x16 bfloat16",
    "Q8_0 1x64x17 bfloat16",
    "kv block 16",
    "mask 31",
    "sampling 17",
    "x64 bfloat16 shared",
    "x128 bfloat16",
)
TYPES = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int8: "*i8",
    torch.uint8: "*u8",
    torch.int32: "*i32",
    torch.int64: "*i64",
}


class Compiler:
    """Stands in for a launch: compiles each new kind of it for one capability."""

    def __init__(self, capability: int) -> None:
        self.capability = capability
        self.shared_bytes: dict[str, int] = {}  # the most that any kind of a kernel takes
        self._seen: set[str] = set()

    def compile(self, kernel: Any, args: tuple[object, ...], named: dict[str, object]) -> None:
        """Compile `kernel` as it would be for these arguments, unless it was."""
        options = {key: named.pop(key) for key in ("num_warps", "num_stages") if key in named}
        values = dict(zip(kernel.arg_names, args, strict=False)) | named
        fixed = {param.name for param in kernel.params if param.is_constexpr}
        signature = {
            name: "constexpr" if name in fixed else _type(value) for name, value in values.items()
        }
        constants = {name: values[name] for name in fixed}
        # What a launch promises of its arguments: without it loads would be number by number.
        aligned = {
            (place,): [["tt.divisibility", 16]]
            for place, param in enumerate(kernel.params)
            if not param.is_constexpr
            and not param.do_not_specialize
            and _is_aligned(values[param.name])
        }
        key = repr((kernel.__name__, signature, sorted(constants.items()), options, aligned))
        if key in self._seen:
            return
        self._seen.add(key)
        source = ASTSource(kernel, signature, constants, aligned)
        target = GPUTarget("cuda", self.capability, 32)
        built = triton.compile(source, target=target, options=options | {"enable_fp_fusion": True})
        name = f"{kernel.__module__.rsplit('kernels.')[-1]}:{kernel.__name__}"
        self.shared_bytes[name] = max(self.shared_bytes.get(name, 0), int(built.metadata.shared))


def _is_aligned(value: object) -> bool:
    """Say whether a pointer or a whole number is a multiple of 16."""
    if isinstance(value, Tensor):
        return value.data_ptr() % 16 == 0
    return isinstance(value, int) and value % 16 == 0


def _type(value: object) -> str:
    if isinstance(value, Tensor):
        return TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def compile_all(capability: int, *, is_quick: bool) -> dict[str, int]:
    """Compile what the checks launch; give the shared memory of each kernel, in bytes.

    The checks' results are noise and thrown away. Quick are those few that see each kernel.
    """
    compiler = Compiler(capability)

    def run(kernel: Any, *args: object, grid: object, warmup: bool, **named: object) -> None:
        compiler.compile(kernel, args, named)

    setattr(triton.runtime.JITFunction, "run", run)  # noqa: B010  # not of its declared type
    cases = itertools.chain(small_cases(is_tiny=False), attention_cases(is_tiny=False))
    for case in cases:
        if "5000" not in case.name and (not is_quick or any(name in case.name for name in QUICK)):
            case.error(torch.device("cpu"))
    return compiler.shared_bytes


def main() -> int:
    """Print the table; give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--capability", type=int, default=90, choices=sorted(SHARED_BYTES))
    parser.add_argument("--quick", action="store_true", help="only so many that each is seen")
    args = parser.parse_args()
    most = SHARED_BYTES[args.capability]
    found = compile_all(args.capability, is_quick=args.quick)
    for name, shared in found.items():
        print(f"{name:40} {shared:8} of {most} bytes of shared memory")
    return int(any(shared > most for shared in found.values()))


if __name__ == "__main__":
    sys.exit(main())
