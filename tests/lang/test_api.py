"""gen and select: what is kept, and what is refused at the line that says it."""

from __future__ import annotations

from typing import Any

import pytest

from plait.lang.api import gen, select
from plait.lang.errors import InvalidArgument
from plait.lang.expr import Expr
from plait.lang.ops import Constraint, Gen, Sampling, Select


def gen_op(expr: Expr) -> Gen:
    (op,) = expr.parts
    assert isinstance(op, Gen)
    return op


def test_what_is_not_given_is_none() -> None:
    assert gen_op(gen()) == Gen()


def test_zero_is_a_value() -> None:
    op = gen_op(gen(temperature=0, max_tokens=0, min_tokens=0, top_k=0, min_p=0, seed=0))
    assert op.sampling == Sampling(max_tokens=0, min_tokens=0, temperature=0, top_k=0, min_p=0)
    assert op.seed == 0


def test_one_stop_and_several_are_the_same() -> None:
    assert gen_op(gen(stop="\n")) == gen_op(gen(stop=["\n"]))
    assert gen_op(gen(stop=[])).sampling.stop == ()


def test_numbers_have_one_type() -> None:
    assert repr(gen(temperature=1)) == repr(gen(temperature=1.0))


def test_a_callers_list_is_copied() -> None:
    choices = ["a", "b"]
    expr = gen("x", choices=choices)
    choices.append("c")
    assert gen_op(expr).constraint == Constraint(choices=("a", "b"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", -1),
        ("max_tokens", 1.5),
        ("max_tokens", True),
        ("max_tokens", "3"),
        ("min_tokens", -1),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", "0"),
        ("top_p", 0),
        ("top_p", 1.1),
        ("top_k", -2),
        ("min_p", 1.5),
        ("stop", ""),
        ("stop", ["a", ""]),
        ("stop", [3]),
        ("stop", 3),
        ("ignore_eos", 1),
        ("regex", 3),
        ("choices", []),
        ("choices", ["a", "a"]),
        ("choices", ["a", 3]),
        ("choices", [""]),
        ("choices", "abc"),
        ("choices", {"a", "b"}),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", 1.0),
        ("max_tokens", 2**63),
        ("min_tokens", 2**63),
        ("top_k", 2**63),
        ("temperature", 10**400),
        ("name", "a\ud800"),
        ("regex", "a\ud800"),
        ("stop", "a\ud800"),
        ("stop", ["a", "\ud800"]),
        ("choices", ["a", "\ud800"]),
        ("name", ""),
        ("name", 3),
    ],
)
def test_an_option_without_meaning_is_refused_by_name(field: str, value: object) -> None:
    options: dict[str, Any] = {field: value}
    with pytest.raises(InvalidArgument, match=rf"test_api.py:\d+: gen\(.*{field}"):
        gen(**options)


@pytest.mark.parametrize("field", ["max_tokens", "min_tokens", "top_k", "seed"])
def test_a_number_past_the_limit_names_the_limit(field: str) -> None:
    options: dict[str, Any] = {field: 2**63}
    with pytest.raises(InvalidArgument, match=rf"{field} must be at most 2\*\*63 - 1"):
        gen(**options)
    options = {field: 2**63 - 1}
    gen(**options)


def test_a_number_too_long_to_write_is_refused_all_the_same() -> None:
    with pytest.raises(InvalidArgument, match="max_tokens=<int>: max_tokens must be at most"):
        gen(max_tokens=10**5000)


@pytest.mark.parametrize("field", ["max_tokens", "seed", "temperature"])
def test_a_bool_for_a_number_is_called_a_bool(field: str) -> None:
    options: dict[str, Any] = {field: True}
    with pytest.raises(InvalidArgument, match=f"{field}=True: .* a .*number: .*; this is a bool"):
        gen(**options)


def test_stop_may_be_one_text_or_several_and_the_error_says_so() -> None:
    with pytest.raises(InvalidArgument, match="stop=3: stop must be a str or a list of str"):
        gen(stop=3)  # type: ignore[arg-type]


def test_a_lone_surrogate_is_called_one() -> None:
    with pytest.raises(InvalidArgument, match="regex has a lone surrogate at position 1"):
        gen(regex="a\ud800")
    with pytest.raises(InvalidArgument, match=r"choices\[1\] has a lone surrogate at position 0"):
        select("x", ["a", "\ud800"])


def test_min_tokens_over_max_tokens_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="min_tokens=3: min_tokens must be at most"):
        gen(min_tokens=3, max_tokens=2)


def test_an_unknown_option_is_refused_with_those_there_are_and_a_near_one() -> None:
    fault = r"gen\('x'\): unknown option max_token \(did you mean max_tokens\?\); the options are "
    with pytest.raises(InvalidArgument, match=rf"test_api.py:\d+: {fault}max_tokens, min_tokens"):
        gen("x", max_token=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"unknown option foo; the options are"):
        gen("x", foo=1)  # type: ignore[arg-type]


def test_regex_and_choices_together_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="regex and choices are both given"):
        gen(regex="a", choices=["a"])


def test_several_samples_belong_to_the_expression_and_not_to_the_gen() -> None:
    assert gen("x", n=3).parts == gen("x").parts
    assert ("a" + gen("x", n=3) + gen("y")).num_samples == 3
    assert gen("x").num_samples is None


def test_select_keeps_name_choices_and_method() -> None:
    assert select("x", ["a", "ab"]).parts == (Select("x", ("a", "ab"), "sum"),)
    assert select(None, ("a",), "token_length_normalized").parts == (
        Select(None, ("a",), "token_length_normalized"),
    )


def test_an_unknown_method_lists_the_known_ones() -> None:
    with pytest.raises(InvalidArgument, match="one of sum, token_length_normalized, greedy"):
        select("x", ["a"], method="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("choices", [[], ["a", "a"], [""], "ab", None, [1]])
def test_select_refuses_choices_without_meaning(choices: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"select\('x'\): choices"):
        select("x", choices)
