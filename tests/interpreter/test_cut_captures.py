"""Captures of outputs that were cut, or that could go on."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Invalid, State, Truncated, function, gen

from .tool_calls import CALL, TEXT, run


@function
def cut(s: State, options: dict[str, Any]) -> str:
    s += "call?"
    s += gen("call", grammar=CALL, captures=["tool", "args"], **options)
    return str(s["tool"])


def test_a_cut_call_is_truncated_where_a_capture_is_read() -> None:
    with pytest.raises(Truncated, match=r"the capture tool is not whole: cut by max_tokens"):
        run(cut, TEXT, options={"max_tokens": 12})
    with pytest.raises(Invalid, match=r"the capture tool is not valid: cut by the stop string ':'"):
        run(cut, TEXT, options={"stop": ":"})


def test_a_call_that_could_go_on_is_not_whole_at_the_limit() -> None:
    length = len(TEXT)
    with pytest.raises(Truncated):  # " at 7" could follow
        run(cut, TEXT + " at 7", options={"max_tokens": length})


@function
def whole(s: State) -> str:
    s += "call?"
    s += gen(regex="(?P<x>[ab]{3})(?P<y>c*)", captures=["x", "y"], max_tokens=4)
    return f"{s['x']}{s['y']}"


def test_a_group_at_the_limit_is_whole_where_nothing_can_follow() -> None:
    with pytest.raises(Truncated):
        run(whole, "abacc")
    assert run(whole, "aba").value == "aba"


@function
def referred(s: State) -> None:
    s += "call?"
    s += gen("call", grammar=CALL, captures=["tool"], max_tokens=5)
    s += s.ref("tool") + gen("more", max_tokens=1)


def test_a_reference_to_a_capture_that_is_cut_fails_as_its_gen() -> None:
    with pytest.raises(
        Truncated, match=r'test_cut_captures\.py:\d+: gen\("call"\): the capture tool'
    ):
        run(referred, TEXT)


@function
def survived(s: State) -> str:
    s += "call?"
    s += gen("call", grammar=CALL, captures=["tool"], max_tokens=5)
    try:
        return str(s["tool"])
    except Truncated as error:
        return error.text


def test_a_cut_that_is_handled_is_no_failure_of_the_run() -> None:
    assert run(survived, TEXT).value == TEXT[:5]


@function
def worded(s: State, regex: str, options: dict[str, Any]) -> str:
    s += "call?"
    s += gen("all", regex=regex, captures=["w"], **options)
    return str(s["w"])


BACKTRACKS = r"(?P<w>(?:[a-z]+ ?)+)\."


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("options", "error"), [({"max_tokens": 44}, Truncated), ({"stop": "z"}, Invalid)]
)
def test_a_cut_text_on_which_re_would_backtrack_is_told_at_once(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match="the capture w is not"):
        run(worded, "a" * 60 + "z.", regex=BACKTRACKS, options=options)
    assert run(worded, "a" * 60 + ".", regex=BACKTRACKS, options={}).value == "a" * 60


def test_a_text_that_is_whole_but_could_go_on_asks_for_a_stop_string() -> None:
    reason = r"the capture w may go on: the text is whole but could go on.*; give a stop string"
    with pytest.raises(Truncated, match=reason):
        run(worded, "aaaa", regex="(?P<w>a+)", options={"max_tokens": 3})
    with pytest.raises(Truncated, match=reason.replace(" w ", " tool ")):
        run(cut, TEXT + " at 7", options={"max_tokens": len(TEXT)})
    assert run(worded, "aaa\n", regex="(?P<w>a+)", options={"stop": "\n"}).value == "aaa"
