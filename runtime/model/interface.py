"""What the engine asks of a model: a tokenizer, a runner, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..sequence import Batch

if TYPE_CHECKING:
    import torch

# Rows of fp32 logits: an array on the CPU's own kernels, else a tensor.
Logits: TypeAlias = "npt.NDArray[np.float32] | torch.Tensor"


class Tokenizer(Protocol):
    """Text to token ids and back, over the tokens' real bytes."""

    @property
    def vocab_size(self) -> int:
        """One more than the largest id that has a token."""
        ...

    @property
    def token_bytes(self) -> Sequence[bytes | None]:
        """Bytes of each id; None for control tokens and for ids without a token."""
        ...

    @property
    def control_tokens(self) -> Mapping[str, int]:
        """The control tokens, by their text."""
        ...

    @property
    def bos_token_id(self) -> int | None:
        """The token that starts a text, None if the model has none."""
        ...

    @property
    def adds_bos(self) -> bool:
        """True where the model wants its BOS before every text."""
        ...

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Every token that ends an output."""
        ...

    @property
    def chat_template(self) -> str | None:
        """The model's Jinja template, None if it has none."""
        ...

    def encode(self, text: str) -> list[int]:
        """Tokenise text; a control token's spelling in it stays plain text. No BOS is added."""
        ...


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Numbers the scheduler must know."""

    max_context: int  # tokens
    num_blocks: int
    block_size: int  # tokens
    logits_width: int  # >= tokenizer.vocab_size


class Runner(Protocol):
    """Executes one batch on a device; owns the weights and the KV tensors."""

    @property
    def limits(self) -> ModelLimits:
        """Numbers the scheduler must know."""
        ...

    def run(self, batch: Batch) -> Logits:
        """Compute one forward pass; give fp32 logits of `batch.logit_rows`, [r, width].

        They may be overwritten by the next pass.
        """
        ...

    @property
    def largest_ids(self) -> Sequence[int]:
        """The id of the largest logit in each row of the last pass, the first of equals.

        Below 0 for a row with a number that is not finite; none where the runner does not know.
        """
        ...


@dataclass(frozen=True, slots=True)
class Model:
    """A model ready to serve. `digest` names weights and tokenizer: it starts the cache key.

    `sees_output_start`: what it says depends on where an output starts, and not only on the text
    before; only a stand-in for a model is like that.
    """

    name: str
    digest: str
    tokenizer: Tokenizer
    runner: Runner
    sees_output_start: bool = False
