"""From a gen or select to the fields of a request, and what of it the server cannot do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial

from ...lang.ops import Constraint, Gen, JsonSchema, Sampling, Select
from ...runtime.errors import RequestError
from ..backend import NodeMeta, NodeUsage
from .talk import Api, Talk

# What the API has; the rest of Sampling's fields needs a server that takes more.
_KNOWN = {"max_tokens", "stop", "temperature", "top_p"}
_OF_SCORES = ("top", "temperature", "abstain_below")  # of a select
EXTRA = {"min_tokens", "top_k", "min_p", "ignore_eos"}


@dataclass(frozen=True, slots=True)
class Rules:
    """What a server takes: `accepts` are sampling fields beyond the API, sent as they are."""

    model: str
    api: Api
    emulate: bool = False
    accepts: frozenset[str] = frozenset()
    max_tokens_name: str = "max_tokens"


@dataclass(frozen=True, slots=True)
class Question:
    """A request's fields, and what its answer must be.

    `read` gives the value of an answer, `check` says what is wrong with it. With
    `is_emulated` an answer that does not pass is asked for again.
    """

    fields: dict[str, object]
    read: Callable[[str], str] = str
    check: Callable[[str], str] = lambda _: ""
    is_emulated: bool = False


def ask(op: Gen | Select, talk: Talk, run: Sampling, seed: int | None, rules: Rules) -> Question:
    """Give the request for a node. Raises: RequestError, naming what the server cannot do."""
    prompt: object = talk.messages() if rules.api == "chat" else talk.content
    asked: dict[str, object] = {"model": rules.model}
    asked["messages" if rules.api == "chat" else "prompt"] = prompt
    if isinstance(op, Select):
        _refuse_what_scores_give(op)
        return _choice(asked, op.choices, "select by scores", rules)
    asked |= _sampling(op.sampling, run, rules)
    if seed is not None:
        asked["seed"] = seed
    match op.constraint:
        case None:
            return Question(asked)
        case Constraint(choices=tuple(choices)):
            return _choice(asked, choices, "choices", rules)
        case Constraint(schema=JsonSchema() as schema) if rules.api == "chat":
            return _schema(asked, op.name, schema)
        case constraint:
            return _checked(asked, constraint, rules)


def _refuse_what_scores_give(op: Select) -> None:
    given = [name for name in _OF_SCORES if getattr(op, name) is not None]
    if given:
        message = f"{', '.join(given)}: a select has no probabilities here; leave it out"
        raise RequestError("bad_grammar", message)


def usage_of(usage: object) -> NodeUsage:
    """Give what the server counted; nothing it did not say."""
    details = getattr(usage, "prompt_tokens_details", None)
    return NodeUsage(
        prompt_tokens=getattr(usage, "prompt_tokens", None) or 0,
        cached_tokens=getattr(details, "cached_tokens", None) or 0,
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
    )


def meta_of(finish: str, stop: object, usage: object, *, is_emulated: bool) -> NodeMeta:
    """Give what is known of an answer."""
    reason = stop if isinstance(stop, str) else None
    return NodeMeta(finish, reason, usage_of(usage), is_emulated=is_emulated)


def _sampling(own: Sampling, run: Sampling, rules: Rules) -> dict[str, object]:
    given: dict[str, object] = {}
    for field in fields(Sampling):
        value = getattr(own, field.name)
        value = getattr(run, field.name) if value is None else value
        if value is not None and not (field.name == "heal" and value is False):
            given[field.name] = value
    extra = {name: given.pop(name) for name in [*given] if name in rules.accepts & EXTRA}
    if unknown := [name for name in given if name not in _KNOWN]:
        known = [name for name in unknown if name in EXTRA]
        remedy = f"; if this server takes it, pass accepts={tuple(known)}" if known else ""
        message = f"{', '.join(unknown)}: the OpenAI API has no such option; leave it out{remedy}"
        raise RequestError("invalid_request", message)
    if rules.api == "completions" and "max_tokens" not in given:
        message = "a completions server ends after some tokens of its own choice; pass max_tokens"
        raise RequestError("invalid_request", message)
    if "max_tokens" in given:
        given[rules.max_tokens_name] = given.pop("max_tokens")
    if stop := given.pop("stop", ()):
        given["stop"] = list(stop) if isinstance(stop, tuple) else stop
    return given | ({"extra_body": extra} if extra else {})


def _choice(
    asked: dict[str, object], choices: tuple[str, ...], what: str, rules: Rules
) -> Question:
    """Let the model name one of `choices` as JSON; without a chat it has to write it itself."""
    _refuse_unless_emulated(what, rules)

    def check(text: str) -> str:
        return "" if text in choices else f"{text!r} is none of the choices"

    if rules.api == "completions":
        asked.setdefault(rules.max_tokens_name, max(len(each) for each in choices) + 1)
        return Question(asked, partial(_begun_choice, choices), check, is_emulated=True)
    schema = {
        "type": "object",
        "properties": {"choice": {"type": "string", "enum": list(choices)}},
        "required": ["choice"],
        "additionalProperties": False,
    }
    return Question(asked | _format("choice", schema), _named_choice, check, is_emulated=True)


def _named_choice(text: str) -> str:
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    choice = found.get("choice") if isinstance(found, Mapping) else None
    return choice if isinstance(choice, str) else text


def _begun_choice(choices: tuple[str, ...], text: str) -> str:
    """Give the longest choice that the text begins with, if a word does not go on after it."""
    text = text.strip()
    for choice in sorted(choices, key=len, reverse=True):
        if text.startswith(choice) and not text[len(choice) :][:1].isalnum():
            return choice
    return text


def _schema(asked: dict[str, object], name: str | None, schema: JsonSchema) -> Question:
    from ..schema_values import json_text, mismatch

    if schema.registry:
        message = "registry: the OpenAI API takes one schema; put what it names under its $defs"
        raise RequestError("bad_grammar", message)
    own = re.sub(r"[^a-zA-Z0-9_-]", "_", name or "value")[:64]

    def check(text: str) -> str:
        value = json_text(schema, text) if schema.is_bare else text
        return mismatch(schema, value, is_whole=False)

    read = _unquoted if schema.is_bare else str
    return Question(asked | _format(own, json.loads(schema.source)), read, check)


def _unquoted(text: str) -> str:
    """Give a JSON string without its quotes; another value as it is."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, str) else text


def _format(name: str, schema: object) -> dict[str, object]:
    described = {"name": name, "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _checked(asked: dict[str, object], constraint: Constraint, rules: Rules) -> Question:
    """Let the model write as it likes, and hold the answer against the constraint."""
    kind = next(f.name for f in fields(Constraint) if getattr(constraint, f.name) is not None)
    _refuse_unless_emulated("json schema" if kind == "schema" else kind, rules)
    # Here, because they need the runtime's grammars, which a plain gen does without.
    from ...runtime.grammar.explain import compile_plain, mismatch
    from ..lowering import grammar_spec

    compiled = compile_plain(grammar_spec(constraint))
    return Question(asked, check=lambda text: mismatch(compiled, text), is_emulated=True)


def _refuse_unless_emulated(what: str, rules: Rules) -> None:
    if not rules.emulate:
        message = (
            f"{what}: the {rules.api} API of an OpenAI-compatible server cannot do it; use a "
            "backend with a model of plait's own, or plait.openai(..., emulate=True)"
        )
        raise RequestError("bad_grammar", message)
