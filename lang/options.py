"""Check what an author gives to gen and select; every message names the field."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from .errors import InvalidArgument
from .ops import Sampling
from .standin import stop

GEN_OPTIONS = (
    *(field.name for field in fields(Sampling)),
    *("regex", "choices", "schema", "grammar", "captures"),
    *("ge", "gt", "le", "lt", "strict", "whitespace", "order", "registry", "seed", "n"),
)
MAX_INT = 2**63 - 1  # what a message to the runtime can carry
_WIDTH = 200  # characters of a value that a message shows


def wrong(field: str, value: object, allowed: str) -> InvalidArgument:
    """Give the error for a field whose value has no meaning."""
    try:
        shown = repr(value)
    except ValueError:  # Python does not write out an int of more than 4,300 digits
        shown = f"<{type(value).__name__}>"
    if len(shown) > _WIDTH:
        shown = f"{shown[:_WIDTH]}..."
    return InvalidArgument(f"{field}={shown}: {field} must be {allowed}")


def nearest(names: Iterable[str], known: Iterable[str]) -> str:
    """Give the question after unknown names: ` (did you mean max_tokens?)`, or nothing."""
    from difflib import get_close_matches  # a mistake alone needs it

    candidates = list(known)
    found = [match for name in names for match in get_close_matches(name, candidates, 1)]
    return f" (did you mean {', '.join(dict.fromkeys(found))}?)" if found else ""


def refuse_unknown(names: Iterable[str], known: Iterable[str], what: str = "option") -> None:
    """Refuse names that are not among `known`, which the message lists."""
    options = list(known)
    unknown = sorted(set(names) - set(options))
    if unknown:
        raise InvalidArgument(
            f"unknown {what} {', '.join(unknown)}{nearest(unknown, options)}; "
            f"the {what}s are {', '.join(options)}"
        )


def whole(field: str, value: object, low: int, allowed: str) -> int | None:
    """Check an optional whole number from `low` to 2**63 - 1."""
    if value is None:
        return None
    stop(value, f"the option {field} needs the value")
    if isinstance(value, bool):
        raise wrong(field, value, f"a whole number: {allowed}; this is a bool")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise wrong(field, value, f"a whole number: {allowed}") from None
    if number < low:
        raise wrong(field, value, allowed)
    if number > MAX_INT:
        raise wrong(field, value, "at most 2**63 - 1")
    return number


def seed_of(seed: object) -> int | None:
    """Check an optional seed: 63 bits."""
    return whole("seed", seed, 0, "from 0 to 2**63 - 1")


def real(field: str, value: object, low: float, high: float, allowed: str) -> float | None:
    """Check an optional real number between `low` and `high`, both included."""
    if value is None:
        return None
    stop(value, f"the option {field} needs the value")
    if isinstance(value, bool):
        raise wrong(field, value, f"a number: {allowed}; this is a bool")
    if not isinstance(value, int | float):
        raise wrong(field, value, f"a number: {allowed}")
    try:
        number = float(value)
    except OverflowError:
        raise wrong(field, value, allowed) from None
    if not math.isfinite(number) or not low <= number <= high:
        raise wrong(field, value, allowed)
    return number


def sampling(
    *,
    max_tokens: object = None,
    min_tokens: object = None,
    stop: object = None,
    keep_stop: object = None,
    temperature: object = None,
    top_k: object = None,
    top_p: object = None,
    min_p: object = None,
    ignore_eos: object = None,
    heal: object = None,
) -> Sampling:
    """Give the checked sampling options; None stays None, 0 stays 0.

    Raises: InvalidArgument, naming the field.
    """
    most = whole("max_tokens", max_tokens, 0, "0 or more")
    least = whole("min_tokens", min_tokens, 0, "0 or more")
    if most is not None and least is not None and least > most:
        raise wrong("min_tokens", least, f"at most max_tokens={most}")
    share = real("top_p", top_p, 0, 1, "over 0 and at most 1")
    if share == 0:
        raise wrong("top_p", top_p, "over 0 and at most 1")
    return Sampling(
        max_tokens=most,
        min_tokens=least,
        stop=_stops(stop),
        keep_stop=flag("keep_stop", keep_stop),
        temperature=real("temperature", temperature, 0, math.inf, "0 or more, and finite"),
        top_k=whole("top_k", top_k, -1, "1 or more, or 0 or -1 for all"),
        top_p=share,
        min_p=real("min_p", min_p, 0, 1, "from 0 to 1"),
        ignore_eos=flag("ignore_eos", ignore_eos),
        heal=flag("heal", heal),
    )


def name_of(name: object) -> str | None:
    """Check an optional variable name."""
    if name is None:
        return None
    given = text("name", name)
    if not given:
        raise wrong("name", name, "a str that is not empty, or left out")
    return given


def text(field: str, value: object) -> str:
    """Check a str, and give it as a plain one."""
    stop(value, f"the option {field} needs the value")
    if not isinstance(value, str):
        raise wrong(field, value, "a str")
    plain = str.__str__(value)  # a subclass, such as an enum's, by its content
    check_encodes(plain, field)
    return plain


def refuse_twice(field: str, names: Sequence[str]) -> None:
    """Refuse a name that is there twice."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidArgument(f"{field}={list(names)!r}: {twice!r} is there twice")


def check_encodes(text: str, field: str) -> None:
    """Refuse a lone surrogate: it has no UTF-8, so no model and no message can have it."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{field} has a lone surrogate at position {error.start}, which no encoding has; "
            "read the source with errors='replace'"
        ) from error


def choices_of(choices: object) -> tuple[str, ...]:
    """Check choices: some, each a str that is not empty, none twice."""
    given = strings("choices", choices)
    if not given:
        raise wrong("choices", choices, "at least one str")
    refuse_twice("choices", given)
    return given


def samples_of(n: object, name: object, temperature: object) -> int | None:
    """Check an optional number of samples; they need a name, and a draw."""
    count = whole("n", n, 1, "1 or more")
    if count is None:
        return None
    if name is None:
        raise InvalidArgument(f"n={n!r}: the samples are read as a list by name; give the gen one")
    if count > 1 and temperature == 0:
        raise InvalidArgument(f"n={n!r}: at temperature=0 all samples are the same; leave one out")
    return count


def _stops(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    stop(value, "the option stop needs the value")
    return strings("stop", (value,) if isinstance(value, str) else value)


def strings(field: str, values: object) -> tuple[str, ...]:
    """Check a list of texts, none of them empty."""
    stop(values, f"the option {field} needs the value")
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong(field, values, "a str or a list of str" if field == "stop" else "a list of str")
    if isinstance(values, set | frozenset):
        raise wrong(field, values, "a list: a set has no order")
    if isinstance(values, Mapping):
        raise wrong(field, values, "a list: of a dict it is not said which texts are meant")
    given = tuple(text(f"{field}[{i}]", value) for i, value in enumerate(values))
    if "" in given:
        raise wrong(field, list(given), "texts that are not empty")
    return given


def flag(field: str, value: object) -> bool | None:
    """Check an optional True or False."""
    stop(value, f"the option {field} needs the value")
    if value is not None and not isinstance(value, bool):
        raise wrong(field, value, "True or False")
    return value
