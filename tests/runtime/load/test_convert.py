"""GGUF tokenizers become tokenizer.json: right for the known kinds, refused for the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import gguf
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.convert_sentencepiece import sentencepiece_parts
from plait.runtime.load.pretokenizers import PRE_TOKENIZERS
from plait.runtime.load.store import Store, default_home
from plait.runtime.load.tokenizer_source import TokenizerSource, tokenizer_source, write_source
from plait.runtime.model.tokenizer import TextTokenizer, load_tokenizer

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


PIECES = ["a", "b", "c", "\u2581", "ab", "bc", "\u2581a", "abc", "\u2581ab", "ca", "\u2581\u2581"]


def write_pieces(writer: gguf.GGUFWriter, *, scores: bool = True) -> None:
    """Add a sentencepiece vocabulary: unknown, BOS, the bytes, then `PIECES` by rank."""
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", *fallback, *PIECES]
    writer.add_token_list(tokens)
    writer.add_token_types([2, 3, *[6] * 256, *[1] * len(PIECES)])
    if scores:
        writer.add_token_scores([0.0] * 258 + [-float(rank) for rank in range(len(PIECES))])


def slow_sentencepiece(text: str) -> list[str]:
    """Join the neighbours with the best joint piece until none is left: the definition."""
    parts = list(text.replace(" ", "\u2581"))
    while True:
        joints = [
            (PIECES.index(a + b), at)
            for at, (a, b) in enumerate(pairwise(parts))
            if a + b in PIECES
        ]
        if not joints:
            return parts
        at = min(joints)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@pytest.fixture(scope="module")
def pieces() -> TextTokenizer:
    """Give a tokenizer over `PIECES`."""
    data = sentencepiece_parts(
        {piece: index for index, piece in enumerate(PIECES)},
        PIECES,
        {piece: -float(rank) for rank, piece in enumerate(PIECES)},
        None,
    )
    return TextTokenizer(TokenizerSource(Path("x"), data, None, False, frozenset(), None))


@settings(derandomize=True, max_examples=300, deadline=None)
@given(text=st.text("abc ", max_size=12))
def test_sentencepiece_merges_equal_the_definition(text: str, pieces: TextTokenizer) -> None:
    assert [PIECES[token_id] for token_id in pieces.encode(text)] == slow_sentencepiece(text)


def test_a_sentencepiece_file_is_read_with_its_bytes_and_bos(
    write_gguf: Write, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", model="llama", vocabulary=write_pieces)
    tokenizer = load_tokenizer(path)
    assert (tokenizer.bos_token_id, tokenizer.adds_bos) == (1, True)
    assert tokenizer.control_tokens == {"<unk>": 0, "<s>": 1}
    spelled = [tokenizer.token_bytes[token_id] for token_id in tokenizer.encode(" ab abcé<s>")]
    assert spelled[:5] == [b" ab", b" ", b"abc", b"\xc3", b"\xa9"]
    assert b"<s>" not in spelled


def test_a_sentencepiece_file_without_scores_is_refused(write_gguf: Write, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="scores is missing"):
        load_tokenizer(
            write_gguf(
                tmp_path / "m.gguf",
                model="llama",
                vocabulary=lambda writer: write_pieces(writer, scores=False),
            )
        )


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
