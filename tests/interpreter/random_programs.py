"""Programs at random, as data that a body performs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from plait import Function, State, function, gen, select


@dataclass(frozen=True)
class Say:
    """Append text."""

    text: str


@dataclass(frozen=True)
class Ask:
    """Append a gen, or a select, that sets a variable."""

    name: str | None
    num_tokens: int
    is_select: bool


@dataclass(frozen=True)
class Quote:
    """Append a variable: by reference, or read into a text; nothing if it is not set."""

    name: str
    is_read: bool


@dataclass(frozen=True)
class Turn:
    """Do things inside a turn."""

    role: str
    inner: tuple[Step, ...]


@dataclass(frozen=True)
class Split:
    """Fork between two texts, do the same in each branch, and perhaps join."""

    before: str
    width: int
    inner: tuple[Step, ...]
    is_joined: bool
    after: str


Step: TypeAlias = Say | Ask | Quote | Turn | Split

NAMES = ("a", "b", "c")
texts = st.text("xyz <", max_size=4)
plain: st.SearchStrategy[Step] = st.one_of(
    st.builds(Say, texts),
    st.builds(Say, texts),
    st.builds(Ask, st.sampled_from([*NAMES, None]), st.integers(1, 3), st.booleans()),
    st.builds(Quote, st.sampled_from(NAMES), st.booleans()),
)
inside = st.lists(plain, max_size=4).map(tuple)


turns = st.builds(Turn, st.sampled_from(["system", "user", "assistant"]), inside)


def _branching(inner: st.SearchStrategy[tuple[Step, ...]]) -> st.SearchStrategy[tuple[Step, ...]]:
    splits = st.builds(Split, texts, st.integers(1, 3), inner, st.booleans(), texts)
    return st.lists(st.one_of(plain, turns, splits), max_size=6).map(tuple)


programs = _branching(_branching(st.lists(st.one_of(plain, turns), max_size=4).map(tuple)))


def perform(s: State, steps: Sequence[Step]) -> None:
    """Do the steps."""
    for step in steps:
        match step:
            case Say(text):
                s += text
            case Ask(name, num_tokens, is_select):
                if is_select:
                    s += select(name, ["yes", "no", "yes, so"], temperature=num_tokens - 1)
                else:
                    s += gen(name, max_tokens=num_tokens, heal=False)
            case Quote(name, is_read) if name in s and name in s._own:
                s += f"<{s[name]}>" if is_read else s.ref(name)
            case Quote():
                pass
            case Turn(role, inner):
                with getattr(s, role)():
                    perform(s, inner)
            case Split(before, width, inner, is_joined, after):
                s += before
                forks = s.fork(width)
                for i, branch in enumerate(forks):
                    branch += f"{i}"
                    perform(branch, inner)
                if is_joined:
                    forks.join()
                s += after


def program_of(steps: Sequence[Step]) -> Function:
    """Give the program that says a word, so that there is a prompt, and does the steps."""

    @function
    def made(s: State) -> None:
        s += "go "
        perform(s, steps)

    return made
