"""What a grammar guarantees, what it only checks, what it refuses: without a model.

Everything here works over the plain vocabulary of 256 single bytes.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import RequestError
from .budget import Budget
from .compiler import GrammarCompiler
from .matcher import PooledGrammar
from .plain import MAX_STATES, NO_LIMIT, TIMEOUT_S, byte_vocabulary
from .pool import Pool
from .sample import matches, sample
from .schema.build import root_goal, schema_grammar
from .schema.check import places_of
from .schema.keywords import KEYWORDS
from .schema.reader import REFERENCES, Reader
from .schema.survey import Survey, survey
from .spec import GrammarKind, GrammarSpec
from .state import State

EXAMPLE_BYTES = 120
NUM_EXAMPLES = 3
# Of a survey before the first value of a schema; what takes more is validated each time.
SURVEY_S = 0.25
SURVEY_STATES = 20_000
NUM_SURVEYED = 256  # of which the answer is kept

COMBINING = (
    *("type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
    *("minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems", *REFERENCES),
)
ASSERTED = frozenset((*COMBINING, *(name for table in KEYWORDS.values() for name in table)))
# Words of the standard that say nothing of a value.
ANNOTATIONS = frozenset((
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"),
    *("$comment", "$defs", "definitions"),
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Places:
    """What is said of the places of a grammar.

    `exact`: those that the mask guarantees; `checked`: those that only a check of the
    finished text can judge, with the reason; `ignored`: keywords without a meaning here.
    """

    exact: tuple[str, ...] = ()
    checked: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """What becomes of a grammar; `exact`, `checked` and `ignored` are those of its `Places`.

    `refused` says why there is no grammar at all, or is empty. `num_parts` are the automata's
    states and nodes after compiling, and `examples` are random texts.
    """

    kind: GrammarKind
    exact: tuple[str, ...] = ()
    checked: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()
    refused: str = ""
    num_parts: int = 0
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"kind: {self.kind}"]
        lines += _listed("exact", self.exact)
        lines += _listed("checked at the end", [f"{at}: {why}" for at, why in self.checked])
        lines += _listed("without a meaning here", self.ignored)
        if self.refused:
            return "\n".join([*lines, f"refused: {self.refused}"])
        lines.append(f"size: {self.num_parts} states and nodes")
        return "\n".join([*lines, *_listed("examples", self.examples)])


def _listed(title: str, items: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"  {item}" for item in items)] if items else []


def compile_plain(spec: GrammarSpec) -> PooledGrammar:
    """Compile a grammar over single bytes. Raises: RequestError."""
    return GrammarCompiler(byte_vocabulary(), TIMEOUT_S, MAX_STATES).compile(spec)


def match(spec: GrammarSpec, text: str) -> bool:
    """Say whether `text`, as a whole, is a text of the grammar. Raises: RequestError."""
    grammar = compile_plain(spec)
    return matches(grammar.start, grammar.pool, text)


def mismatch(grammar: PooledGrammar, text: str) -> str:
    """Say where a text leaves the grammar; nothing if, as a whole, it is one of its texts.

    Raises: RequestError (grammar_budget) if it takes too long to say.
    """
    state: State | None = grammar.start
    with grammar.pool.using(Budget(TIMEOUT_S, NO_LIMIT)):
        for place, char in enumerate(text):
            for byte in char.encode(errors="surrogatepass"):
                state = None if state is None else grammar.pool.pushdown.step(state, byte)
            if state is None:
                return f"character {place}, {char!r}, cannot come after {text[:place][-20:]!r}"
    return "" if state is not None and state.is_accepting else "the text is not whole"


@functools.lru_cache(NUM_SURVEYED)
def is_exact(spec: GrammarSpec) -> bool:
    """Say whether the mask guarantees all of a schema; False where that takes long to say."""
    try:
        return not _surveyed(spec, Budget(SURVEY_S, SURVEY_STATES))[1].checked
    except RequestError:
        return False


def samples(grammar: PooledGrammar, count: int, seed: int, max_bytes: int) -> tuple[str, ...]:
    """Give random texts of the grammar, the same for the same seed.

    From half of `max_bytes` on a text takes a short way to its end.

    Raises: RequestError (grammar_budget) if no end is found.
    """
    rng = random.Random(seed)
    drawn = (sample(grammar.start, grammar.pool, rng, max_bytes) for _ in range(count))
    return tuple(data.decode() for data in drawn)


def explain(spec: GrammarSpec, seed: int = 0) -> Explanation:
    """Say what becomes of a grammar; what is refused is in `refused`, not raised."""
    explanation = Explanation(spec.kind)
    try:
        places = _places(spec)
        if spec.kind == "json_schema" or spec.parts:  # also of what is refused below
            explanation = _explanation(spec, places)
        grammar = compile_plain(spec)
    except RequestError as error:
        return replace(explanation, refused=str(error))
    examples = _examples(grammar, seed)
    return replace(_explanation(spec, places), num_parts=grammar.pool.size, examples=examples)


def _explanation(spec: GrammarSpec, places: Places) -> Explanation:
    return Explanation(spec.kind, places.exact, places.checked, places.ignored)


def _examples(grammar: PooledGrammar, seed: int) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(samples(grammar, NUM_EXAMPLES, seed, EXAMPLE_BYTES)))
    except RequestError:  # an end that is hard to find makes the grammar no worse
        return ()


def _places(spec: GrammarSpec) -> Places:
    """Give the places of a grammar, those of its parts behind their names."""
    if spec.kind == "json_schema":
        return _schema_places(spec)
    exact = ["the text around the parts" if spec.parts else "the whole text"]
    checked: list[tuple[str, str]] = []
    ignored: list[str] = []
    for name, part in spec.parts:
        inner = _places(part)
        exact += [f"{name}: {place}" for place in inner.exact]
        checked += [(f"{name}: {place}", reason) for place, reason in inner.checked]
        ignored += [f"{name}: {place}" for place in inner.ignored]
    return Places(tuple(exact), tuple(checked), tuple(ignored))


def _schema_places(spec: GrammarSpec) -> Places:
    reader, found = _surveyed(spec, Budget(TIMEOUT_S, MAX_STATES))
    exact, ignored = _sorted_places(reader, found)
    return Places(exact, found.checked, ignored)


def _surveyed(spec: GrammarSpec, budget: Budget) -> tuple[Reader, Survey]:
    pool = Pool(byte_vocabulary())
    with pool.using(budget):
        (source,) = spec.source
        grammar = schema_grammar(source, pool, spec.schema_options)
        return grammar.reader, survey(grammar, root_goal(grammar))


def _sorted_places(reader: Reader, found: Survey) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the places of the keywords that hold exactly, and of those that are not known."""
    checked = {place for place, _ in found.checked}
    exact: dict[str, None] = {}
    ignored: dict[str, None] = {}
    for schema in places_of(reader):
        for keyword in schema.keywords:
            place = f"{schema}/{keyword}"
            if keyword in ASSERTED and place not in checked:
                exact[place] = None
            elif keyword not in ASSERTED | ANNOTATIONS:
                ignored[place] = None
    return tuple(exact), tuple(ignored)
