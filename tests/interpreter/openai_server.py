"""A server on loopback that speaks the OpenAI API's shape, and fails on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 5},
}


@dataclass
class Reply:
    """What the server answers to one request."""

    text: str = ""
    status: int = 200
    error: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)
    finish: str = "stop"
    raw: bytes | None = None  # in place of an answer
    is_cut: bool = False  # the stream ends in the middle, without its end
    is_slow: bool = False  # waits until the client has gone


class Server(ThreadingHTTPServer):
    """Answers by `say`, keeps what it was asked."""

    daemon_threads = True

    def __init__(self, say: Callable[[dict[str, Any]], Reply | str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.say = say
        self.asked: list[dict[str, Any]] = []
        self.has_begun = threading.Event()
        self.was_left = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: object) -> None:
        return

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(size))
        self.server.asked.append(asked)
        said = self.server.say(asked)
        reply = Reply(said) if isinstance(said, str) else said
        is_chat = self.path.endswith("/chat/completions")
        if reply.is_slow:
            self._wait()
        elif reply.status != 200:
            self._send(reply.status, {"error": {"message": reply.error}}, reply.headers)
        elif reply.raw is not None:
            self._send(200, reply.raw)
        elif asked.get("stream"):
            self._stream(reply, is_chat)
        else:
            message = {"role": "assistant", "content": reply.text}
            said_as = {"message": message} if is_chat else {"text": reply.text}
            choice = {"index": 0, "finish_reason": reply.finish, **said_as}
            self._send(200, {"id": "1", "choices": [choice], "usage": USAGE})

    def _wait(self) -> None:
        self.server.has_begun.set()
        self.connection.settimeout(20)
        if self.connection.recv(1) == b"":
            self.server.was_left.set()
        self.close_connection = True

    def _send(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply, is_chat: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for letter in reply.text:
            said = {"delta": {"content": letter}} if is_chat else {"text": letter}
            self._event({"choices": [{"index": 0, "finish_reason": None, **said}]})
        if not reply.is_cut:
            said = {"delta": {"content": ""}} if is_chat else {"text": ""}
            self._event({"choices": [{"index": 0, "finish_reason": reply.finish, **said}]})
            self._event({"choices": [], "usage": USAGE})
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _event(self, data: Mapping[str, object]) -> None:
        self.wfile.write(f"data: {json.dumps({'id': '1', **data})}\n\n".encode())


@contextmanager
def serving(say: Callable[[dict[str, Any]], Reply | str]) -> Iterator[Server]:
    """Run a server while the block lasts."""
    server = Server(say)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
