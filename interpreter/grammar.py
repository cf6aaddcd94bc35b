"""A grammar that authors give to a gen, or try out without a model: match, sample, explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

from ..lang.constraint import constraint_of_kind, parts_of
from ..lang.errors import GrammarError, InvalidArgument
from ..lang.ops import Constraint, GrammarText, PropertyOrder
from ..lang.options import text as text_of
from ..lang.options import wrong
from ..lang.where import place
from .schema_values import mismatch
from .screen import constraint_fault

if TYPE_CHECKING:
    from ..runtime.grammar.explain import Explanation
    from ..runtime.grammar.matcher import PooledGrammar
    from ..runtime.grammar.spec import GrammarSpec

T = TypeVar("T")
GrammarKind: TypeAlias = Literal["schema", "regex", "choices", "lark", "ebnf"]
KINDS: tuple[GrammarKind, ...] = get_args(GrammarKind)
MAX_BYTES = 200  # of a sample: from half of it on, it takes a short way to its end


class Grammar:
    """One constraint of a gen: to try out, to give to a gen, to be a part of another.

    `Grammar(schema=Order).match(text)` tries it out; `gen(grammar=...)` may capture its parts.

    Exactly one of `schema`, `regex`, `choices`, `lark` and `ebnf` is given; the others are as
    `gen` has them. `parts` are the grammars that a text in EBNF or GBNF names as rules, and one
    in Lark as terminals that it declares: `%declare ARGS`.

    Raises: InvalidArgument naming the option.
    """

    def __init__(
        self,
        *,
        schema: object = None,
        regex: str | None = None,
        choices: Sequence[str] | None = None,
        lark: str | None = None,
        ebnf: str | None = None,
        parts: Mapping[str, Grammar] | None = None,
        strict: bool | None = None,
        whitespace: int | None = None,
        order: PropertyOrder | None = None,
        registry: Mapping[str, object] | None = None,
    ) -> None:
        given: dict[GrammarKind, object] = {
            "schema": schema,
            "regex": regex,
            "choices": choices,
            "lark": lark,
            "ebnf": ebnf,
        }
        kinds: list[GrammarKind] = [kind for kind in KINDS if given[kind] is not None]
        if len(kinds) != 1:
            raise InvalidArgument(f"{place()}Grammar(): give one of {', '.join(KINDS)}")
        self.kind = kinds[0]
        options = {
            "strict": strict,
            "whitespace": whitespace,
            "order": order,
            "registry": registry,
        }
        try:
            self._constraint = _constraint(self.kind, given[self.kind], parts, options)
        except InvalidArgument as error:
            raise InvalidArgument(f"{place()}Grammar(): {error}") from None
        self._compiled: PooledGrammar | None = None

    @property
    def constraint(self) -> Constraint:
        """Give what its texts match, as a gen has it."""
        return self._constraint

    @property
    def source(self) -> str:
        """Give its text; of choices, one a line."""
        own = self._constraint
        if own.schema is not None:
            return own.schema.source
        if own.grammar is not None:
            return own.grammar.source
        return own.regex if own.regex is not None else "\n".join(own.choices or ())

    def match(self, text: str) -> bool:
        """Say whether a gen could write `text`, as a whole.

        Raises: GrammarError; InvalidArgument for what is no str.
        """
        return not self.mismatch(text)

    def mismatch(self, text: str) -> str:
        """Say why `text` is none of the grammar's; nothing if it is.

        Raises: GrammarError; InvalidArgument for what is no str.
        """
        if not isinstance(text, str):
            raise InvalidArgument(f"{place()}Grammar.match(): {wrong('text', text, 'a str')}")
        from ..runtime.grammar.explain import mismatch as leaves

        reason = self._asked(lambda: leaves(self._grammar(), text))
        schema, grammar = self._constraint.schema, self._constraint.grammar
        if reason or schema is not None:
            return reason if schema is None else reason or mismatch(schema, text)
        if grammar is None:
            return ""
        # Here, because it needs the runtime, which `import plait` does without.
        from .captures import part_mismatch

        return self._asked(lambda: part_mismatch(grammar, text))

    def sample(self, seed: int = 0, max_bytes: int = MAX_BYTES) -> str:
        """Give a random text, the same for the same seed. Raises: GrammarError."""
        from ..runtime.grammar.explain import samples

        return self._asked(lambda: samples(self._grammar(), 1, seed, max_bytes)[0])

    def explain(self) -> Explanation:
        """Say what is exact, what is only checked at the end, and what is refused."""
        from ..runtime.grammar.explain import Explanation, explain

        fault = self._fault()
        spec = self._spec()
        return explain(spec) if not fault else Explanation(spec.kind, refused=fault)

    def __repr__(self) -> str:
        shown = self.source if len(self.source) <= 60 else f"{self.source[:60]}..."
        grammar = self._constraint.grammar
        names = [] if grammar is None else [part.name for part in grammar.parts]
        return f"Grammar({self.kind}={shown!r}{f', parts={names}' if names else ''})"

    def _fault(self) -> str:
        fault = constraint_fault(self._constraint)
        return "" if fault is None else fault.reason

    def _spec(self) -> GrammarSpec:
        from .lowering import grammar_spec

        return grammar_spec(self._constraint)

    def _grammar(self) -> PooledGrammar:
        from ..runtime.grammar.explain import compile_plain

        if self._compiled is None:
            if fault := self._fault():
                raise GrammarError(fault, code="bad_grammar")
            self._compiled = compile_plain(self._spec())
        return self._compiled

    def _asked(self, ask: Callable[[], T]) -> T:
        from ..runtime.errors import RequestError

        try:
            return ask()
        except RequestError as error:
            raise GrammarError(str(error), code=error.code) from error


def _constraint(
    kind: GrammarKind, given: object, parts: object, schema_options: Mapping[str, object]
) -> Constraint:
    match kind:
        case "lark" | "ebnf":
            named = () if parts is None else parts_of(parts)
            text = GrammarText(kind, text_of(kind, given), named)
            return constraint_of_kind("grammar", text, **schema_options)
        case "schema" | "regex" | "choices":
            if parts is not None:
                raise InvalidArgument(
                    "parts are named by a text in Lark, EBNF or GBNF; give lark or ebnf"
                )
            return constraint_of_kind(kind, given, **schema_options)
