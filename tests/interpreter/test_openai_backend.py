"""Programs on an OpenAI-compatible server, which stands on loopback here."""

from __future__ import annotations

import datetime
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import plait
from plait import Backend, NodeError, State, assistant, function, gen, select, user
from plait.interpreter.backend import Failed
from plait.lang.graph import Node
from plait.lang.ops import Gen, RoleBegin, RoleEnd, Text

from .openai_server import Reply, Server, serving
from .scripted_runs import Run, chain

KEY = "sk-very-secret"


@contextmanager
def served(
    say: Callable[[dict[str, Any]], Reply | str], **options: Any
) -> Iterator[tuple[Backend, Server]]:
    """A backend and its server."""
    with serving(say) as server:
        options.setdefault("retries", 0)
        backend = plait.openai("m", base_url=server.url, api_key=KEY, **options)
        try:
            yield backend, server
        finally:
            backend.close()


def error_of(program: Any, backend: Backend, **options: Any) -> NodeError:
    """The error that a run ends with."""
    with pytest.raises(NodeError) as caught:
        program.run(backend=backend, **options)
    return caught.value


@function
def ask(s: State, question: str = "Why?") -> None:
    s += user(question)
    s += assistant(gen("a", max_tokens=9, temperature=0.5, stop=["\n"]))


@function
def talk(s: State) -> None:
    s += user("one")
    s += assistant(gen("a"))
    s += user("two")
    s += assistant(gen("b"))


@function
def extract(s: State) -> None:
    s += user("Give it.")
    s += assistant(gen("x", schema={"type": "object", "properties": {"n": {"type": "integer"}}}))


@function
def chooses(s: State) -> None:
    s += user("Which?")
    s += assistant(select("x", ["red", "blue"]))


@function
def matches(s: State) -> None:
    s += user("A number.")
    s += assistant(gen("x", regex=r"\d+"))


def test_a_gen_is_one_request_with_its_turns_and_sampling() -> None:
    with served(lambda _: "Because.") as (backend, server):
        result = ask.run(backend=backend, seed=3)
    assert result["a"] == "Because."
    (asked,) = server.asked
    assert isinstance(asked.pop("seed"), int)
    assert asked == {
        "model": "m",
        "messages": [{"role": "user", "content": "Why?"}],
        "max_tokens": 9,
        "temperature": 0.5,
        "stop": ["\n"],
    }


def test_what_was_written_is_part_of_the_next_request() -> None:
    with served(lambda asked: f"answer {len(asked['messages'])}") as (backend, server):
        result = talk.run(backend=backend)
    assert result["b"] == "answer 3"
    assert server.asked[1]["messages"] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "answer 1"},
        {"role": "user", "content": "two"},
    ]


def test_usage_and_finish_reason_are_the_servers() -> None:
    with served(lambda _: Reply("cut", finish="length")) as (backend, _server):
        meta = ask.run(backend=backend).meta("a")
    assert meta.finish_reason == "length"
    usage = meta.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.output_tokens) == (7, 5, 3)
    assert not meta.is_emulated


def test_a_stream_gives_pieces_and_usage() -> None:
    with served(lambda _: "Well") as (backend, server):
        stream = ask.stream(backend=backend)
        events = list(stream)
        result = stream.result
    assert [event.text for event in events if event.kind == "delta"] == [*"Well"]
    assert server.asked[0]["stream"] is True
    assert result.meta("a").usage.output_tokens == 3


def test_completions_take_plain_text() -> None:
    @function
    def plain(s: State) -> None:
        s += "1, 2," + gen("x", max_tokens=4) + ", " + gen("y", max_tokens=4)

    with served(lambda asked: f"<{asked['prompt']}>", api="completions") as (backend, _):
        assert plain.run(backend=backend).text() == "1, 2,<1, 2,>, <1, 2,<1, 2,>, >"


def test_branches_ask_at_the_same_time_up_to_the_bound() -> None:
    both = threading.Barrier(2, timeout=10)
    running = []

    def say(_: dict[str, Any]) -> str:
        both.wait()  # breaks if one waits for the other
        running.append(1)
        return "x"

    @function
    def forks(s: State) -> None:
        s += user("q")
        branches = s.fork(4)
        for branch in branches:
            branch += assistant(gen("a"))

    before = threading.active_count()
    with served(say, max_concurrency=2) as (backend, server):
        result = forks.run(backend=backend)
        assert result["a"] == ["x"] * 4
    assert len(server.asked) == 4
    assert threading.active_count() <= before + 4


def test_a_schema_is_a_strict_response_format() -> None:
    with served(lambda _: '{"n": 3}') as (backend, server):
        assert extract.run(backend=backend)["x"] == {"n": 3}
    form = server.asked[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert form["json_schema"]["schema"]["properties"] == {"n": {"type": "integer"}}


def test_a_date_is_read_out_of_its_quotes() -> None:
    @function
    def when(s: State) -> None:
        s += user("When?")
        s += assistant(gen("x", datetime.date))

    with served(lambda _: '"2026-01-31"') as (backend, _):
        result = when.run(backend=backend)
    assert result["x"] == datetime.date(2026, 1, 31)
    assert result.messages()[-1]["content"] == "2026-01-31"


@pytest.mark.parametrize("option", [{"top": 2}, {"temperature": 1.0}, {"abstain_below": 0.5}])
def test_what_needs_a_selects_probabilities_is_refused(option: dict[str, Any]) -> None:
    @function
    def picks(s: State) -> None:
        s += user("Which?")
        s += assistant(select("x", ["red", "blue"], **option))

    with served(lambda _: '{"choice": "blue"}', emulate=True) as (backend, server):
        assert f"{next(iter(option))}: a select has no probabilities" in str(
            error_of(picks, backend)
        )
        assert server.asked == []


def test_a_score_is_refused_by_name() -> None:
    @function
    def scores(s: State) -> float:
        s += user("Which?")
        return s.score("red").total

    with served(lambda _: "no") as (backend, _):
        assert "gives no log-probabilities" in str(error_of(scores, backend))


def test_an_answer_that_breaks_the_schema_is_an_error() -> None:
    with served(lambda _: '{"n": "three"}') as (backend, _):
        error = error_of(extract, backend)
    assert error.code == "invalid_value"
    assert "does not match: $.n" in str(error)


def test_a_value_that_max_tokens_has_cut_is_truncated() -> None:
    with served(lambda _: Reply('{"n": ', finish="length")) as (backend, _):
        assert isinstance(error_of(extract, backend), plait.Truncated)


@pytest.mark.parametrize(("program", "name"), [(chooses, "select"), (matches, "regex")])
def test_what_the_server_cannot_do_is_refused_by_name(program: Any, name: str) -> None:
    with served(lambda _: "no") as (backend, server):
        with pytest.raises(NodeError, match=f"{name}.*emulate=True"):
            program.run(backend=backend).check()
        assert server.asked == []


def test_a_select_is_emulated_and_says_so() -> None:
    with served(lambda _: '{"choice": "blue"}', emulate=True) as (backend, server):
        result = chooses.run(backend=backend)
    assert result["x"] == "blue"
    assert result.meta("x").is_emulated
    assert result.meta("x").probabilities == {}
    schema = server.asked[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["choice"]["enum"] == ["red", "blue"]


def test_an_emulated_constraint_asks_again_until_the_answer_matches() -> None:
    answers = iter(["none", "12x", "12"])
    with served(lambda _: next(answers), emulate=True) as (backend, server):
        result = matches.run(backend=backend)
    assert result["x"] == "12"
    assert result.meta("x").is_emulated
    assert result.meta("x").usage.prompt_tokens == 3 * 7
    assert len({asked["seed"] for asked in server.asked}) == 3


@pytest.mark.parametrize(
    ("written", "value"), [(" no, never", "no"), ("none", "none"), ("no", "no")]
)
def test_an_emulated_choice_of_a_plain_text_ends_at_a_word(written: str, value: str) -> None:
    @function
    def plain(s: State) -> None:
        s += "So: " + select("x", ["no", "none"])

    with served(lambda _: written, api="completions", emulate=True) as (backend, _):
        assert plain.run(backend=backend)["x"] == value


def test_what_begins_like_a_choice_and_goes_on_is_none() -> None:
    @function
    def plain(s: State) -> None:
        s += "So: " + select("x", ["no", "none"])

    with served(lambda _: "nothing", api="completions", emulate=True) as (backend, _):
        assert "none of the choices" in str(error_of(plain, backend))


def test_a_journal_asks_nothing_twice(tmp_path: Path) -> None:
    with served(lambda asked: f"answer {len(asked['messages'])}") as (backend, server):
        first = talk.run(backend=backend, journal=tmp_path / "kept")
        again = talk.run(backend=backend, journal=tmp_path / "kept")
    assert again["b"] == first["b"] == "answer 3"
    assert len(server.asked) == 2


def test_an_emulated_constraint_gives_up_after_its_tries() -> None:
    with served(lambda _: "none", emulate=True, num_tries=2) as (backend, server):
        with pytest.raises(NodeError, match="does not match in 2 tries"):
            matches.run(backend=backend).check()
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (Reply(status=401, error=f"bad key {KEY}"), "auth", r"bad key \*\*\*; check api_key"),
        (Reply(status=429, headers={"retry-after": "7"}), "rate_limited", "try again after 7 s"),
        (Reply(status=500), "server_error", "HTTP 500"),
        (Reply(status=404), "invalid_request", "check model"),
        (Reply(status=400, error="maximum context length is 8"), "context_exceeded", "is 8"),
        (Reply(raw=b'{"choices": ['), "bad_answer", "cannot be read"),
        (Reply(raw=b"{}"), "bad_answer", "no choices"),
    ],
)
def test_a_fault_of_the_server_has_its_code(reply: Reply, code: str, says: str) -> None:
    with served(lambda _: reply) as (backend, _):
        error = error_of(ask, backend)
    assert error.code == code
    with pytest.raises(NodeError, match=says):
        raise error
    assert KEY not in str(error)


def test_a_prompt_over_the_context_is_the_error_of_every_backend() -> None:
    with served(lambda _: Reply(status=400, error="maximum context length is 8")) as (backend, _):
        assert isinstance(error_of(ask, backend), plait.ContextExceeded)


def test_a_stream_that_is_cut_is_no_answer() -> None:
    cut = Reply("half", is_cut=True)
    with served(lambda _: cut) as (backend, _), pytest.raises(NodeError) as caught:
        list(ask.stream(backend=backend))
    assert caught.value.code == "connection"


def test_a_server_that_is_not_there_is_a_connection_error() -> None:
    with serving(lambda _: "x") as server:
        url = server.url
    backend = plait.openai("m", base_url=url, api_key=KEY, retries=0)
    error = error_of(ask, backend)
    backend.close()
    assert error.code == "connection"


def test_the_key_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    replies = iter([Reply("fine"), Reply(status=401, error=f"bad key {KEY}")])
    caplog.set_level("DEBUG")
    with served(lambda _: next(replies)) as (backend, _):
        ask.run(backend=backend)
        error_of(ask, backend)
    assert caplog.records
    assert KEY not in "".join(f"{r.getMessage()} {r.exc_text}" for r in caplog.records)


def test_the_client_tries_again_after_a_rate_limit() -> None:
    replies = iter([Reply(status=429, headers={"retry-after": "0"}), Reply("fine")])
    with served(lambda _: next(replies), retries=1) as (backend, _):
        assert ask.run(backend=backend)["a"] == "fine"


TALK = chain(
    RoleBegin("user"),
    Text("q"),
    RoleEnd("user"),
    RoleBegin("assistant"),
    Gen("x"),
    RoleEnd("assistant"),
)


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_cancelled_gen_leaves_its_request(way: str) -> None:
    with served(lambda _: Reply(is_slow=True)) as (backend, server):
        run = Run(backend)
        run.session.submit(TALK)
        assert server.has_begun.wait(10)
        if way == "cancel":
            run.session.cancel([4])
            ends = run.wait(6)
            codes = {node: end.code for node, end in ends.items() if isinstance(end, Failed)}
            assert codes == {4: "cancelled", 5: "cancelled"}
        else:
            run.session.close()
        assert server.was_left.wait(10)


def test_a_closed_backend_tells_its_runs() -> None:
    with served(lambda _: Reply(is_slow=True)) as (backend, server):
        run = Run(backend)
        run.session.submit(TALK)
        assert server.has_begun.wait(10)
        backend.close()
        assert [type(error) for error in run.lost] == [plait.BackendDied]


def nodes(*ops: Any) -> list[Node]:
    return chain(*ops)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (nodes(Gen("x")), "outside of an assistant turn"),
        (nodes(RoleBegin("user"), Gen("x")), "in a turn of user"),
        (nodes(RoleBegin("assistant"), Text("It is "), Gen("x")), "that has text"),
        (nodes(Text("loose"), Gen("x")), "text outside of a turn"),
    ],
)
def test_a_chat_gen_stands_first_in_an_assistant_turn(written: list[Node], says: str) -> None:
    with served(lambda _: "x") as (backend, server):
        ends = Run(backend).results(written)
        last = ends[len(written) - 1]
        assert isinstance(last, Failed)
        assert says in last.message
        assert server.asked == []


def test_options_beyond_the_api_are_refused_unless_the_server_takes_them() -> None:
    with served(lambda _: "x") as (backend, _):
        error = error_of(ask, backend, top_k=5)
        assert "top_k" in str(error)
        assert "accepts=('top_k',)" in str(error)
    with served(lambda _: "x", accepts=["top_k"]) as (backend, server):
        ask.run(backend=backend, top_k=5).check()
    assert server.asked[0]["top_k"] == 5


def test_without_the_client_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "plait.interpreter.backends.openai", raising=False)
    with pytest.raises(plait.BackendUnavailable, match=r"pip install 'plait\[openai\]'"):
        plait.openai("m")


def test_without_a_key_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(plait.BackendUnavailable, match="api_key"):
        plait.openai("m", base_url="http://127.0.0.1:1/v1")
