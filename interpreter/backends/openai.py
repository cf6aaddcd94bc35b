"""Any OpenAI-compatible HTTP server, asked with the official client."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence

import openai

from ...lang.errors import BackendDied, BackendError, BackendUnavailable, InvalidArgument
from ...lang.graph import Node
from ..backend import Capabilities, Done, Listener, NodeEvent, SessionConfig
from ..http.client import Client
from ..http.question import EXTRA, Rules
from ..http.session import TextSession
from ..http.talk import Api, Talk

_log = logging.getLogger(__name__)
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
        self._sessions: set[OpenAISession] = set()  # open ones
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="plait-openai", daemon=True)
        self._thread.start()

    def capabilities(self) -> Capabilities:
        """Say what the server can do; the server is not asked."""
        return self._capabilities

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> OpenAISession:
        """Start a run. Raises: BackendUnavailable after `close`; BackendError after a fork."""
        if os.getpid() != self._pid:
            raise BackendError(
                "this process was forked from the one that made the backend; make one of its own"
            )
        with self._lock:
            if self._is_closed:
                raise BackendUnavailable("this backend is closed; make a new one")
            session = OpenAISession(listener, on_lost, self._post, self._forget)
            self._sessions.add(session)
        session.start(config, self._talk, self._asker)
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

    def _forget(self, session: OpenAISession) -> bool:
        """Take a session out; False if it was out already, so each one is lost at most once."""
        with self._lock:
            was_open = session in self._sessions
            self._sessions.discard(session)
            return was_open


class OpenAISession:
    """A run, as other threads see it: each call is posted to the loop's thread."""

    def __init__(
        self,
        listener: Listener,
        on_lost: Callable[[Exception], None],
        post: Callable[[Callable[[], None]], None],
        forget: Callable[[OpenAISession], bool],
    ) -> None:
        self._listener = listener
        self._on_lost = on_lost
        self._post = post
        self._forget = forget
        self._inner: TextSession | None = None  # the loop's thread's
        self._is_open = True

    def start(self, config: SessionConfig, talk: Talk, client: Client) -> None:
        """Open the session on the loop's thread."""

        def start() -> None:
            self._inner = TextSession(config, self._listen, talk, client.answer)

        self._post(start)

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment."""
        segment, done = tuple(nodes), tuple(known)
        self._call(lambda session: session.submit(segment, done))

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop these nodes and all that depend on them; idempotent."""
        ids = tuple(nodes)
        self._call(lambda session: session.cancel(ids))

    def close(self) -> None:
        """Abort every request; idempotent."""
        self._is_open = False
        self._forget(self)
        self._call(lambda session: session.close())

    def lose(self, error: Exception) -> None:
        """Tell the run that its backend is gone; no event comes after it."""
        self._is_open = False
        self._on_lost(error)

    def _call(self, act: Callable[[TextSession], None]) -> None:
        def call() -> None:
            assert self._inner is not None, "start was posted first"
            act(self._inner)

        self._post(call)

    def _listen(self, events: Sequence[NodeEvent]) -> None:
        if not self._is_open:
            return
        try:
            self._listener(events)
        except Exception as error:
            # A listener is its run's own: one that fails loses that run, and no other.
            _log.exception("the listener of a run raised")
            self._call(lambda session: session.close())
            if self._forget(self):
                self.lose(error)


def _check(api: str, accepts: Collection[str], **counts: int) -> None:
    if api not in ("chat", "completions"):
        raise InvalidArgument(f'api={api!r}: pass "chat" or "completions"')
    for name in accepts:
        if name not in EXTRA:
            raise InvalidArgument(f"accepts={name!r}: pass some of {', '.join(sorted(EXTRA))}")
    for name, count in counts.items():
        if count < 1:
            raise InvalidArgument(f"{name}={count}: pass a whole number, 1 or more")
