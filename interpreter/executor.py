"""Nodes in, node events out: programs' graphs against an engine.

Callback style, without locks: everything runs on the one thread that `post` posts to,
only the engine's outputs arrive on another and are posted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .backend import Capabilities, Listener, SessionConfig
from .branch import TextCodec
from .calls import Calls, EngineLike, Later, Post
from .chat import ChatTemplate
from .session import ExecutorSession

if TYPE_CHECKING:
    from ..runtime.model.interface import Tokenizer

__all__ = ["EngineLike", "Executor", "ExecutorSession", "chat_of"]


class Executor:
    """Executes the nodes of any number of runs on one engine.

    `later` runs a callback some seconds later on the thread that `post` posts to: with it
    texts of a stream that come close together are told together, see calls.py.
    """

    def __init__(self, engine: EngineLike, post: Post, later: Later | None = None) -> None:
        model, tokenizer = engine.model, engine.model.tokenizer
        self.capabilities = Capabilities(
            model=model.name,
            max_context=model.runner.limits.max_context,
            has_chat_template=tokenizer.chat_template is not None,
            model_digest=model.digest,
        )
        self._calls = Calls(engine, post, later)
        self._codec = TextCodec(tokenizer)
        self._chat = chat_of(tokenizer)

    def open(self, config: SessionConfig, listener: Listener) -> ExecutorSession:
        """Start a run; `listener` gets its events, in order, in lists."""
        return ExecutorSession(config, listener, self._calls, self._codec, self._chat)


def chat_of(tokenizer: Tokenizer) -> ChatTemplate:
    """Give the chat template of a model, with the names of its tokens."""
    names = {token_id: text for text, token_id in tokenizer.control_tokens.items()}
    return ChatTemplate(
        tokenizer.chat_template,
        bos_token=_name(names, tokenizer.bos_token_id),
        eos_token=_name(names, min(tokenizer.eos_token_ids, default=None)),
    )


def _name(names: dict[int, str], token_id: int | None) -> str:
    return names.get(token_id, "") if token_id is not None else ""
