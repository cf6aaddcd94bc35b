"""How one output grows: grammar, end tokens, text, stop strings and limits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .errors import RequestError
from .grammar.bits import mask_len
from .grammar.spec import CompiledGrammar, GrammarMatcher
from .healing import Border
from .model.interface import Tokenizer
from .sample import SampleRow
from .sequence import FinishReason, Request
from .speculation.follower import Follower
from .text import TextStream


@dataclass(frozen=True, slots=True)
class Room:
    """How far an output may go, in tokens.

    `is_jumping`: tokens that the grammar forces are taken without being drawn.
    """

    max_output: int  # its last length, for whatever reason
    max_context: int  # those that the context can hold beside the prompt
    max_computed: int  # those that the KV pool can hold beside the prompt
    logits_width: int
    is_jumping: bool


@dataclass(slots=True)
class Progress:
    """What a drawn token did, together with those that it forced.

    `text` is now safe to show. `token_ids` are to be computed, if the output is not over.
    `num_taken_back` is set once, where it is first known: how many tokens of the prompt these
    take the place of. It is 0 for a token that turned out to be the prompt's own last one.
    """

    text: str = ""
    finish_reason: FinishReason | None = None
    token_ids: list[int] = field(default_factory=list)
    num_taken_back: int | None = None
    num_tokens: int = 0
    num_forced: int = 0


class Generation:
    """The state of one output.

    Where its grammar forces tokens they come in any case: as they are, or drawn from a mask
    that allows no other.

    With a `border` the first tokens spell the prompt's last one anew: the grammar, if there
    is one, begins with its bytes. Those that do nothing else are none of the output: they
    are no text, and count for no limit but the context's.
    """

    def __init__(
        self,
        request: Request,
        tokenizer: Tokenizer,
        grammar: CompiledGrammar | None,
        room: Room,
        border: Border | None = None,
    ) -> None:
        self.num_tokens = 0
        self.num_forced = 0  # of these, not drawn
        sampling = request.sampling
        self.stream = TextStream(tokenizer.token_bytes, sampling.stop, sampling.keep_stop)
        self._tokens: list[int] = []
        self._coming: list[int] = []  # tokens that are forced, the next one last
        self._request = request
        self._encode = tokenizer.encode
        self._eos_ids = tokenizer.eos_token_ids
        self._matcher = None if grammar is None else grammar.matcher()
        self._room = room
        self._border = border
        self._num_taken_back = 0  # tokens of the prompt
        self._mask_len = mask_len(room.logits_width)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Tokens that lie wholly before a stop string."""
        return tuple(self._tokens[: self.stream.num_kept])

    @property
    def is_healed(self) -> bool:
        """True if `token_ids` stand in place of the prompt's last token."""
        return bool(self._num_taken_back and self.stream.num_kept)

    def row(self) -> SampleRow:
        """Say how the next token is to be drawn."""
        mask = None
        if self._matcher is not None:
            mask = np.zeros(self._mask_len, np.int32)
            forced = self._forced(self._matcher)
            if forced is None:
                self._matcher.fill_bitmask(mask)
            else:
                mask.view(np.uint32)[forced // 32] = 1 << forced % 32
        position = self.num_tokens
        if self._border is not None and self._border.is_open:
            # What follows is drawn as it would be if the prompt's last token had stayed.
            position = -1 - self._border.num_tokens
            mask = self._border.mask() if mask is None else mask
        return SampleRow(
            params=self._request.sampling,
            seed=self._request.seed,
            position=position,
            mask=mask,
            forbid_eos=self._forbids_eos,
        )

    def follower(self) -> Follower:
        """Give what says which tokens could come next, and next to them."""
        num_left = min(
            self._room.max_output - self.num_tokens, self._room.max_context - self._num_added
        )
        return Follower(
            None if self._matcher is None else self._matcher.fork(),
            list(self._coming),
            self._tokens[-1] if self._tokens else None,
            num_left - 1,
            () if self._request.sampling.ignore_eos else self._eos_ids,
            self._encode,
        )

    def begin(self) -> Progress:
        """Take the tokens that must come before any is drawn."""
        if self._room.max_output == 0:
            return Progress(finish_reason="length")
        progress = Progress()
        self._jump(progress)
        return progress

    def take(self, token_id: int) -> Progress:
        """Take the token that was drawn, and those that must follow it.

        Raises: RequestError if the grammar refuses it.
        """
        progress = Progress()
        self._accept(token_id, progress)
        self._jump(progress)
        return progress

    def _jump(self, progress: Progress) -> None:
        matcher, room = self._matcher, self._room
        if matcher is None or not room.is_jumping:
            return
        # A token can be known only once all before it are in the pool, forced or not.
        while progress.finish_reason is None and self._num_added <= room.max_computed:
            try:
                token_id = self._forced(matcher)
            except RequestError:  # `row` meets it again, where it ends this output alone
                return
            if token_id is None:
                return
            num_before = self.num_tokens
            self._accept(token_id, progress)
            self.num_forced += self.num_tokens - num_before
            progress.num_forced += self.num_tokens - num_before

    def _forced(self, matcher: GrammarMatcher) -> int | None:
        """Give the token that must come next; None where there is a choice."""
        if not self._coming:
            last_id = self._tokens[-1] if self._tokens else None
            self._coming.extend(reversed(matcher.forced_tokens(last_id, self._encode)))
        return self._coming[-1] if self._coming else None

    def _accept(self, token_id: int, progress: Progress) -> None:
        if token_id in self._eos_ids and not self._request.sampling.ignore_eos:
            self._count(progress)
            progress.finish_reason = "stop"
            progress.text += self.stream.finish()
            return
        if self._matcher is not None and not self._matcher.accept(token_id):
            raise RequestError("internal", f"the grammar masked token {token_id} and it was drawn")
        if self._coming:
            self._coming.pop()
        if self._border is not None and self._border.is_open:
            self._spell(token_id, self._border, progress)
        else:
            self._count(progress)
            self._append(token_id, progress)
        progress.finish_reason = self._finish_reason()
        if progress.finish_reason is not None:
            progress.text += self.stream.finish()

    def _spell(self, token_id: int, border: Border, progress: Progress) -> None:
        """Take a token that spells the end of the prompt, and may go on beyond it."""
        is_first = border.num_tokens == 0
        if border.take(token_id):
            self._count(progress)
        if is_first:
            is_same = token_id == border.last_id
            progress.num_taken_back = self._num_taken_back = 0 if is_same else 1
            if is_same:
                return
            self.stream.skip(len(border.data))
        self._append(token_id, progress)

    def _count(self, progress: Progress) -> None:
        self.num_tokens += 1
        progress.num_tokens += 1

    def _append(self, token_id: int, progress: Progress) -> None:
        self._tokens.append(token_id)
        progress.token_ids.append(token_id)
        progress.text += self.stream.push(token_id)

    def _finish_reason(self) -> FinishReason | None:
        if self.stream.is_stopped:
            return "stop"
        if self._matcher is not None and self._matcher.is_finished:
            return "stop"
        is_full = self._num_added >= self._room.max_context
        return "length" if is_full or self.num_tokens >= self._room.max_output else None

    @property
    def _num_added(self) -> int:
        """Tokens by which the text is longer than the prompt."""
        return len(self._tokens) - self._num_taken_back

    @property
    def _forbids_eos(self) -> bool:
        sampling = self._request.sampling
        return sampling.ignore_eos or self.num_tokens < sampling.min_tokens
