"""Any OpenAI-compatible HTTP server, asked with the official client."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection

import openai

from ...lang.errors import BackendDied, BackendError, BackendUnavailable, InvalidArgument
from ..backend import Capabilities, Listener, SessionConfig
from ..http.client import Client
from ..http.question import EXTRA, Rules
from ..http.session import TextSession
from ..http.talk import Api, Talk
from ..posted import PostedSession

_CLOSE_S = 1.0


class OpenAIBackend:
    """Runs programs on a server. One thread, with one loop, serves all sessions.

    The arguments are those of `plait.openai`. Raises: InvalidArgument, BackendUnavailable.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api: Api = "chat",
        emulate: bool = False,
        accepts: Collection[str] = (),
        max_context: int = 0,
        max_concurrency: int = 64,
        num_tries: int = 3,
        retries: int = 2,
        timeout_s: float = 600.0,
    ) -> None:
        _check(api, accepts, max_concurrency=max_concurrency, num_tries=num_tries)
        try:
            client = openai.AsyncOpenAI(
                api_key=api_key, base_url=base_url, max_retries=retries, timeout=timeout_s
            )
        except openai.OpenAIError as error:
            raise BackendUnavailable(
                f"{error}; pass api_key=..., any text if it needs none"
            ) from None
        self._talk = Talk(api)
        is_own = client.base_url.host.endswith("openai.com")
        # OpenAI's newer models refuse the old name, other servers may not know the new one.
        name = "max_completion_tokens" if api == "chat" and is_own else "max_tokens"
        rules = Rules(model, api, emulate, frozenset(accepts), name)
        digest = f"openai:{client.base_url}:{model}:{api}"
        self._capabilities = Capabilities(model, max_context, api == "chat", digest)
        self._client = client
        self._asker = Client(client, rules, max_concurrency=max_concurrency, num_tries=num_tries)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sessions: set[PostedSession] = set()  # open ones
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="plait-openai", daemon=True)
        self._thread.start()

    def capabilities(self) -> Capabilities:
        """Say what the server can do; the server is not asked."""
        return self._capabilities

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> PostedSession:
        """Start a run. Raises: BackendUnavailable after `close`; BackendError after a fork."""
        if os.getpid() != self._pid:
            raise BackendError(
                "this process was forked from the one that made the backend; make one of its own"
            )
        with self._lock:
            if self._is_closed:
                raise BackendUnavailable("this backend is closed; make a new one")
            session = PostedSession(config.id, listener, on_lost, self._post, self._forget)
            self._sessions.add(session)
        talk, answer = self._talk, self._asker.answer
        session.start(lambda listen: TextSession(config, listen, talk, answer))
        return session

    def close(self) -> None:
        """Abort all requests; open sessions get `on_lost`. Idempotent; bounded."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            sessions, self._sessions = self._sessions, set()
        for session in sessions:
            session.lose(BackendDied("the backend was closed while a run was using it"))
        self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)

    def _serve(self) -> None:
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(self._end(tasks))
        self._loop.close()

    async def _end(self, tasks: Collection[asyncio.Task[object]]) -> None:
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()

    def _post(self, call: Callable[[], None]) -> None:
        with self._lock:
            if not self._is_closed:
                self._loop.call_soon_threadsafe(call)

    def _forget(self, session: PostedSession) -> bool:
        """Take a session out; False if it was out already, so each one is lost at most once."""
        with self._lock:
            was_open = session in self._sessions
            self._sessions.discard(session)
            return was_open


def _check(api: str, accepts: Collection[str], **counts: int) -> None:
    if api not in ("chat", "completions"):
        raise InvalidArgument(f'api={api!r}: pass "chat" or "completions"')
    for name in accepts:
        if name not in EXTRA:
            raise InvalidArgument(f"accepts={name!r}: pass some of {', '.join(sorted(EXTRA))}")
    for name, count in counts.items():
        if count < 1:
            raise InvalidArgument(f"{name}={count}: pass a whole number, 1 or more")
