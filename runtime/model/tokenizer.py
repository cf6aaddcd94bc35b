"""The tokenizer of a model, over the `tokenizers` library, exact to the byte.

Two promises that the library does not make by itself:

- Text never becomes a control token: `<|im_start|>` in a text is eight harmless tokens.
- Nothing is added and no blank is eaten: for the byte-level models, the bytes of
  `encode(text)` joined are the text's bytes. The space that sentencepiece models put before
  a text's first word is not added either, and added tokens do not swallow blanks beside
  them. What remains is the model's own: some normalise text (Qwen: NFC), and a byte or
  character that the vocabulary cannot spell is left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import tokenizers

from ..errors import ModelLoadError
from ..load.tokenizer_source import TokenizerSource, tokenizer_source
from ..load.tokenizer_text import exact, token_spelling


class TextTokenizer:
    """A model's tokenizer; see `interface.Tokenizer` for what each member means."""

    def __init__(self, source: TokenizerSource) -> None:
        data = exact(source)
        text = json.dumps(data, ensure_ascii=False)
        self._inner = _build(source.path, text)
        self._inner.encode_special_tokens = True
        self._path = source.path
        self.chat_template: str | None = source.chat_template
        self.control_tokens: Mapping[str, int] = self._control_tokens()
        self.token_bytes: Sequence[bytes | None] = self._token_bytes(data)
        self._control_ids = frozenset(self.control_tokens.values())
        self._control_pattern = re.compile("|".join(map(re.escape, self.control_tokens)) or "$^")
        self.bos_token_id, self.adds_bos = self._find_bos(source)
        self.eos_token_ids: frozenset[int] = self._find_eos(source)
        self._check_rows(source.num_rows)
        self.digest = _digest(text, self)

    @property
    def vocab_size(self) -> int:
        """One more than the largest id that has a token."""
        return len(self.token_bytes)

    def encode(self, text: str) -> list[int]:
        """Tokenise text; a control token's spelling in it stays plain text. No BOS is added.

        A lone surrogate, which UTF-8 cannot write, becomes U+FFFD.
        """
        ids = self._encode(text)
        if self._control_ids.isdisjoint(ids):
            return ids
        return self._encode_apart(text)

    def _encode(self, text: str) -> list[int]:
        try:
            ids: list[int] = self._inner.encode(text, add_special_tokens=False).ids
        except (UnicodeEncodeError, TypeError):
            clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            ids = self._inner.encode(clean, add_special_tokens=False).ids
        return ids

    def _encode_apart(self, text: str) -> list[int]:
        """Encode text in which a model without merges found a control token as a word.

        Cutting inside the spelling keeps the model from seeing it whole; what is left is
        the token for the unknown, which has no text.
        """
        cuts = [0, *(match.start() + 1 for match in self._control_pattern.finditer(text))]
        pieces = (text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True))
        ids = (token_id for piece in pieces for token_id in self._encode(piece))
        return [token_id for token_id in ids if token_id not in self._control_ids]

    def _control_tokens(self) -> dict[str, int]:
        added = self._inner.get_added_tokens_decoder()
        return {token.content: token_id for token_id, token in added.items() if token.special}

    def _token_bytes(self, data: Mapping[str, object]) -> tuple[bytes | None, ...]:
        spell = token_spelling(data, self._path)
        vocab = self._inner.get_vocab(with_added_tokens=True)
        table: list[bytes | None] = [None] * (max(vocab.values(), default=-1) + 1)
        for token, token_id in vocab.items():
            table[token_id] = spell(token)
        for token_id, added in self._inner.get_added_tokens_decoder().items():
            table[token_id] = None if added.special else added.content.encode()
        return tuple(table)

    def _find_bos(self, source: TokenizerSource) -> tuple[int | None, bool]:
        """Find BOS and whether the model wants it; an explicit flag beats the post-processor."""
        named = None if source.bos_token is None else self._id_of(source.bos_token, "bos_token")
        written = self._written_bos()
        adds_bos = written is not None if source.adds_bos is None else source.adds_bos
        bos = written if source.adds_bos is None and written is not None else named
        if adds_bos and bos is None:
            bos = written
        if adds_bos and bos is None:
            raise ModelLoadError(f"{self._path}: add_bos_token is true and no bos_token is named")
        return bos, adds_bos

    def _written_bos(self) -> int | None:
        """Give the control token that the post-processor puts before a text, if any."""
        plain = self._inner.encode("a", add_special_tokens=False).ids
        first = self._inner.encode("a", add_special_tokens=True).ids[:1]
        if first and first != plain[:1] and first[0] in self._control_ids:
            return int(first[0])
        return None

    def _find_eos(self, source: TokenizerSource) -> frozenset[int]:
        """Unite the end tokens; an id without a token can never come and is left out."""
        ids = (
            self._id_of(token, "eos_token") if isinstance(token, str) else token
            for token in source.eos_tokens
        )
        return frozenset(token_id for token_id in ids if 0 <= token_id < self.vocab_size)

    def _id_of(self, token: str, role: str) -> int:
        token_id = self._inner.token_to_id(token)
        if token_id is None:
            raise ModelLoadError(f"{self._path}: {role} {token!r} is not in the vocabulary")
        return int(token_id)

    def _check_rows(self, num_rows: int | None) -> None:
        if num_rows is not None and self.vocab_size > num_rows:
            raise ModelLoadError(
                f"{self._path}: the tokenizer has {self.vocab_size} ids and the model only "
                f"{num_rows} rows; they are of different models, or tokens were added to one"
            )


def load_tokenizer(path: Path) -> TextTokenizer:
    """Load the tokenizer of a GGUF file, a pulled model's folder, or a Hugging Face folder.

    Raises: ModelLoadError, naming the file and what is wrong with it.
    """
    return TextTokenizer(tokenizer_source(path))


def _build(path: Path, text: str) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as e:  # the library raises bare Exception
        raise ModelLoadError(f"{path}: its tokenizer cannot be built: {e}") from e


def _digest(text: str, tokenizer: TextTokenizer) -> str:
    parts = (text, tokenizer.bos_token_id, tokenizer.adds_bos, sorted(tokenizer.eos_token_ids))
    return hashlib.sha256(repr(parts).encode()).hexdigest()
