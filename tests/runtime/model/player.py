"""A naive engine over a runner, and random weights: what tests of whole models share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import quantize
from torch import Tensor

from plait.runtime.load.blocks import Blocks, blocks_of
from plait.runtime.load.quants import Floats, dequantize
from plait.runtime.model.config import ModelConfig
from plait.runtime.model.interface import Logits, Runner
from plait.runtime.model.tensors import expected_shapes
from plait.runtime.sequence import Batch


class RandomWeights:
    """Tensors of the right shapes from a fixed seed."""

    def __init__(self, config: ModelConfig) -> None:
        rng = torch.Generator().manual_seed(0)
        self._tensors = {
            name: (torch.randn(shape, generator=rng) * 0.2).numpy()
            for name, shape in expected_shapes(config).items()
        }

    def names(self) -> Sequence[str]:
        return list(self._tensors)

    def tensor(self, name: str) -> Floats:
        return self._tensors[name]

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        return blocks_of(self._tensors[name])


class QuantizedWeights(RandomWeights):
    """The same, the matrices in blocks of a few bits, as in a GGUF file."""

    def __init__(self, config: ModelConfig, form: str = "Q4_1") -> None:
        super().__init__(config)
        self._number = GGMLQuantizationType[form]

    def tensor(self, name: str) -> Floats:
        values = self._tensors[name]
        if values.ndim == 1:
            return values
        return dequantize(quantize(values, self._number), int(self._number), values.shape)

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        if int(self._number) not in kinds:
            return blocks_of(self.tensor(name))
        values = self._tensors[name]
        return Blocks(int(self._number), quantize(values, self._number), values.shape)


@dataclass(eq=False)
class Seq:
    """The tokens of one sequence, its blocks, and how many tokens are computed."""

    tokens: list[int]
    block_table: list[int] = field(default_factory=list)
    num_computed_tokens: int = 0


class Player:
    """A naive engine: hands out blocks in a scattered order and asks for every row's logits."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.block_size = runner.limits.block_size
        rng = np.random.default_rng(0)
        self.free = rng.permutation(runner.limits.num_blocks).tolist()

    def slots(self, seq: Seq, begin: int, end: int) -> list[int]:
        size = self.block_size
        while len(seq.block_table) * size < end:
            seq.block_table.append(self.free.pop())
        return [seq.block_table[p // size] * size + p % size for p in range(begin, end)]

    def step(
        self, work: list[tuple[Seq, int]], copies: tuple[list[int], list[int]] = ([], [])
    ) -> list[Tensor]:
        """Compute the next `count` tokens of each sequence; logits [count, width] of each."""
        spans = [
            (seq, seq.num_computed_tokens, seq.num_computed_tokens + count) for seq, count in work
        ]
        slots = [slot for span in spans for slot in self.slots(*span)]
        tables = np.zeros((len(work), max(len(seq.block_table) for seq, _ in work)), np.int32)
        for row, (seq, _) in enumerate(work):
            tables[row, : len(seq.block_table)] = seq.block_table
        batch = Batch(
            token_ids=np.array([t for seq, a, b in spans for t in seq.tokens[a:b]], np.int32),
            positions=np.array([p for _, a, b in spans for p in range(a, b)], np.int32),
            slot_mapping=np.array(slots, np.int64),
            cu_seqlens=np.cumsum([0] + [count for _, count in work], dtype=np.int32),
            seq_lens=np.array([end for _, _, end in spans], np.int32),
            block_tables=tables,
            copy_from=np.array(copies[0], np.int64),
            copy_to=np.array(copies[1], np.int64),
            logit_rows=np.arange(len(slots), dtype=np.int64),
        )
        for seq, _, end in spans:
            seq.num_computed_tokens = end
        ends = np.cumsum([count for _, count in work])[:-1]
        logits = as_tensor(self.runner.run(batch))
        return list(logits.tensor_split(torch.from_numpy(ends)))

    def chunked(self, tokens: list[int], chunk: int) -> Tensor:
        """Compute one sequence alone, in chunks; logits of all its tokens."""
        seq, parts = Seq(tokens), []
        while seq.num_computed_tokens < len(tokens):
            count = min(chunk, len(tokens) - seq.num_computed_tokens)
            parts += self.step([(seq, count)])
        return torch.cat(parts)


def as_tensor(logits: Logits) -> Tensor:
    """Give a copy that the next pass leaves alone."""
    return torch.from_numpy(logits.copy()) if isinstance(logits, np.ndarray) else logits


def some_tokens(count: int, seed: int = 0, width: int = 320) -> list[int]:
    tokens: list[int] = np.random.default_rng(seed).integers(0, width, count).tolist()
    return tokens


def close(found: Tensor, wanted: Tensor, tolerance: float = 1e-4) -> bool:
    return float((found - wanted).abs().max()) < tolerance  # False for NaN


def mixed_run(player: Player, prompts: list[list[int]], chunk: int) -> list[Tensor]:
    """Start a prompt every other step, so that decodes and chunks of all ages meet."""
    seqs = [Seq(prompt) for prompt in prompts]
    found: dict[Seq, list[Tensor]] = {seq: [] for seq in seqs}
    turn = 0
    while any(seq.num_computed_tokens < len(seq.tokens) for seq in seqs):
        work = []
        for seq in seqs[: 1 + turn // 2]:
            left = len(seq.tokens) - seq.num_computed_tokens
            if left > 0:  # the last ten tokens come one a step, as decodes do
                work.append((seq, 1 if left <= 10 else min(chunk, left - 10)))
        turn += 1
        if work:
            for (seq, _), logits in zip(work, player.step(work), strict=True):
                found[seq].append(logits)
    return [torch.cat(found[seq]) for seq in seqs]
