"""A config says what the model computes; what plait does not compute is refused by name."""

from __future__ import annotations

import pytest

from plait.runtime.errors import ModelLoadError
from plait.runtime.model.config import ModelConfig, RopeConfig, read_config

LLAMA: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "max_position_embeddings": 512,
}


def read(name: str = "LlamaForCausalLM", /, **changes: object) -> ModelConfig:
    return read_config({**LLAMA, "architectures": [name], **changes})


def refusal(name: str = "LlamaForCausalLM", /, **changes: object) -> str:
    with pytest.raises(ModelLoadError) as caught:
        read(name, **changes)
    return str(caught.value)


def test_what_is_not_said_is_as_in_hugging_face() -> None:
    config = read()
    assert (config.head_dim, config.norm_eps, config.rope) == (8, 1e-6, RopeConfig(10000.0))
    assert not config.is_tied
    assert read(num_key_value_heads=None).num_kv_heads == 6
    assert read("Qwen3ForCausalLM").head_dim == 128


def test_an_explicit_head_size_wins() -> None:
    assert read(head_dim=20).head_dim == 20
    assert read(head_dim=None).head_dim == 8


def test_biases_follow_the_family() -> None:
    def biases(config: ModelConfig) -> tuple[bool, bool, bool]:
        return config.has_qkv_bias, config.has_o_bias, config.has_mlp_bias

    assert biases(read()) == (False, False, False)
    assert biases(read(attention_bias=True, mlp_bias=True)) == (True, True, True)
    assert biases(read("Qwen2ForCausalLM")) == (True, False, False)
    assert biases(read("Qwen3ForCausalLM")) == (False, False, False)
    assert biases(read("MistralForCausalLM")) == (False, False, False)


def test_only_qwen3_norms_its_heads() -> None:
    assert read("Qwen3ForCausalLM").has_qk_norm
    assert not read("Qwen2ForCausalLM").has_qk_norm


@pytest.mark.parametrize("section", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("key", ["type", "rope_type"])
def test_rope_is_read_wherever_it_is_written(section: str, key: str) -> None:
    scaling = {key: "linear", "factor": 4.0}
    assert read(**{section: scaling}).rope == RopeConfig(10000.0, "linear", 4.0)


def test_theta_may_stand_inside_the_rope_parameters() -> None:
    assert read(rope_parameters={"rope_theta": 5e5, "rope_type": "default"}).rope.theta == 5e5
    assert read(rope_theta=7e5).rope.theta == 7e5


@pytest.mark.parametrize("kind", ["dynamic", "yarn", "longrope", "su"])
def test_an_unknown_rope_is_refused_by_name(kind: str) -> None:
    assert kind in refusal(rope_scaling={"rope_type": kind, "factor": 2.0})


def test_rope_scaling_without_a_type_is_refused() -> None:
    assert "without a type" in refusal(rope_scaling={"factor": 2.0})


def test_a_missing_rope_number_is_named() -> None:
    assert "rope_scaling.factor" in refusal(rope_scaling={"rope_type": "linear"})


def test_partly_rotated_heads_are_refused() -> None:
    assert "partial_rotary_factor" in refusal(partial_rotary_factor=0.5)


@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh", "relu2"])
def test_another_activation_is_refused_by_name(activation: str) -> None:
    assert activation in refusal(hidden_act=activation)


@pytest.mark.parametrize("name", ["GemmaForCausalLM", "MixtralForCausalLM", "GPT2LMHeadModel"])
def test_another_architecture_is_refused_by_name(name: str) -> None:
    assert name in refusal(name)


def test_the_model_type_stands_in_for_a_missing_architecture() -> None:
    assert read_config({**LLAMA, "architectures": None, "model_type": "qwen2"}).family == "qwen2"


def test_quantised_safetensors_are_refused_by_name() -> None:
    assert "gptq" in refusal(quantization_config={"quant_method": "gptq", "bits": 4})


def test_the_window_is_read_where_it_is_used() -> None:
    assert read("MistralForCausalLM").sliding_window == 4096
    assert read("MistralForCausalLM", sliding_window=None).sliding_window is None
    assert read("Qwen2ForCausalLM", sliding_window=99).sliding_window is None
    used = {"sliding_window": 99, "use_sliding_window": True}
    assert read("Qwen2ForCausalLM", **used).sliding_window == 99
    layers = {"sliding_window": 99, "layer_types": ["full_attention", "sliding_attention"]}
    assert read("Qwen3ForCausalLM", **layers).sliding_window == 99


def test_the_layers_without_the_window_are_counted() -> None:
    assert read("MistralForCausalLM").num_whole_layers == 0
    used = {"sliding_window": 99, "use_sliding_window": True, "num_hidden_layers": 3}
    assert read("Qwen2ForCausalLM", **used).num_whole_layers == 3  # of 28 that have none
    assert read("Qwen2ForCausalLM", **used, max_window_layers=0).num_whole_layers == 0
    assert read("Qwen2ForCausalLM", **used, max_window_layers=2).num_whole_layers == 2
    layers = {"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}
    assert read("Qwen3ForCausalLM", **used, **layers).num_whole_layers == 1


@pytest.mark.parametrize("key", ["hidden_size", "vocab_size", "max_position_embeddings"])
def test_a_missing_key_is_named(key: str) -> None:
    assert f"{key} is missing" in refusal(**{key: None})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", "48"),
        ("num_hidden_layers", 0),
        ("vocab_size", True),
        ("rms_norm_eps", -1.0),
        ("tie_word_embeddings", "yes"),
        ("rope_scaling", "linear"),
        ("architectures", [3]),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(key: str, value: object) -> None:
    message = refusal(**{key: value})
    assert key in message
    assert repr(value) in message


@pytest.mark.parametrize("changes", [{"num_key_value_heads": 4}, {"head_dim": 7}])
def test_heads_that_do_not_fit_are_refused(changes: dict[str, object]) -> None:
    assert "heads" in refusal(**changes)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    assert "num_attention_heads=7" in refusal(num_attention_heads=7, num_key_value_heads=7)
