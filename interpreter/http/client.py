"""Ask an OpenAI-compatible server: one request, its answer whole or in pieces."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import openai

from ...lang.ops import Gen, Select
from ...lang.options import MAX_INT
from ..backend import NodeMeta, NodeUsage, SessionConfig
from .faults import ServerFault, fault_of
from .question import Question, Rules, ask, meta_of
from .session import Say
from .talk import Talk


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    meta: NodeMeta


class Client:
    """The official client with what a backend adds: bounded concurrency, and typed faults."""

    def __init__(
        self, client: openai.AsyncOpenAI, rules: Rules, *, max_concurrency: int, num_tries: int
    ) -> None:
        self._client = client
        self._rules = rules
        self._slots = asyncio.Semaphore(max_concurrency)
        self._num_tries = num_tries

    async def answer(
        self, op: Gen | Select, talk: Talk, config: SessionConfig, seed: int, say: Say
    ) -> tuple[str, NodeMeta]:
        """Give a node's value. Raises: RequestError, ServerFault."""
        seed = op.seed if isinstance(op, Gen) and op.seed is not None else seed
        question = await self._question(op, talk, config, seed)
        usage = NodeUsage()
        wrong = ""
        for attempt in range(self._num_tries if question.is_emulated else 1):
            if attempt and "seed" in question.fields:
                fields = {**question.fields, "seed": (seed + attempt) & MAX_INT}
                question = replace(question, fields=fields)
            got = await self._one(question, say if config.is_streaming else None)
            usage = _sum(usage, got.meta.usage)
            value = question.read(got.text)
            # A schema's value that a limit has cut is told apart by whoever reads it.
            is_cut = got.meta.finish_reason == "length" and not question.is_emulated
            wrong = "" if is_cut else question.check(value)
            if not wrong:
                return value, replace(got.meta, usage=usage)
        tries = f" in {self._num_tries} tries" if question.is_emulated else ""
        raise ServerFault("invalid_value", f"the server's answer does not match{tries}: {wrong}")

    async def _question(
        self, op: Gen | Select, talk: Talk, config: SessionConfig, seed: int
    ) -> Question:
        if isinstance(op, Select) or op.constraint is None:
            return ask(op, talk, config.sampling, seed, self._rules)
        # Compiling a constraint takes time that the other requests have not got.
        return await asyncio.to_thread(ask, op, talk, config.sampling, seed, self._rules)

    async def _one(self, question: Question, say: Say | None) -> _Answer:
        async with self._slots:
            try:
                if say is None or question.is_emulated:
                    return await self._whole(question)
                return await self._streamed(question, say)
            except Exception as error:
                fault = fault_of(error)
                # A server may repeat the key in what it says; the cause would show it, too.
                raise ServerFault(fault.code, self._without_key(str(fault))) from None

    async def _whole(self, question: Question) -> _Answer:
        reply = await self._create(question.fields)
        choices = getattr(reply, "choices", None)
        if not choices:
            raise ServerFault("bad_answer", "the server's answer cannot be read: it has no choices")
        choice = choices[0]
        text = choice.text if self._rules.api == "completions" else _content(choice.message)
        stop = getattr(choice, "stop_reason", None)
        meta = meta_of(choice.finish_reason, stop, reply.usage, is_emulated=question.is_emulated)
        return _Answer(text or "", meta)

    async def _streamed(self, question: Question, say: Say) -> _Answer:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        texts: list[str] = []
        finish: str | None = None
        stop: object = None
        usage: object = None
        stream = await self._create({**question.fields, **options})
        async with stream:
            async for chunk in stream:
                usage = getattr(chunk, "usage", None) or usage
                for choice in chunk.choices[:1]:
                    is_plain = self._rules.api == "completions"
                    text = choice.text if is_plain else _content(choice.delta)
                    if text:
                        texts.append(text)
                        say(text)
                    finish = choice.finish_reason or finish
                    stop = getattr(choice, "stop_reason", None) or stop
        if finish is None:
            raise ServerFault("connection", "the connection broke in the answer: it has no end")
        return _Answer("".join(texts), meta_of(finish, stop, usage, is_emulated=False))

    async def _create(self, fields: dict[str, object]) -> Any:
        if self._rules.api == "completions":
            return await self._client.completions.create(**fields)  # type: ignore[call-overload]
        return await self._client.chat.completions.create(**fields)  # type: ignore[call-overload]

    def _without_key(self, message: str) -> str:
        key = self._client.api_key
        return message.replace(key, "***") if key else message


def _sum(a: NodeUsage, b: NodeUsage) -> NodeUsage:
    return NodeUsage(
        a.prompt_tokens + b.prompt_tokens,
        a.cached_tokens + b.cached_tokens,
        a.output_tokens + b.output_tokens,
    )


def _content(message: Any) -> str:
    refusal = getattr(message, "refusal", None)
    if refusal:
        raise ServerFault("refused", f"the model refuses to answer: {refusal}")
    return message.content or ""
