"""What an author puts into a prompt: gen, select and turns. Building one runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Never, Protocol, TypeAlias

from .checked_ops import gen_of, select_of
from .errors import InvalidArgument
from .expr import Expr, turn
from .ops import Constraint, PropertyOrder, SelectMethod
from .options import GEN_OPTIONS, refuse_unknown, samples_of, sampling
from .where import place

# A JSON Schema, or a class or type; typing has no common type of those, such as `list[int]`.
Schema: TypeAlias = object


class GrammarLike(Protocol):
    """A grammar that says itself what it is: `plait.Grammar`."""

    @property
    def constraint(self) -> Constraint:
        """Give what its texts match."""
        ...


def gen(
    name: str | None = None,
    schema: Schema | None = None,
    *,
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    stop: str | Sequence[str] | None = None,
    keep_stop: bool | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    ignore_eos: bool | None = None,
    heal: bool | None = None,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
    grammar: str | GrammarLike | None = None,
    captures: Sequence[str] | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    strict: bool | None = None,
    whitespace: int | None = None,
    order: PropertyOrder | None = None,
    registry: Mapping[str, Schema] | None = None,
    seed: int | None = None,
    n: int | None = None,
    **unknown: Never,
) -> Expr:
    """Let the model write here, and keep what it wrote as the variable `name`.

    An option that is None takes the run's default, then the runtime's. Zero and empty are
    values: `temperature=0` is greedy, `max_tokens=0` writes nothing. Without `max_tokens`
    the model writes until it ends by itself or the context is full. A gen without a name
    sets no variable.

    Args:
        name: The variable; a name used again overwrites the earlier value.
        schema: A type, a class or a JSON Schema: `s[name]` is a value of it. One scalar is
            written as it is (`42`, `true`, `2026-01-31`, the text of a Literal), all else and
            whatever a JSON Schema says as JSON. A JSON Schema gives what json.loads gives, a
            pydantic model, a dataclass or a TypedDict an instance. A value that `max_tokens` or
            the context cuts is Truncated, one that does not validate is Invalid.
        max_tokens: The most tokens to write.
        min_tokens: The fewest tokens to write before the text may end.
        stop: Text, or texts, that end the output; cut off from it.
        keep_stop: Leave the stop string in the text; the value does not have it in any case.
        temperature: 0 is greedy; higher is more varied.
        top_p: Draw from the most likely tokens that together have this probability.
        top_k: Draw from this many most likely tokens; 0 or -1 for all.
        min_p: Draw from tokens at least this likely, relative to the likeliest.
        ignore_eos: Go on where the model would end.
        heal: Let the first token begin inside the text before it, so that what the author wrote
            may end anywhere in a word (True, unless the run says otherwise); the output is
            what follows that text in any case. False keeps the text's tokens as they are.
        regex: The output matches this regular expression as a whole, unless `max_tokens`
            or the context cuts it; `meta(name).finish_reason` is "length" then.
        choices: The output is one of these texts, unless it is cut in the same way; see
            `select` for scoring them instead.
        grammar: The output is a text of this grammar, in Lark's syntax, or in EBNF or GBNF
            (whose rules have `::=`), unless it is cut in the same way. A `Grammar` may be of
            any kind, and have parts that are Grammars.
        captures: What these parts of the output have becomes a variable each: groups of
            `regex`, rules, terminals and parts of `grammar`. Of several texts it is the last,
            of none None; of a part that is a schema, its value. Where the output is cut,
            reading one is Truncated or Invalid.
        ge: The least number, of a schema that is int or float.
        gt: The number that it is over.
        le: The greatest number.
        lt: The number that it is under.
        strict: Refuse a schema of which something is only checked at the end.
        whitespace: The most blanks at each place where JSON allows them; 0 is compact.
        order: "listed" writes properties as the schema lists them, "any" lets the model choose.
        registry: JSON Schemas by URI, for the `$ref`s of the schema: nothing is fetched.
        seed: Fixes the draws of this gen; else they follow from the run's seed and its place.
        n: Take so many samples, each in a branch of its own: `s += expr` with such a gen in it is
            a fork, and `s[name]` the list of the samples. The text of `s` goes on from none of
            them: append the one that you choose. A `seed` counts up from sample to sample.
        unknown: Refused, with the options that there are.

    Raises: InvalidArgument naming the option.
    """
    try:
        refuse_unknown(unknown, GEN_OPTIONS)
        num_samples = samples_of(n, name, temperature)
        options = sampling(
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            stop=stop,
            keep_stop=keep_stop,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            ignore_eos=ignore_eos,
            heal=heal,
        )
        op = gen_of(
            name,
            options,
            regex=regex,
            choices=choices,
            schema=schema,
            grammar=grammar,
            captures=captures,
            bounds={"ge": ge, "gt": gt, "le": le, "lt": lt},
            strict=strict,
            whitespace=whitespace,
            order=order,
            registry=registry,
            seed=seed,
        )
        return Expr((op,), num_samples)
    except InvalidArgument as error:
        raise InvalidArgument(f"{place()}gen({name!r}): {error}") from None


def select(
    name: str | None,
    choices: Sequence[str],
    method: SelectMethod = "sum",
    *,
    top: int | None = None,
    temperature: float | None = None,
    abstain_below: float | None = None,
    seed: int | None = None,
) -> Expr:
    """Score every choice after the text so far, append the best, and keep it as `name`.

    `s.meta(name).probabilities` has the probability of each choice; they sum to 1.

    Args:
        name: The variable, or None for no variable.
        choices: The texts to choose from; one may be the beginning of another.
        method: "sum" takes the likeliest text; "token_length_normalized" the best mean
            log-probability of its tokens; "greedy_token_selection" compares token by token;
            "unconditional_likelihood_normalized" subtracts how likely the text is by itself.
        top: The value is the list of so many choices, the best first; the text goes on from it.
        temperature: Draw from the probabilities, each to the power of 1/temperature. None or 0
            takes the best; the run's own temperature is for gens.
        abstain_below: Where no choice is at least this likely, append nothing: the value is
            None, with `top` an empty list, and the finish reason "abstained".
        seed: Fixes the draw; else it follows from the run's seed and its place.

    Raises: InvalidArgument naming the option.
    """
    try:
        op = select_of(
            name,
            choices,
            method,
            top=top,
            temperature=temperature,
            abstain_below=abstain_below,
            seed=seed,
        )
        return Expr((op,))
    except InvalidArgument as error:
        raise InvalidArgument(f"{place()}select({name!r}): {error}") from None


def system(content: str | Expr) -> Expr:
    """Give a whole system turn. Raises: RoleError if `content` holds a turn."""
    return turn("system", content)


def user(content: str | Expr) -> Expr:
    """Give a whole user turn. Raises: RoleError if `content` holds a turn."""
    return turn("user", content)


def assistant(content: str | Expr) -> Expr:
    """Give a whole assistant turn. Raises: RoleError if `content` holds a turn."""
    return turn("assistant", content)
