"""The text of a branch: settled tokens, and text that waits for its neighbours.

Adjacent texts merge before they are tokenised, and a token once settled never changes:
text settles where a control token, a generated token or a choice follows it. Every value
here is immutable and shares what came before, so a fork copies nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..runtime.errors import RequestError
from ..runtime.sequence import Int32
from .chat import Turn
from .encoding import TextEncoder

if TYPE_CHECKING:
    from ..runtime.model.interface import Tokenizer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenLink:
    """Tokens after those of `parent`."""

    parent: TokenLink | None
    token_ids: Int32  # [n], n >= 1

    def all_ids(self) -> Int32:
        """Give the tokens from the start of the text."""
        parts = []
        link: TokenLink | None = self
        while link is not None:
            parts.append(link.token_ids)
            link = link.parent
        return np.concatenate(parts[::-1])

    def without_last(self) -> TokenLink | None:
        """Give these tokens without the last one."""
        rest = self.token_ids[:-1]
        return TokenLink(self.parent, rest) if len(rest) else self.parent


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextLink:
    """Plain text after that of `parent`, not yet tokenised.

    `is_given`: the program put it there; else it is a template's, or was generated.
    """

    parent: TextLink | None
    text: str
    is_given: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BranchText:
    """All text of a branch up to one node; `turn` is its last turn, open or closed."""

    tokens: TokenLink | None = None
    pending: TextLink | None = None
    turn: Turn | None = None
    is_turn_open: bool = False

    @property
    def is_empty(self) -> bool:
        """True where nothing was written yet."""
        return self.tokens is None and self.pending is None

    def add(self, text: str, *, is_given: bool = True) -> BranchText:
        """Give this text with plain text after it."""
        return replace(self, pending=TextLink(self.pending, text, is_given)) if text else self

    def pending_text(self) -> str:
        """Give the text that waits to be tokenised, merged."""
        parts = []
        link = self.pending
        while link is not None:
            parts.append(link.text)
            link = link.parent
        return "".join(parts[::-1])

    def ends_as_given(self, data: bytes) -> bool:
        """Say whether the pending text ends with `data`, all of which the program put there."""
        found = b""
        link = self.pending
        while link is not None and link.is_given and len(found) < len(data):
            found = link.text[-len(data) :].encode() + found
            link = link.parent
        return bool(data) and found.endswith(data)


def as_ids(token_ids: Sequence[int]) -> Int32:
    """Give token ids in the runtime's form."""
    return np.asarray(token_ids, dtype=np.int32)


class TextCodec:
    """Turns branch text into tokens, with one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._encoder = TextEncoder(tokenizer)
        self._bos = tokenizer.bos_token_id if tokenizer.adds_bos else None
        controls = sorted(tokenizer.control_tokens, key=len, reverse=True)
        self._controls = re.compile(f"({'|'.join(map(re.escape, controls))})") if controls else None

    def encode(self, text: str) -> Int32:
        """Tokenise plain text; control tokens' spelling in it stays plain."""
        return self._encoder.encode(text)

    def add_template(self, branch: BranchText, text: str) -> BranchText:
        """Add a template's text: its control tokens as such, the rest as plain text."""
        if self._controls is None:
            return branch.add(text, is_given=False)
        parts = self._controls.split(text)  # plain, control, plain, ...
        branch = branch.add(parts[0], is_given=False)
        for control, plain in zip(parts[1::2], parts[2::2], strict=True):
            token_id = self._tokenizer.control_tokens[control]
            branch = self.settle(branch, [token_id]).add(plain, is_given=False)
        return branch

    def settle(self, branch: BranchText, then: Sequence[int] = ()) -> BranchText:
        """Tokenise what is pending, and put the tokens of `then` after it."""
        token_ids = np.concatenate([self.encode(branch.pending_text()), as_ids(then)])
        return replace(branch, tokens=self.grow(branch.tokens, token_ids), pending=None)

    def settle_prompt(self, branch: BranchText) -> BranchText:
        """Settle a text that the model shall go on from: it has at least one token.

        Raises: RequestError (`empty_prompt`) if there is no text and no token to start with.
        """
        branch = self.settle(branch)
        if branch.tokens is None:
            branch = replace(branch, tokens=self.grow(None, as_ids([self.start_token()])))
        return branch

    def check_ids(self, token_ids: Sequence[int]) -> None:
        """Refuse what is no token of the model. Raises: RequestError (`invalid_request`)."""
        vocab_size = self._tokenizer.vocab_size
        wrong = next((i for i in token_ids if not 0 <= i < vocab_size), None)
        if wrong is not None:
            message = f"the token {wrong} is not one of the model's {vocab_size}"
            raise RequestError("invalid_request", message)

    def may_heal(self, before: BranchText, token_id: int) -> bool:
        """Say whether the last token of a text holds nothing but what the program put there.

        `before` is the text as it was before it was settled.
        """
        return before.ends_as_given(self._tokenizer.token_bytes[token_id] or b"")

    def grow(self, tokens: TokenLink | None, token_ids: Int32) -> TokenLink | None:
        """Give `tokens` with these after them; a text's first token is BOS where it must be."""
        if tokens is None and self._bos is not None and token_ids[:1].tolist() != [self._bos]:
            token_ids = np.concatenate([as_ids([self._bos]), token_ids])
        return TokenLink(tokens, token_ids) if len(token_ids) else tokens

    def start_token(self) -> int:
        """Give the token that stands for an empty text: BOS, else an end token.

        Raises: RequestError (`empty_prompt`) if the model has neither.
        """
        if self._tokenizer.bos_token_id is not None:
            return self._tokenizer.bos_token_id
        if self._tokenizer.eos_token_ids:
            return min(self._tokenizer.eos_token_ids)
        raise RequestError(
            "empty_prompt",
            "there is no text to go on from, and the model has no token to start with; "
            "add some text before the first gen or select",
        )
