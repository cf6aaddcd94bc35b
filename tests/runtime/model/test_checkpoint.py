"""Every tensor of a checkpoint is accounted for before the model exists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pytest
import torch

from plait.kernels.linear import Linear, linear
from plait.runtime.errors import ModelLoadError
from plait.runtime.load.blocks import Blocks, blocks_of
from plait.runtime.load.quants import Floats
from plait.runtime.model.checkpoint import Checkpoint
from plait.runtime.model.config import ModelConfig, read_config
from plait.runtime.model.llama import read_llama
from plait.runtime.model.tensors import expected_shapes

from .tiny import CONFIG

CPU = torch.device("cpu")
LAYER = "model.layers.1."


def shape(**changes: object) -> ModelConfig:
    return read_config({**CONFIG, "vocab_size": 11, **changes})


class Tensors:
    """Named tensors in memory."""

    def __init__(self, config: ModelConfig) -> None:
        self.values = {
            name: torch.randn(size).numpy() for name, size in expected_shapes(config).items()
        }

    def names(self) -> Sequence[str]:
        return list(self.values)

    def tensor(self, name: str) -> Floats:
        return self.values[name]

    def blocks(self, name: str, kinds: Collection[int]) -> Blocks:
        return blocks_of(self.values[name])


def refusal(spoil: Callable[[dict[str, Floats]], object], **changes: object) -> str:
    config = shape(**changes)
    tensors = Tensors(config)
    spoil(tensors.values)
    with pytest.raises(ModelLoadError) as caught:
        read_llama(config, tensors, torch.float32, CPU)
    return str(caught.value)


def test_missing_tensors_are_listed() -> None:
    def spoil(values: dict[str, Floats]) -> None:
        del values[f"{LAYER}mlp.up_proj.weight"], values["model.norm.weight"]

    message = refusal(spoil)
    assert "2 of 21 tensors are missing" in message
    assert "model.norm.weight, model.layers.1.mlp.up_proj.weight" in message


def test_a_long_list_is_cut_short() -> None:
    assert "and 13 more" in refusal(lambda values: values.clear())


def test_a_stray_tensor_is_named() -> None:
    message = refusal(
        lambda values: values.update({f"{LAYER}extra.weight": np.zeros(1, np.float32)})
    )
    assert f"{LAYER}extra.weight" in message


def test_a_bias_that_the_config_does_not_know_is_named() -> None:
    name = f"{LAYER}self_attn.q_proj.bias"
    assert name in refusal(lambda values: values.update({name: np.zeros(8, np.float32)}))


def test_a_missing_head_is_not_taken_for_a_tied_one() -> None:
    assert "lm_head.weight" in refusal(lambda values: values.pop("lm_head.weight"))


def test_a_wrong_shape_is_shown_with_the_right_one() -> None:
    name = f"{LAYER}mlp.down_proj.weight"
    message = refusal(lambda values: values.update({name: np.zeros((12, 8), np.float32)}))
    assert name in message
    assert "(12, 8)" in message
    assert "(8, 12)" in message


def test_a_row_too_few_is_refused_and_not_broadcast() -> None:
    name = f"{LAYER}self_attn.v_proj.weight"
    assert "(1, 8)" in refusal(lambda values: values.update({name: np.zeros((1, 8), np.float32)}))


def test_frequencies_of_old_checkpoints_are_tolerated() -> None:
    tensors = Tensors(shape())
    tensors.values[f"{LAYER}self_attn.rotary_emb.inv_freq"] = np.zeros(2, np.float32)
    read_llama(shape(), tensors, torch.float32, CPU)


def test_a_tied_model_uses_its_embedding_even_beside_a_written_head() -> None:
    config = shape(tie_word_embeddings=True)
    tensors = Tensors(config)
    tensors.values["lm_head.weight"] = np.zeros((11, 8), np.float32)
    model = read_llama(config, tensors, torch.float32, CPU)
    step = linear(torch.eye(8), model.head)
    assert isinstance(model.embedding, torch.Tensor)
    torch.testing.assert_close(step.T, model.embedding)


def test_stacked_rows_keep_their_order() -> None:
    tensors = Tensors(shape())
    names = [f"{LAYER}self_attn.{name}_proj" for name in "qkv"]
    layer = Checkpoint(shape(), tensors, torch.float32, CPU).linear(names)
    rows = np.concatenate([tensors.values[f"{name}.weight"] for name in names])
    torch.testing.assert_close(linear(torch.eye(8), layer).T, torch.from_numpy(rows))


def test_weights_become_the_dtype_asked_for() -> None:
    model = read_llama(shape(), Tensors(shape()), torch.bfloat16, CPU)
    assert isinstance(model.layers[0].qkv, Linear)
    assert model.layers[0].qkv.weight.dtype == torch.bfloat16
    assert model.norm.dtype == torch.bfloat16
