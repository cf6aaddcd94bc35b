"""The text of a branch as an HTTP server takes it: messages for a chat, one text otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ...lang.ops import Role
from ...runtime.errors import RequestError
from ..backend import NodeMeta

Api: TypeAlias = Literal["chat", "completions"]


@dataclass(frozen=True, slots=True)
class Talk:
    """A branch up to a node. `turns` are closed; `content` is the open turn's, or all text."""

    api: Api
    turns: tuple[tuple[Role, str], ...] = ()
    role: Role | None = None
    content: str = ""

    def open(self, role: Role) -> Talk:
        """Open a turn. Raises: RequestError inside another one, and for plain completions."""
        if self.api == "completions":
            message = 'api="completions" has no roles; use api="chat", or write the turns as text'
            raise RequestError("no_template", message)
        if self.role is not None:
            raise RequestError("invalid_request", f"{role} inside another turn; close that before")
        return replace(self, role=role)

    def close(self, role: Role) -> Talk:
        """Close the open turn. Raises: RequestError if none of `role` is open."""
        if self.role != role:
            raise RequestError("invalid_request", f"no turn of {role} is open here")
        return Talk(self.api, (*self.turns, (role, self.content)))

    def add(self, text: str) -> Talk:
        """Append text. Raises: RequestError for text between the turns of a chat."""
        if self.api == "chat" and self.role is None:
            if not text.strip():
                return self
            message = (
                "text outside of a turn: a chat server takes turns alone; put it into s.user(...), "
                's.system(...) or s.assistant(...), or use api="completions"'
            )
            raise RequestError("invalid_request", message)
        return replace(self, content=self.content + text)

    def messages(self) -> list[dict[str, str]]:
        """Give the turns before a gen or select.

        Raises: RequestError unless it stands first in an assistant turn: a chat server always
        begins a turn of its own, and would not go on with one that has text.
        """
        if self.role != "assistant" or self.content:
            where = "outside of an assistant turn"
            if self.role is not None:
                where = f"in a turn of {self.role}" + (" that has text" if self.content else "")
            message = (
                f"it stands {where}: a chat server writes whole assistant turns; let it be the "
                's.assistant(...) turn\'s beginning, or use api="completions"'
            )
            raise RequestError("invalid_request", message)
        return [{"role": role, "content": content} for role, content in self.turns]


@dataclass(frozen=True, slots=True)
class Step:
    """What a node made: the branch after it, its own text, and what is known of it."""

    talk: Talk
    text: str = ""
    meta: NodeMeta = NodeMeta()
