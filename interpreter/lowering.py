"""From a gen to the runtime's request: sampling, grammar, seed."""

from __future__ import annotations

import dataclasses

from ..lang.ops import Constraint, Gen, GrammarText, JsonSchema, Sampling
from ..runtime.grammar.spec import GrammarSpec, SchemaOptions
from ..runtime.sequence import Int32, Request, SamplingParams


def gen_request(
    op: Gen, id: str, prompt: Int32, defaults: Sampling, place_seed: int, may_heal: bool
) -> Request:
    """Give the request for a gen after `prompt`; its own seed goes before its place's.

    `may_heal`: the program wrote the last token of the prompt. It is healed unless the gen,
    or else the run, says no.

    Raises: RequestError (`invalid_request`), naming the field.
    """
    sampling = sampling_params(op.sampling, defaults)
    heal = defaults.heal if op.sampling.heal is None else op.sampling.heal
    sampling = dataclasses.replace(sampling, heal=may_heal and heal is not False)
    return Request(
        id=id,
        prompt=prompt,
        sampling=sampling,
        grammar=None if op.constraint is None else grammar_spec(op.constraint, sampling.stop),
        seed=place_seed if op.seed is None else op.seed,
    )


def sampling_params(own: Sampling, defaults: Sampling) -> SamplingParams:
    """Give each field the node's value, else the run's, else the runtime's own default.

    Raises: RequestError (`invalid_request`), naming the field.
    """
    given = {}
    for field in dataclasses.fields(SamplingParams):
        for source in (own, defaults):
            value = getattr(source, field.name, None)
            if value is not None:
                given[field.name] = value
                break
    return SamplingParams(**given)


def grammar_spec(constraint: Constraint, stops: tuple[str, ...] = ()) -> GrammarSpec:
    """Give a constraint as the runtime has it."""
    match constraint:
        case Constraint(regex=str(regex)):
            return GrammarSpec("regex", (regex,), stops)
        case Constraint(choices=tuple(choices)):
            return GrammarSpec("choices", choices, stops)
        case Constraint(schema=JsonSchema() as schema):
            options = SchemaOptions(
                max_blanks=schema.whitespace,
                is_any_order=schema.order == "any",
                registry=tuple((each.uri, each.source) for each in schema.registry),
                is_strict=schema.strict,
                is_bare=schema.is_bare,
            )
            return GrammarSpec("json_schema", (schema.source,), stops, options)
        case Constraint(grammar=GrammarText() as grammar):
            return text_spec(grammar, stops)
        case _:
            raise AssertionError("a constraint is one of the four")


def text_spec(grammar: GrammarText, stops: tuple[str, ...] = ()) -> GrammarSpec:
    """Give a grammar as the runtime has it, with its parts."""
    parts = tuple((part.name, grammar_spec(part.constraint)) for part in grammar.parts)
    return GrammarSpec(grammar.format, (grammar.source,), stops, parts=parts)
