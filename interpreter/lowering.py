"""From a gen to the runtime's request: sampling, grammar, and the seed of its place."""

from __future__ import annotations

import dataclasses
import hashlib
import json

from ..lang.ops import Gen, Sampling
from ..runtime.grammar.spec import GrammarSpec
from ..runtime.sequence import Int32, Request, SamplingParams

_SEED_MASK = (1 << 63) - 1


def gen_request(op: Gen, id: str, prompt: Int32, defaults: Sampling, place_seed: int) -> Request:
    """Give the request for a gen after `prompt`; its own seed goes before its place's.

    Raises: RequestError (`invalid_request`), naming the field.
    """
    sampling = sampling_params(op.sampling, defaults)
    return Request(
        id=id,
        prompt=prompt,
        sampling=sampling,
        grammar=_grammar(op, sampling.stop),
        seed=(place_seed if op.seed is None else op.seed) & _SEED_MASK,
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


def derive_seed(run_seed: int, branch: str, ordinal: int) -> int:
    """Give the seed of the gen with this ordinal in its branch: 63 bits.

    It depends on the place in the program alone, so how a run is cut into segments, and
    what else runs beside it, changes nothing.
    """
    place = json.dumps([run_seed, branch, ordinal]).encode()
    return int.from_bytes(hashlib.blake2b(place, digest_size=8).digest(), "big") & _SEED_MASK


def _grammar(op: Gen, stops: tuple[str, ...]) -> GrammarSpec | None:
    if op.regex is not None:
        return GrammarSpec("regex", (op.regex,), stops)
    if op.choices is not None:
        return GrammarSpec("choices", op.choices, stops)
    return None
