"""Chat templates, rendered so that earlier text never changes.

The template is rendered over sentinels instead of contents, so what users and models
write is never trimmed, escaped or interpreted, and what a turn's begin and end add
depends on the roles so far alone. An author's text is added between them as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from jinja2 import Template

from ..lang.ops import Role
from ..runtime.errors import RequestError
from .jinja import compile_template, render

# Role sequences that are remembered before the memory is started afresh.
_MAX_TURNS = 10_000


@dataclass(frozen=True, slots=True)
class _Voice:
    """What all turns of one talk are rendered with."""

    template: Template
    bos_token: str
    eos_token: str


class Turn:
    """One turn after all turns before it: what opens it and what closes it.

    The first one of a talk has no role and no text. Turns are shared by all talks with
    the same roles; only `ChatTemplate` adds to `next_turns`.
    """

    __slots__ = ("begin", "end", "next_turns", "previous", "role", "voice")

    def __init__(
        self, voice: _Voice, previous: Turn | None, role: Role | None, begin: str, end: str
    ) -> None:
        self.voice = voice
        self.previous = previous
        self.role: Role | None = role
        self.begin = begin
        self.end = end
        self.next_turns: dict[Role, Turn] = {}

    def path(self) -> list[Turn]:
        """Give the turns from the first role to this one."""
        turns: list[Turn] = []
        turn: Turn | None = self
        while turn is not None and turn.role is not None:
            turns.append(turn)
            turn = turn.previous
        return turns[::-1]


class ChatTemplate:
    """A model's chat template, None if it has none. Used by one thread."""

    def __init__(self, source: str | None, *, bos_token: str, eos_token: str) -> None:
        self._source = source
        self._bos_token = bos_token
        self._eos_token = eos_token
        self._starts: dict[bool, Turn] = {}
        self._today = datetime.now()
        self._num_turns = 0

    def start(self, *, is_text_start: bool) -> Turn:
        """Start a talk: at the start of a text (with the BOS that the template writes), or
        after plain text, which has its own. All turns of a talk are rendered with one time.

        Raises: RequestError: `no_template`, or `bad_template` if it does not compile.
        """
        now = datetime.now()
        if now.date() != self._today.date() or self._num_turns > _MAX_TURNS:
            self._starts, self._today, self._num_turns = {}, now, 0
        if is_text_start not in self._starts:
            bos_token = self._bos_token if is_text_start else ""
            voice = _Voice(_compiled(self._source, self._today), bos_token, self._eos_token)
            self._starts[is_text_start] = Turn(voice, None, None, "", "")
        return self._starts[is_text_start]

    def next_turn(self, turn: Turn, role: Role) -> Turn:
        """Give the turn of `role` that follows `turn`.

        Raises: RequestError (`bad_template`) where the template refuses these roles, drops
        a turn's text, or changes what stands before.
        """
        if role not in turn.next_turns:
            turn.next_turns[role] = _follow(turn, role)
            self._num_turns += 1
        return turn.next_turns[role]


def _compiled(source: str | None, now: datetime) -> Template:
    if source is None:
        raise RequestError(
            "no_template",
            "the model has no chat template, so it has no roles; write the turns as plain "
            "text, or use a model whose files include a chat template",
        )
    try:
        return compile_template(source, now)
    except Exception as e:
        raise RequestError(
            "bad_template",
            f"the model's chat template does not compile: {e}; correct it in the model's "
            "files, or write the turns as plain text",
        ) from e


def _follow(turn: Turn, role: Role) -> Turn:
    before = turn.path()
    roles: list[Role] = [*(t.role for t in before if t.role is not None), role]
    pieces = _pieces_in_talk(turn.voice, roles)
    begin = ""
    if role == "assistant" and before:
        begin = _added(before, _pieces(turn.voice, roles[:-1], is_prompt=True), roles)
    if not begin:  # a template may have no generation prompt
        begin = _added(before, pieces[:-1], roles)
    return Turn(turn.voice, turn, role, begin, pieces[-1])


def _pieces_in_talk(voice: _Voice, roles: Sequence[Role]) -> list[str]:
    """Render these roles; a first system turn alone may need the user turn that follows.

    Some templates write the system text into the first user turn. What stands between the
    two then belongs to that turn's begin.
    """
    try:
        return _pieces(voice, roles, is_prompt=False)
    except RequestError:
        if list(roles) != ["system"]:
            raise
        with suppress(RequestError):  # then the template's first refusal tells more
            return [_pieces(voice, ("system", "user"), is_prompt=False)[0], ""]
        raise


def _pieces(voice: _Voice, roles: Sequence[Role], *, is_prompt: bool) -> list[str]:
    """Render these roles and give the texts around the contents: one more than roles."""
    marks = [f"plaitTurn{i:06d}Content" for i in range(len(roles))]
    try:
        text = render(
            voice.template,
            [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)],
            bos_token=voice.bos_token,
            eos_token=voice.eos_token,
            add_generation_prompt=is_prompt,
        )
    except Exception as e:  # a template is the model's code: it may raise anything
        raise _bad_template(roles, f"it refuses them: {e}") from e
    return _split(text, marks, roles)


def _split(text: str, marks: Sequence[str], roles: Sequence[Role]) -> list[str]:
    pieces = []
    for i, mark in enumerate(marks):
        piece, found, text = text.partition(mark)
        if not found or mark in text:
            what = "repeats" if found else "drops or moves"
            raise _bad_template(roles, f"it {what} the text of turn {i + 1} ({roles[i]})")
        pieces.append(piece)
    return [*pieces, text]


def _added(before: Sequence[Turn], pieces: Sequence[str], roles: Sequence[Role]) -> str:
    """Give what the last piece adds to the turns before; all else must be as it was."""
    written = [previous.end + turn.begin for previous, turn in pairwise(before)]
    if before:
        written.insert(0, before[0].begin)
    end = before[-1].end if before else ""
    if list(pieces[:-1]) != written or not pieces[-1].startswith(end):
        raise _bad_template(roles, "it changes the text before the last turn")
    return pieces[-1][len(end) :]


def _bad_template(roles: Sequence[Role], what: str) -> RequestError:
    shown = ", ".join(roles[-4:])
    return RequestError(
        "bad_template",
        f"the model's chat template cannot render the roles {'..., ' if roles[4:] else ''}{shown}: "
        f"{what}. Use the roles in an order that it accepts (a system text may go at the start "
        "of the first user turn), or write the turns as plain text",
    )
