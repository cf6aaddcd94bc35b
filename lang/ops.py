"""The closed set of operations: what a node of a graph can do."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from .errors import InvalidArgument

Role: TypeAlias = Literal["system", "user", "assistant"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant")

SelectMethod: TypeAlias = Literal[
    "sum",
    "token_length_normalized",
    "greedy_token_selection",
    "unconditional_likelihood_normalized",
]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. None means: the run's default, else the runtime's.

    The fields carry the names of the runtime's `SamplingParams`. One that is added to both
    also needs a parameter and a check (`gen` in api.py, `sampling` in options.py); run options,
    JSON, the wire and the request follow from the fields.
    """

    max_tokens: int | None = None
    min_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    keep_stop: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    ignore_eos: bool | None = None
    heal: bool | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text; never read as control tokens."""

    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value is: what a node wrote, or a capture of it."""

    node: int
    capture: str | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """The value that another node wrote or captured, as text; `reads` names that node."""

    source: Source


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of the program that a trace left open."""

    name: str


@dataclass(frozen=True, slots=True)
class RoleBegin:
    """Open a turn; the model's chat template gives the text."""

    role: Role


@dataclass(frozen=True, slots=True)
class RoleEnd:
    """Close the open turn; the model's chat template gives the text."""

    role: Role


PropertyOrder: TypeAlias = Literal["listed", "any"]
GrammarFormat: TypeAlias = Literal["lark", "ebnf"]


@dataclass(frozen=True, slots=True)
class SchemaDocument:
    """A JSON Schema that others may name by its URI; `source` is it as compact JSON."""

    uri: str
    source: str


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """The output is JSON of a value that matches a schema; the value is read from it.

    `source` is the schema as compact JSON, its properties in the author's order. `whitespace`
    bounds the blanks at each place where JSON allows them. `registry` has what a `$ref` may
    name beside the schema's own parts. `is_bare`: a value that is a string is written without
    quotes and escapes. `hint` is the Python type that the value becomes; it
    stays in the process, and counts for nothing else.
    """

    source: str
    strict: bool = False
    whitespace: int = 0
    order: PropertyOrder = "listed"
    registry: tuple[SchemaDocument, ...] = ()
    is_bare: bool = False
    hint: object = field(default=None, compare=False, repr=False, metadata={"is_local": True})


@dataclass(frozen=True, slots=True)
class GrammarText:
    """The output is a text of a grammar in Lark's syntax, or in EBNF or GBNF."""

    format: GrammarFormat
    source: str
    parts: tuple[GrammarPart, ...] = ()


@dataclass(frozen=True, slots=True)
class GrammarPart:
    """A grammar that another one names."""

    name: str
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a text must match: exactly one of these.

    Raises: InvalidArgument for none, and for several.
    """

    regex: str | None = None
    choices: tuple[str, ...] | None = None
    schema: JsonSchema | None = None
    grammar: GrammarText | None = None

    def __post_init__(self) -> None:
        kinds = [field.name for field in fields(self)]
        if sum(getattr(self, kind) is not None for kind in kinds) != 1:
            raise InvalidArgument(f"a constraint is one of {', '.join(kinds)}; give one")


@dataclass(frozen=True, slots=True)
class Gen:
    """Let the model write, and keep what it wrote under `name`.

    `constraint` is what the output matches. `seed` overrides the one that the run derives from
    its own seed and this node's place. `captures` are the named parts of the constraint that
    become variables, too.
    """

    name: str | None = None
    sampling: Sampling = Sampling()
    constraint: Constraint | None = None
    seed: int | None = None
    captures: tuple[str, ...] = ()

    def schema_of(self, capture: str | None) -> JsonSchema | None:
        """Give the schema of the value, or of a capture's; None if it is text."""
        if self.constraint is None:
            return None
        grammar = self.constraint.grammar
        if capture is None or grammar is None:
            return self.constraint.schema
        parts = (part for part in grammar.parts if part.name == capture)
        return next((part.constraint.schema for part in parts), None)


@dataclass(frozen=True, slots=True)
class Select:
    """Score every choice after the text so far, append the best, keep it under `name`.

    With `top` the value is a list of so many, the best first. With a `temperature` over 0 the
    choice is drawn; `seed` overrides the one that the run derives. If no choice has a probability
    of `abstain_below`, nothing is appended and the value is None, or an empty list.
    """

    name: str | None
    choices: tuple[str, ...]
    method: SelectMethod = "sum"
    top: int | None = None
    temperature: float | None = None
    abstain_below: float | None = None
    seed: int | None = None

    @property
    def is_text(self) -> bool:
        """Say whether the value is always a str."""
        return self.top is None and self.abstain_below is None


@dataclass(frozen=True, slots=True)
class Score:
    """Give the log-probability of a text after the text so far, which stays as it is.

    The text is `text`, or what the node `source` wrote; `reads` names that node.
    """

    text: str = ""
    source: int | None = None


Op: TypeAlias = Text | Value | Input | RoleBegin | RoleEnd | Gen | Select | Score


def reads_of(op: Op) -> tuple[int, ...]:
    """Give the nodes whose values an operation uses."""
    match op:
        case Value(source=source):
            return (source.node,)
        case Score(source=int(node)):
            return (node,)
        case _:
            return ()
