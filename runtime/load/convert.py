"""A GGUF file's tokenizer, as the parts of a tokenizer.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NoReturn

from ..errors import ModelLoadError
from .convert_sentencepiece import sentencepiece_parts
from .gguf import GgufFile
from .pretokenizers import PRE_TOKENIZERS, PreTokenizer, byte_level

_KEY = "tokenizer.ggml."
_REMEDY = "put the model's own tokenizer.json beside the file"


class _TokenType(IntEnum):
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class GgufVocabulary:
    """The tokenizer's metadata, checked against each other."""

    file: GgufFile
    tokens: Sequence[str]
    types: Sequence[int]

    def fail(self, problem: str) -> NoReturn:
        """Raise a ModelLoadError that names the file."""
        raise ModelLoadError(f"{self.file.path}: {problem}")

    def get(self, key: str) -> object:
        """Give the value of `tokenizer.ggml.{key}`, None if absent."""
        return self.file.metadata.get(_KEY + key)

    def token_id(self, key: str) -> int | None:
        """Give a token id from the metadata, None if absent.

        Raises: ModelLoadError if no token has it.
        """
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or not 0 <= value < len(self.tokens):
            self.fail(f"{_KEY}{key} is {value!r}; the file has {len(self.tokens)} tokens")
        return value

    @property
    def is_sentencepiece(self) -> bool:
        """True for sentencepiece's BPE, which GGUF calls llama."""
        return self.get("model") == "llama"

    def pre(self) -> PreTokenizer:
        """Find how text is cut into words.

        Raises: ModelLoadError where the file does not say, or names an unknown way.
        """
        if self.get("model") != "gpt2":
            self.fail(f"tokenizer {self.get('model')!r} in a GGUF is not supported; {_REMEDY}")
        name = self.get("pre")
        if name is None:
            self.fail(f"{_KEY}pre is missing, so how text is cut is unknown; {_REMEDY}")
        if not isinstance(name, str) or name not in PRE_TOKENIZERS:
            self.fail(
                f"pre-tokenizer {name!r} is not supported "
                f"({', '.join(PRE_TOKENIZERS)} are); {_REMEDY}"
            )
        return PRE_TOKENIZERS[name]


def read_vocabulary(file: GgufFile) -> GgufVocabulary:
    """Read the tokens and their types.

    Raises: ModelLoadError if they are missing, do not fit each other, or outnumber the rows
    of the embedding.
    """
    tokens, types = file.metadata.get(_KEY + "tokens"), file.metadata.get(_KEY + "token_type")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ModelLoadError(f"{file.path}: {_KEY}tokens is missing; {_REMEDY}")
    if types is None:
        types = [int(_TokenType.NORMAL)] * len(tokens)
    if not isinstance(types, list) or len(types) != len(tokens):
        raise ModelLoadError(f"{file.path}: {_KEY}token_type does not fit {_KEY}tokens")
    return GgufVocabulary(file, tokens, types)


def default_adds_bos(vocabulary: GgufVocabulary) -> bool:
    """Tell whether models of this kind want a BOS where the file does not say."""
    return vocabulary.is_sentencepiece or vocabulary.pre().adds_bos


def tokenizer_data(vocabulary: GgufVocabulary) -> dict[str, object]:
    """Build the tokenizer.json; all control tokens are special.

    Ids whose type is UNUSED are left out: they are padding.

    Raises: ModelLoadError, naming what is missing or unknown.
    """
    parts = _sentencepiece if vocabulary.is_sentencepiece else _byte_level
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        "post_processor": None,
        **parts(vocabulary),
    }


def _byte_level(vocabulary: GgufVocabulary) -> dict[str, object]:
    pre = vocabulary.pre()
    return {
        "normalizer": pre.normalizer(),
        "pre_tokenizer": pre.pre_tokenizer(),
        "decoder": byte_level(use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre.ignores_merges,
            "vocab": _vocab(vocabulary),
            "merges": _merges(vocabulary),
        },
    }


def _sentencepiece(vocabulary: GgufVocabulary) -> dict[str, object]:
    tokens, scores = vocabulary.tokens, vocabulary.get("scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        vocabulary.fail(f"{_KEY}scores is missing or does not fit {_KEY}tokens; {_REMEDY}")
    typed = list(zip(tokens, vocabulary.types, strict=True))
    unknown = next((token for token, kind in typed if kind == _TokenType.UNKNOWN), None)
    return sentencepiece_parts(
        vocab=_vocab(vocabulary),
        pieces=[token for token, kind in typed if kind == _TokenType.NORMAL],
        scores=dict(zip(tokens, scores, strict=True)),
        unknown=unknown,
    )


def _vocab(vocabulary: GgufVocabulary) -> dict[str, int]:
    vocab: dict[str, int] = {}
    for token_id, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)):
        # Of two tokens with one text the first counts; the other can never be written.
        if kind != _TokenType.UNUSED:
            vocab.setdefault(token, token_id)
    return vocab


def _added_tokens(vocabulary: GgufVocabulary) -> list[dict[str, object]]:
    special = (_TokenType.CONTROL, _TokenType.UNKNOWN)
    return [
        {
            "id": token_id,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind in special,
        }
        for token_id, (token, kind) in enumerate(
            zip(vocabulary.tokens, vocabulary.types, strict=True)
        )
        if kind in (*special, _TokenType.USER_DEFINED)
    ]


def _merges(vocabulary: GgufVocabulary) -> list[list[str]]:
    merges = vocabulary.get("merges")
    if not isinstance(merges, list):
        vocabulary.fail(f"{_KEY}merges is missing; {_REMEDY}")
    pairs = [str(merge).split(" ", 1) for merge in merges]
    for index, pair in enumerate(pairs):
        if len(pair) != 2:
            vocabulary.fail(f"{_KEY}merges[{index}] is {pair[0]!r}, not two tokens")
    return pairs
