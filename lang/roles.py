"""Turns opened by `with s.user():`, closed on every way out."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from .errors import ProgramError
from .ops import Role

if TYPE_CHECKING:
    from .state import State


class RoleBlock:
    """One turn of `role` around a block of statements; the turn opens on entry.

    A branch forked inside the block starts inside the turn, and ends it by
    `branch.end_turn()` if it wants to.
    """

    def __init__(self, state: State, role: Role) -> None:
        self._state = state
        self._role: Role = role
        self._begin: int | None = None

    def __enter__(self) -> State:
        self._begin = self._state._open_turn(self._role)
        return self._state

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._begin is not None
        try:
            self._state._close_turn(self._begin)
        except ProgramError:
            # The run ended inside the block; what ended it is the better message.
            if error is None:
                raise
