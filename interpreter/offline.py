"""A grammar without a model: whether a text is one of its, random texts, what it guarantees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from ..lang.checked_ops import gen_of
from ..lang.errors import GrammarError, InvalidArgument
from ..lang.ops import GrammarText, PropertyOrder, Sampling
from ..lang.where import place
from .values import mismatch, schema_fault

if TYPE_CHECKING:
    from ..runtime.grammar.explain import Explanation
    from ..runtime.grammar.matcher import PooledGrammar
    from ..runtime.grammar.spec import GrammarSpec

T = TypeVar("T")
MAX_BYTES = 200  # of a sample: from half of it on, it takes a short way to its end


def _text(kind: str, source: object) -> GrammarText:
    return GrammarText("lark" if kind == "lark" else "ebnf", cast("str", source))


class Grammar:
    """One constraint of a gen, to try out: `Grammar(schema=Order).match(text)`.

    Exactly one of `schema`, `regex`, `choices`, `lark` and `ebnf` is given; the others are as
    `gen` has them. `gen(grammar=...)` takes one made of `lark` or `ebnf`.

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
        strict: bool | None = None,
        whitespace: int | None = None,
        order: PropertyOrder | None = None,
        registry: Mapping[str, object] | None = None,
    ) -> None:
        given = {"schema": schema, "regex": regex, "choices": choices, "lark": lark, "ebnf": ebnf}
        kinds = [kind for kind, value in given.items() if value is not None]
        if len(kinds) != 1:
            raise InvalidArgument(f"{place()}Grammar(): give one of {', '.join(given)}")
        (self.kind,) = kinds
        text = given[self.kind] if self.kind in ("lark", "ebnf") else None
        try:
            self._op = gen_of(
                None,
                Sampling(),
                regex=regex,
                choices=choices,
                schema=schema,
                grammar=None if text is None else _text(self.kind, text),
                strict=strict,
                whitespace=whitespace,
                order=order,
                registry=registry,
            )
        except InvalidArgument as error:
            raise InvalidArgument(f"{place()}Grammar(): {error}") from None
        self._compiled: PooledGrammar | None = None

    @property
    def source(self) -> str:
        """Give its text; of choices, one a line."""
        op = self._op
        if op.schema is not None:
            return op.schema.source
        if op.grammar is not None:
            return op.grammar.source
        return op.regex if op.regex is not None else "\n".join(op.choices or ())

    def match(self, text: str) -> bool:
        """Say whether a gen could write `text`, as a whole. Raises: GrammarError."""
        return not self.mismatch(text)

    def mismatch(self, text: str) -> str:
        """Say why `text` is none of the grammar's; nothing if it is. Raises: GrammarError."""
        from ..runtime.grammar.explain import mismatch as leaves

        reason = self._asked(lambda: leaves(self._grammar(), text))
        if reason or self._op.schema is None:
            return reason
        return mismatch(self._op.schema, text)

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
        return f"Grammar({self.kind}={shown!r})"

    def _fault(self) -> str:
        fault = None if self._op.schema is None else schema_fault(self._op.schema)
        return "" if fault is None else fault[1]

    def _spec(self) -> GrammarSpec:
        from .lowering import grammar_spec

        spec = grammar_spec(self._op, ())
        assert spec is not None
        return spec

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
