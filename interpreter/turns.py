"""Open and close a turn on a branch."""

from __future__ import annotations

from dataclasses import replace

from ..lang.ops import Role
from ..runtime.errors import RequestError
from .branch import BranchText, TextCodec
from .chat import ChatTemplate


def open_turn(
    branch: BranchText, role: Role, chat: ChatTemplate, codec: TextCodec
) -> tuple[BranchText, str]:
    """Give the branch with the begin of a turn of `role`, and the template's text for it.

    Raises: RequestError: `no_template`, `bad_template`; `invalid_request` in an open turn.
    """
    if branch.is_turn_open:
        raise RequestError("invalid_request", f"{role} inside another turn; close that one before")
    before = branch.turn or chat.start(is_text_start=branch.is_empty)
    turn = chat.next_turn(before, role)
    branch = codec.add_template(branch, turn.begin)
    return replace(branch, turn=turn, is_turn_open=True), turn.begin


def close_turn(branch: BranchText, role: Role, codec: TextCodec) -> tuple[BranchText, str]:
    """Give the branch with the end of its open turn, and the template's text for it.

    Raises: RequestError (`invalid_request`) if no turn of `role` is open.
    """
    if not branch.is_turn_open or branch.turn is None or branch.turn.role != role:
        raise RequestError("invalid_request", f"no turn of {role} is open here")
    end = branch.turn.end
    return replace(codec.add_template(branch, end), is_turn_open=False), end
