"""The engine's settings: one table that validates them and names their command-line flags."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias, TypeVar

Kind: TypeAlias = type[bool] | type[int] | type[float] | type[str]
_T = TypeVar("_T")

BLOCK_SIZES = (1, 16, 32, 64)
DEFAULT_DRAFT = 15  # tokens, where it was measured to pay
_KIND_NAMES: dict[Kind, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


@dataclass(frozen=True, slots=True)
class Option:
    """What one setting may be, what it is for, and its flag if that is not its name."""

    kind: Kind
    help: str
    choices: tuple[object, ...] = ()
    minimum: float | None = None
    maximum: float = math.inf
    pattern: str = ""
    example: str = ""  # what the pattern allows, in words
    is_optional: bool = False
    flag: str = ""

    @property
    def allowed(self) -> str:
        """Say what may be passed."""
        if self.choices:
            text = "one of " + ", ".join(map(str, self.choices))
        elif self.example:
            text = self.example
        else:
            text = _KIND_NAMES[self.kind]
            if self.minimum is not None:
                is_open = self.maximum == math.inf
                text += f", {self.minimum:g} " + ("or more" if is_open else f"to {self.maximum:g}")
        return f"{text}, or None" if self.is_optional else text

    def accepts(self, value: object) -> bool:
        """Say whether a setting may have this value."""
        if value is None:
            return self.is_optional
        if isinstance(value, bool) or self.kind is bool:
            return isinstance(value, bool) and self.kind is bool
        if not isinstance(value, (int, float) if self.kind is float else self.kind):
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if self.minimum is not None:
            assert isinstance(value, int | float)
            return self.minimum <= value <= self.maximum
        if self.pattern:
            return re.fullmatch(self.pattern, str(value)) is not None
        return not self.choices or value in self.choices


def _option(
    default: _T,
    kind: Kind,
    help: str,
    *,
    choices: tuple[object, ...] = (),
    minimum: float | None = None,
    maximum: float = math.inf,
    pattern: str = "",
    example: str = "",
    flag: str = "",
) -> _T:
    is_optional = default is None
    described = Option(kind, help, choices, minimum, maximum, pattern, example, is_optional, flag)
    return field(default=default, metadata={"option": described})


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine; `options()` says what each is for and may be.

    Raises: ValueError, naming the setting, its value and what is allowed.
    """

    block_size: int = _option(16, int, "tokens in a block of the KV pool", choices=BLOCK_SIZES)
    token_budget: int = _option(512, int, "new tokens in one step, at most", minimum=1)
    max_running: int = _option(64, int, "sequences in the batch, at most", minimum=1)
    max_waiting: int = _option(16384, int, "requests in the queue, at most", minimum=1)
    kv_cache_tokens: int | None = _option(
        None,
        int,
        "size of the KV pool; without it four contexts, or a quarter of the free memory if less",
        minimum=1,
    )
    max_context: int | None = _option(None, int, "shorten the model's context", minimum=1)
    is_prefix_caching: bool = _option(
        True, bool, "turn the radix cache off, for measurements", flag="--no-prefix-cache"
    )
    jump_forward: bool = _option(
        True,
        bool,
        "draw the tokens that a grammar leaves no choice about one by one, for measurements",
        flag="--no-jump-forward",
    )
    max_draft_tokens: int | None = _option(
        None,
        int,
        "tokens of an output that a step may guess from its text, at most; 0 guesses none;"
        f" without it {DEFAULT_DRAFT} on the CPU's own kernels, else none",
        minimum=0,
        maximum=64,
    )
    grammar_timeout_s: float = _option(
        2.0, float, "seconds that compiling one grammar may take", minimum=0.001
    )
    grammar_max_states: int = _option(
        50_000, int, "states that one grammar's automaton may have", minimum=1
    )
    is_grammar_cache_on_disk: bool = _option(
        True,
        bool,
        "keep nothing of grammars under $PLAIT_HOME/grammars for later processes",
        flag="--no-grammar-cache",
    )
    dtype: Literal["float32", "bfloat16"] = _option(
        "float32", str, "numbers that the model computes in", choices=("float32", "bfloat16")
    )
    is_native: bool = _option(
        True,
        bool,
        "run the model on torch's own operations, for measurements",
        flag="--no-native-kernels",
    )
    is_exact: bool = _option(
        False,
        bool,
        "keep activations and KV in fp32, which the CPU's own kernels else shorten",
        flag="--exact",
    )
    is_quantized: bool = _option(
        True,
        bool,
        "decode quantised weights to the dtype when a GPU loads them, instead of in each product",
        flag="--no-quantized-weights",
    )
    device: str = _option(
        "cpu",
        str,
        "where the model runs",
        pattern=r"cpu|cuda(:\d{1,3})?",
        example="cpu, cuda or cuda:N",
    )
    num_threads: int | None = _option(
        None,
        int,
        "threads of the forward pass; without it one a core",
        minimum=1,
        maximum=1024,
        flag="--threads",
    )

    def __post_init__(self) -> None:
        for name, option in options().items():
            value = getattr(self, name)
            if not option.accepts(value):
                raise ValueError(f"{name}={value!r}: pass {option.allowed}")


def options() -> dict[str, Option]:
    """Give the table of all settings by name."""
    return {item.name: item.metadata["option"] for item in fields(EngineConfig)}


def engine_config(given: Mapping[str, object]) -> EngineConfig:
    """Make a config from settings by name. Raises: ValueError, also for an unknown name."""
    known = options()
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise ValueError(
            f"unknown engine option {', '.join(unknown)}; the options are {', '.join(known)}"
        )
    return EngineConfig(**given)  # type: ignore[arg-type]  # it checks them itself
