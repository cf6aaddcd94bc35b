"""GGUF tokenizers become tokenizer.json: right for the known kinds, refused for the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.pretokenizers import PRE_TOKENIZERS
from plait.runtime.load.store import Store, default_home
from plait.runtime.load.tokenizer_source import tokenizer_source, write_source
from plait.runtime.model.tokenizer import load_tokenizer

Write = Callable[..., Path]


def words(pre: str, text: str) -> list[str]:
    """Cut text as the named pre-tokenizer does, with visible blanks as themselves."""
    step = PRE_TOKENIZERS[pre].pre_tokenizer()
    data = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": step,
        "model": {"type": "BPE", "vocab": {}, "merges": []},
    }
    inner = tokenizers.Tokenizer.from_str(json.dumps(data)).pre_tokenizer
    return [text[a:b] for _, (a, b) in inner.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("pre", "want"),
    [
        ("gpt-2", ["I", "'m", " A", " 12345", "  ", " x", "\n\n"]),
        ("smollm", ["I", "'m", " A", " ", "1", "2", "3", "4", "5", "  ", " x", "\n\n"]),
        ("llama-bpe", ["I", "'m", " A", " ", "123", "45", "  ", " x", "\n\n"]),
        ("qwen2", ["I", "'m", " A", " ", "1", "2", "3", "4", "5", "  ", " x", "\n\n"]),
        ("tekken", ["I", "'m", " A", " ", "1", "2", "3", "4", "5", "  ", " x", "\n\n"]),
    ],
)
def test_each_kind_cuts_text_its_own_way(pre: str, want: list[str]) -> None:
    assert words(pre, "I'm A 12345   x\n\n") == want


def test_only_the_case_aware_kind_cuts_inside_a_camel_case_word() -> None:
    assert words("tekken", "CamelCase") == ["Camel", "Case"]
    assert words("llama-bpe", "CamelCase") == ["CamelCase"]


def test_token_types_decide_what_has_bytes(write_gguf: Write, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_gguf(tmp_path / "m.gguf"))
    assert tokenizer.control_tokens == {"<|end|>": 0, "<|user|>": 1}
    assert tokenizer.token_bytes[0] is None
    assert tokenizer.token_bytes[2 + 0xFF] == b"\xff"
    assert tokenizer.token_bytes[258:261] == (b"he", b" he", b"<tool>")
    assert tokenizer.vocab_size == 261  # the padding that follows has no tokens


def test_merges_and_user_defined_tokens_work(write_gguf: Write, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_gguf(tmp_path / "m.gguf"))
    assert tokenizer.encode("he he<tool>") == [258, 259, 260]


def test_all_end_tokens_of_the_metadata_count(write_gguf: Write, tmp_path: Path) -> None:
    assert load_tokenizer(write_gguf(tmp_path / "m.gguf")).eos_token_ids == {0, 1}


@pytest.mark.parametrize(
    ("pre", "flag", "adds"),
    [
        ("smollm", None, False),
        ("smollm", True, True),
        ("llama-bpe", None, True),
        ("llama-bpe", False, False),
    ],
)
def test_bos_is_as_the_file_says_and_else_as_the_kind_wants(
    pre: str, flag: bool | None, adds: bool, write_gguf: Write, tmp_path: Path
) -> None:
    extra = None if flag is None else lambda w: w.add_add_bos_token(flag)
    tokenizer = load_tokenizer(write_gguf(tmp_path / "m.gguf", pre=pre, extra=extra))
    assert (tokenizer.bos_token_id, tokenizer.adds_bos) == (1, adds)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pre": None}, r"pre is missing.*tokenizer\.json beside"),
        ({"pre": "dbrx"}, r"'dbrx' is not supported.*tokenizer\.json beside"),
        ({"model": "bert"}, r"tokenizer 'bert'.*tokenizer\.json beside"),
    ],
)
def test_an_unknown_kind_is_refused_with_the_remedy(
    options: dict[str, str | None], problem: str, write_gguf: Write, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=problem):
        load_tokenizer(write_gguf(tmp_path / "m.gguf", **options))


def test_a_tokenizer_beside_the_file_is_the_remedy(write_gguf: Write, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_source(tokenizer_source(write_gguf(tmp_path / "known.gguf")), tmp_path / "a")
    path = write_gguf(tmp_path / "a" / "m.gguf", pre=None)
    assert load_tokenizer(path).encode("he") == [258]


def test_a_tokenizer_of_another_model_beside_the_file_is_refused(
    write_gguf: Write, tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {"q": 1}}}')
    with pytest.raises(ModelLoadError, match="is of another model: its token 1 is 'q'"):
        load_tokenizer(write_gguf(tmp_path / "m.gguf", pre=None))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_default_model_tokenises_as_transformers_does_with_the_right_digits() -> None:
    """Compare with transformers' conversion, of which one step is known to be wrong.

    It gives every GGUF of this kind GPT-2's pre-tokenizer; SmolLM2 cuts single digits off.
    """
    transformers = pytest.importorskip("transformers")
    model = Store(default_home()).find("smollm2")
    if model is None:
        pytest.skip("needs `plait pull smollm2`")
    theirs = transformers.AutoTokenizer.from_pretrained(
        str(model.path), gguf_file="model.gguf"
    ).backend_tokenizer
    pre = tokenizers.pre_tokenizers
    theirs.pre_tokenizer = pre.Sequence([pre.Digits(True), pre.ByteLevel(add_prefix_space=False)])
    theirs.encode_special_tokens = True
    ours = load_tokenizer(model.path)
    for path in sorted(Path(__file__).resolve().parents[3].glob("*/*.py")):
        text = path.read_text()
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids
