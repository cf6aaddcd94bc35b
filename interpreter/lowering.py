"""From a gen to the runtime's request: sampling, grammar, seed."""

from __future__ import annotations

import dataclasses

from ..lang.ops import Gen, Sampling
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
        grammar=grammar_spec(op, sampling.stop),
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


def grammar_spec(op: Gen, stops: tuple[str, ...]) -> GrammarSpec | None:
    """Give the constraint of a gen, if it has one."""
    if op.regex is not None:
        return GrammarSpec("regex", (op.regex,), stops)
    if op.choices is not None:
        return GrammarSpec("choices", op.choices, stops)
    if op.grammar is not None:
        return GrammarSpec(op.grammar.format, (op.grammar.source,), stops)
    if op.schema is not None:
        options = SchemaOptions(
            max_blanks=op.schema.whitespace,
            is_any_order=op.schema.order == "any",
            registry=tuple((each.uri, each.source) for each in op.schema.registry),
            is_strict=op.schema.strict,
        )
        return GrammarSpec("json_schema", (op.schema.source,), stops, options)
    return None
