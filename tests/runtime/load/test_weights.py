"""Weights from GGUF files: Hugging Face's names, row order, config; nothing unknown passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.gguf_names import hugging_face_name
from plait.runtime.load.weights import open_weights, opened

Write = Callable[..., Path]
Arrays = dict[str, npt.NDArray[np.float32]]
Make = Callable[[str], Arrays]


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_tensors_come_back_in_hugging_face_names_and_order(
    architecture: str, write_gguf: Write, gguf_tensors: Make, tmp_path: Path
) -> None:
    arrays = gguf_tensors(architecture)
    with opened(write_gguf(tmp_path / "m.gguf", architecture)) as weights:
        assert set(weights.names()) == {hugging_face_name(name) for name in arrays}
        for name, array in arrays.items():
            found = weights.tensor(hugging_face_name(name))
            assert np.array_equal(found, array), name


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0"])
def test_every_format_equals_the_gguf_packages_own_decoder(
    kind: str, write_gguf: Write, gguf_tensors: Make, tmp_path: Path
) -> None:
    number = gguf.GGMLQuantizationType[kind]
    with opened(write_gguf(tmp_path / "m.gguf", "qwen2", kind)) as weights:
        for name, array in gguf_tensors("qwen2").items():
            if array.ndim == 2:
                want = gguf.quants.dequantize(gguf.quants.quantize(array, number), number)
                found = weights.tensor(hugging_face_name(name))
                np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"])
def test_k_quants_are_read(kind: str, tmp_path: Path, write_gguf: Write) -> None:
    # The package writes no K-quants, so the blocks are random bytes with tame scales.
    number = gguf.GGMLQuantizationType[kind]
    block_bytes = gguf.GGML_QUANT_SIZES[number][1]
    raw = np.random.default_rng(0).integers(0, 60, (300, block_bytes), dtype=np.uint8)

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_tensor("output.weight", raw, raw_dtype=number)

    with opened(write_gguf(tmp_path / "m.gguf", extra=add)) as weights:
        found = weights.tensor("lm_head.weight")
    assert found.shape == (300, 256)
    np.testing.assert_array_equal(found, gguf.quants.dequantize(raw, number))


def test_config_has_hugging_faces_keys(write_gguf: Write, tmp_path: Path) -> None:
    with opened(write_gguf(tmp_path / "m.gguf", "qwen2")) as weights:
        config = dict(weights.config)
    assert config.pop("rms_norm_eps") == pytest.approx(1e-6)
    assert config == {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_act": "silu",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rope_theta": 5e5,
        "rope_scaling": None,
        "max_position_embeddings": 128,
        "vocab_size": 300,
        "tie_word_embeddings": True,
        "attention_bias": True,
        "mlp_bias": False,
    }


def test_an_explicit_key_length_is_the_head_size(write_gguf: Write, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", extra=lambda w: w.add_key_length(16))
    with opened(path) as weights:
        assert weights.config["head_dim"] == 16


def test_rope_scaling_is_read(write_gguf: Write, tmp_path: Path) -> None:
    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(4.0)
        writer.add_rope_scaling_orig_ctx_len(64)

    with opened(write_gguf(tmp_path / "m.gguf", extra=add)) as weights:
        assert weights.config["rope_scaling"] == {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 64,
        }


def llama3_factors(factor: float) -> npt.NDArray[np.float32]:
    """Compute the factors as the converter does, frequency by frequency."""
    factors = []
    for frequency in 1 / 5e5 ** (np.arange(0, 8, 2) / 8):
        wave_len = 2 * np.pi / frequency
        if wave_len < 8192 / 4:
            factors.append(1.0)
        elif wave_len > 8192:
            factors.append(factor)
        else:
            smooth = (8192 / wave_len - 1) / 3
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, np.float32)


def test_llama3_rope_is_recognised_by_its_factors(
    write_gguf: Write, gguf_tensors: Make, tmp_path: Path
) -> None:
    arrays = gguf_tensors("llama") | {"rope_freqs.weight": llama3_factors(32.0)}
    with opened(write_gguf(tmp_path / "m.gguf", arrays=arrays)) as weights:
        assert "rope_freqs.weight" not in weights.names()
        assert weights.config["rope_scaling"] == {
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }


def test_other_rope_factors_are_refused(
    write_gguf: Write, gguf_tensors: Make, tmp_path: Path
) -> None:
    factors = np.array([1, 2, 3, 4], np.float32)
    path = write_gguf(
        tmp_path / "m.gguf", arrays=gguf_tensors("llama") | {"rope_freqs.weight": factors}
    )
    with pytest.raises(ModelLoadError, match=r"rope_freqs\.weight are not those of Llama 3"):
        open_weights(path)


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        (lambda w: w.add_expert_count(8), "expert_count = 8"),
        (lambda w: w.add_rope_dimension_count(4), "rope.dimension_count is 4 and a head has 8"),
    ],
)
def test_what_is_not_supported_is_refused_by_key(
    extra: Callable[[gguf.GGUFWriter], None], problem: str, write_gguf: Write, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=problem):
        open_weights(write_gguf(tmp_path / "m.gguf", extra=extra))


def test_an_unknown_architecture_is_refused_by_name(write_gguf: Write, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="architecture 'mamba' is not supported"):
        open_weights(write_gguf(tmp_path / "m.gguf", "mamba"))


def test_an_unknown_tensor_is_refused_by_name(
    write_gguf: Write, gguf_tensors: Make, tmp_path: Path
) -> None:
    arrays = gguf_tensors("llama")
    arrays["blk.0.ssm_a.weight"] = arrays["output_norm.weight"]
    with pytest.raises(ModelLoadError, match=r"tensor blk\.0\.ssm_a\.weight"):
        open_weights(write_gguf(tmp_path / "m.gguf", arrays=arrays))


def test_asking_for_a_tensor_that_is_not_there_names_it(write_gguf: Write, tmp_path: Path) -> None:
    with (
        opened(write_gguf(tmp_path / "m.gguf")) as weights,
        pytest.raises(ModelLoadError, match=r"lm_head\.weight is missing"),
    ):
        weights.tensor("lm_head.weight")


def test_a_pulled_models_recorded_digest_is_used(write_gguf: Write, tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf")
    (tmp_path / "plait.json").write_text(json.dumps({"digest": "abc"}))
    with opened(tmp_path) as weights:
        assert weights.digest == "abc"
