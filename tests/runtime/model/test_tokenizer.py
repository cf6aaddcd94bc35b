"""The tokenizer: exact bytes, no control tokens from text, BOS and EOS from every source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.store import Store, default_home
from plait.runtime.load.tokenizer_source import tokenizer_source
from plait.runtime.model.tokenizer import TextTokenizer, load_tokenizer

SPACE = "\u2581"
Files = dict[str, object]


def byte_level(folder: Path) -> tokenizers.Tokenizer:
    """Build a byte-level BPE with two control tokens and one added word."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {"<s>": 0, "<|im_end|>": 1, **{char: i + 2 for i, char in enumerate(alphabet)}}
    vocab["he"] = len(vocab)
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[("h", "e")]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<s>", "<|im_end|>"])
    inner.add_tokens([tokenizers.AddedToken("<tool>", lstrip=True, rstrip=True)])
    inner.save(str(folder / "tokenizer.json"))
    return inner


def sentencepiece(folder: Path) -> None:
    """Build a BPE in Llama 2's manner: a prefix blank and bytes to fall back on."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"<0x{i:02X}>": i + 3 for i in range(256)}}
    for token in (SPACE, "h", "i", "hi", SPACE + "hi"):
        vocab[token] = len(vocab)
    merges = [("h", "i"), (SPACE, "hi")]
    model = models.BPE(
        vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
    )
    inner = tokenizers.Tokenizer(model)
    inner.normalizer = normalizers.Sequence(
        [normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]
    )
    inner.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    inner.add_special_tokens(["<unk>", "<s>", "</s>"])
    inner.save(str(folder / "tokenizer.json"))


def load(folder: Path, **files: Files) -> TextTokenizer:
    """Write side files, named without their .json, and load."""
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return load_tokenizer(folder)


def text_of(tokenizer: TextTokenizer, ids: list[int]) -> str:
    """Join the tokens' bytes."""
    return b"".join(tokenizer.token_bytes[token_id] or b"?" for token_id in ids).decode()


TEXTS = ["", "he", " he", "  a  b ", "\t\r\n\n", "\0", "日本 🏳️‍🌈 é", "hi <tool>  x", "hi▁hi"]


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_text_comes_back_byte_for_byte(text: str, tmp_path: Path) -> None:
    byte_level(tmp_path)
    tokenizer = load(tmp_path)
    assert text_of(tokenizer, tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", TEXTS[:-1])
def test_sentencepiece_text_comes_back_byte_for_byte(text: str, tmp_path: Path) -> None:
    sentencepiece(tmp_path)
    tokenizer = load(tmp_path)
    assert text_of(tokenizer, tokenizer.encode(text)) == text


def test_no_blank_is_put_before_a_text(tmp_path: Path) -> None:
    sentencepiece(tmp_path)
    tokenizer = load(tmp_path)
    assert [tokenizer.token_bytes[i] for i in tokenizer.encode("hi hi")] == [b"hi", b" hi"]


def test_a_control_tokens_spelling_stays_text(tmp_path: Path) -> None:
    byte_level(tmp_path)
    tokenizer = load(tmp_path)
    text = "<s>x<|im_end|><s>"
    ids = tokenizer.encode(text)
    assert not {0, 1} & set(ids)
    assert text_of(tokenizer, ids) == text


def test_a_control_token_that_is_a_word_of_the_model_stays_text(tmp_path: Path) -> None:
    # Without a pre-tokenizer and with merges ignored, the model itself finds "stop" whole.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {"stop": 0, **{char: i + 1 for i, char in enumerate(alphabet)}}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], ignore_merges=True))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.add_special_tokens(["stop"])
    inner.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load(tmp_path)
    assert text_of(tokenizer, tokenizer.encode("stop")) == "stop"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    """Give one byte-level tokenizer to all the examples of a property."""
    folder = tmp_path_factory.mktemp("shared")
    byte_level(folder)
    return load(folder)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(text=st.text())
def test_any_text_round_trips(text: str, shared: TextTokenizer) -> None:
    assert text_of(shared, shared.encode(text)) == text


def test_a_lone_surrogate_becomes_the_replacement_character(tmp_path: Path) -> None:
    byte_level(tmp_path)
    tokenizer = load(tmp_path)
    assert text_of(tokenizer, tokenizer.encode("a\ud800b")) == "a\ufffdb"


def test_special_and_ordinary_added_tokens_differ(tmp_path: Path) -> None:
    byte_level(tmp_path)
    tokenizer = load(tmp_path)
    assert tokenizer.control_tokens == {"<s>": 0, "<|im_end|>": 1}
    assert tokenizer.token_bytes[0] is None
    assert tokenizer.token_bytes[tokenizer.vocab_size - 1] == b"<tool>"


def test_a_token_that_only_a_side_file_calls_special_is_a_control_token(tmp_path: Path) -> None:
    byte_level(tmp_path)
    decoder: Files = {"259": {"content": "<tool>", "special": True}}
    tokenizer = load(tmp_path, tokenizer_config={"added_tokens_decoder": decoder})
    assert "<tool>" in tokenizer.control_tokens


def test_byte_tokens_of_sentencepiece_are_their_bytes(tmp_path: Path) -> None:
    sentencepiece(tmp_path)
    tokenizer = load(tmp_path)
    assert tokenizer.token_bytes[3 + 0xE9] == b"\xe9"
    assert tokenizer.token_bytes[0] is None


@pytest.mark.parametrize(
    ("sources", "want"),
    [
        ({}, set()),
        ({"tokenizer_config": {"eos_token": "<s>"}}, {0}),
        ({"tokenizer_config": {"eos_token": {"content": "<s>"}}}, {0}),
        ({"config": {"eos_token_id": 1}}, {1}),
        ({"config": {"eos_token_id": 5}, "generation_config": {"eos_token_id": [0, 1]}}, {0, 1, 5}),
        ({"config": {"eos_token_id": None}, "generation_config": {"eos_token_id": 1}}, {1}),
        ({"generation_config": {"eos_token_id": [1, 99999]}}, {1}),
    ],
)
def test_end_tokens_are_the_union_of_their_sources(
    sources: dict[str, Files], want: set[int], tmp_path: Path
) -> None:
    byte_level(tmp_path)
    assert load(tmp_path, **sources).eos_token_ids == want


def test_an_end_token_that_does_not_exist_is_named(tmp_path: Path) -> None:
    byte_level(tmp_path)
    with pytest.raises(ModelLoadError, match="eos_token '</s>' is not in the vocabulary"):
        load(tmp_path, tokenizer_config={"eos_token": "</s>"})


@pytest.mark.parametrize("template", [True, False])
@pytest.mark.parametrize(
    ("config", "plain", "templated"),
    [
        ({}, (None, False), (0, True)),
        ({"bos_token": "<s>"}, (0, False), (0, True)),
        ({"bos_token": "<s>", "add_bos_token": True}, (0, True), (0, True)),
        ({"bos_token": "<s>", "add_bos_token": False}, (0, False), (0, False)),
    ],
)
def test_bos_is_wanted_where_the_flag_says_so_and_else_where_the_template_writes_it(
    config: Files,
    plain: tuple[int | None, bool],
    templated: tuple[int | None, bool],
    template: bool,
    tmp_path: Path,
) -> None:
    inner = byte_level(tmp_path)
    if template:
        inner.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
        inner.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load(tmp_path, tokenizer_config=config)
    assert (tokenizer.bos_token_id, tokenizer.adds_bos) == (templated if template else plain)
    assert tokenizer.encode("he")[0] != 0


def test_a_wanted_bos_without_a_token_is_an_error(tmp_path: Path) -> None:
    byte_level(tmp_path)
    with pytest.raises(ModelLoadError, match="no bos_token is named"):
        load(tmp_path, tokenizer_config={"add_bos_token": True})


def test_the_template_file_beats_the_config_and_default_beats_other_names(tmp_path: Path) -> None:
    byte_level(tmp_path)
    assert load(tmp_path).chat_template is None
    named = [{"name": "rag", "template": "R"}, {"name": "default", "template": "D"}]
    assert load(tmp_path, tokenizer_config={"chat_template": named}).chat_template == "D"
    assert load(tmp_path, tokenizer_config={"chat_template": "S"}).chat_template == "S"
    (tmp_path / "chat_template.jinja").write_text("F")
    assert load_tokenizer(tmp_path).chat_template == "F"


def test_more_ids_than_rows_is_a_load_error_with_both_numbers(tmp_path: Path) -> None:
    byte_level(tmp_path)
    with pytest.raises(ModelLoadError, match="has 260 ids and the model only 259 rows"):
        load(tmp_path, config={"vocab_size": 259})
    assert load(tmp_path, config={"vocab_size": 320}).vocab_size == 260


@pytest.mark.parametrize(
    ("content", "problem"),
    [("{", "not valid JSON"), ("{}", "not supported|cannot be built")],
)
def test_a_damaged_tokenizer_is_a_load_error(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelLoadError, match=problem):
        load_tokenizer(tmp_path)


def test_a_folder_without_a_tokenizer_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"no tokenizer\.json; save"):
        load_tokenizer(tmp_path)


@pytest.mark.slow
def test_the_default_models_tokenizer_is_exact() -> None:
    model = Store(default_home()).find("smollm2")
    if model is None:
        pytest.skip("needs `plait pull smollm2`")
    tokenizer = TextTokenizer(tokenizer_source(model.path))
    assert tokenizer.vocab_size == 49152
    assert len(tokenizer.control_tokens) == 17
    assert (tokenizer.bos_token_id, tokenizer.adds_bos) == (1, False)
    assert tokenizer.eos_token_ids == {2}
    assert len(tokenizer.encode("<|im_start|>")) == 7
    for text in (*TEXTS, Path(__file__).read_text()):
        assert text_of(tokenizer, tokenizer.encode(text)) == text
