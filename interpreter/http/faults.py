"""What can go wrong at an OpenAI-compatible server, as a code and a message."""

from __future__ import annotations

import openai

_CONTEXT = ("context_length", "context length", "context window", "maximum context", "too long")


class ServerFault(Exception):
    """A request that the server did not answer as it should; `code` says in which way."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def fault_of(error: Exception) -> ServerFault:
    """Give the fault that an error of the client, or of its connection, stands for."""
    if isinstance(error, ServerFault):
        return error
    if isinstance(error, openai.APITimeoutError):
        return ServerFault("timeout", "the server did not answer in time; raise timeout_s")
    if isinstance(error, openai.APIStatusError):
        return _status(error)
    if isinstance(error, openai.APIResponseValidationError | ValueError | TypeError):
        return ServerFault("bad_answer", f"the server's answer cannot be read: {_say(error)}")
    if isinstance(error, openai.APIConnectionError):
        said = _say(error.__cause__ or error)
        return ServerFault("connection", f"the server cannot be reached: {said}; check base_url")
    if isinstance(error, openai.APIError):
        return ServerFault("server_error", f"the server failed in its answer: {_say(error)}")
    return ServerFault("connection", f"the connection broke in the answer: {_say(error)}")


def _status(error: openai.APIStatusError) -> ServerFault:
    told: object = error.body.get("message") if isinstance(error.body, dict) else None
    said = f"HTTP {error.status_code}: {told or error.message}"
    code = f"{error.code or ''} {error.message}".lower()
    match error.status_code:
        case 401 | 403:
            return ServerFault("auth", f"the server refuses the key: {said}; check api_key")
        case 429:
            after = error.response.headers.get("retry-after")
            wait = "later" if after is None else f"after {after} s"
            message = f"the server's rate limit is reached: {said}; try again {wait}"
            return ServerFault("rate_limited", message)
        case 400 | 413 | 422 if any(word in code for word in _CONTEXT):
            return ServerFault("context_exceeded", said)
        case status if status >= 500:
            return ServerFault("server_error", f"the server failed: {said}")
        case 404:
            return ServerFault("invalid_request", f"{said}; check model and base_url")
        case _:
            return ServerFault("invalid_request", f"the server refuses the request: {said}")


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
