"""Every kind of node but select on the real engine, over the scripted model."""

from __future__ import annotations

import threading

import pytest

from plait.interpreter.backend import Delta, Done, Failed
from plait.lang.graph import Node
from plait.lang.ops import (
    Constraint,
    Gen,
    RoleBegin,
    RoleEnd,
    Sampling,
    Select,
    Source,
    Text,
    Value,
)

from .scripted_runs import Run, answer, chain, scripted


def test_a_gen_goes_on_from_the_text_before_it() -> None:
    with scripted(answer) as backend:
        text = Run(backend).text(chain(Text("one "), Text("two:"), Gen("x"), Text(" "), Gen("y")))
    assert text == "one two:<8:> <13 >"


def test_roles_show_the_model_its_own_template() -> None:
    seen: list[str] = []

    def listen(text: str) -> str:
        seen.append(text)
        return "Hi"

    talk = chain(
        RoleBegin("user"),
        Text("Hello <|im_end|>"),
        RoleEnd("user"),
        RoleBegin("assistant"),
        Gen("x"),
        RoleEnd("assistant"),
    )
    with scripted(listen) as backend:
        run = Run(backend)
        text = run.text(talk)
        done = run.ends[4]
    prompt = "<|im_start|>user\nHello <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    assert text == prompt + "Hi<|im_end|>\n"
    assert set(seen) == {prompt}
    assert isinstance(done, Done)
    # The author's "<|im_end|>" is its ten bytes; each of the template's controls is one token.
    num_tokens = len(prompt) - 2 * len("<|im_start|>") - len("<|im_end|>") + 3
    assert done.meta.usage.prompt_tokens == num_tokens


def test_a_model_without_a_template_refuses_roles_and_serves_the_rest() -> None:
    with scripted(answer, template=None) as backend:
        assert not backend.capabilities().has_chat_template
        ends = Run(backend).results([*chain(RoleBegin("user"), Gen("x")), Node(2, Gen("y"), None)])
    assert isinstance(ends[1], Failed)
    assert (ends[1].code, ends[1].origin) == ("no_template", 0)
    assert isinstance(ends[2], Done)


@pytest.mark.parametrize("adds_bos", [False, True])
def test_a_program_may_start_with_branches_or_with_nothing(adds_bos: bool) -> None:
    with scripted(lambda text: "ok", adds_bos=adds_bos) as backend:
        for start in ([], [Text("")], [Text(""), Text("")]):
            stem = chain(*start)
            last = len(stem) - 1 if stem else None
            ids = range(len(stem), len(stem) + 3)
            branches = [Node(i, Gen("x"), last, branch=f"0.{i}") for i in ids]
            ends = Run(backend).results([*stem, *branches])
            for i in ids:
                end = ends[i]
                assert isinstance(end, Done)
                assert (end.text, end.meta.usage.prompt_tokens) == ("ok", 1)
        first = Run(backend).results(chain(Select("x", ("yes", "ok"))))[0]
        assert isinstance(first, Done)
        assert first.text == "ok"


def test_branches_are_read_by_a_join_in_the_order_of_the_program() -> None:
    nodes = [
        Node(0, Text("Q"), None),
        *(Node(1 + i, Text(str(i)), 0, branch=f"0.{i}") for i in range(3)),
        *(Node(4 + i, Gen("x"), 1 + i, branch=f"0.{i}") for i in range(3)),
        *(Node(7 + i, Value(Source(4 + i)), 6 + i if i else 0, reads=(4 + i,)) for i in range(3)),
        Node(10, Gen("y"), 9),
    ]
    with scripted(answer) as backend:
        ends = Run(backend).results(nodes)
    assert isinstance(ends[10], Done)
    assert [ends[4 + i].text for i in range(3)] == ["<20>", "<21>", "<22>"]  # type: ignore[union-attr]
    assert ends[10].text == "<13>>"


def test_zero_means_zero() -> None:
    with scripted(lambda text: {"a": 0.6, "b": 0.4}) as backend:
        for seed in range(5):
            cold = Gen("x", Sampling(temperature=0.0, max_tokens=8))
            done = Run(backend, seed=seed).results(chain(Text("s"), cold))[1]
            assert isinstance(done, Done)
            assert (done.text, done.meta.finish_reason) == ("a" * 8, "length")
        none = Run(backend).results(chain(Text("s"), Gen("x", Sampling(max_tokens=0))))[1]
        assert isinstance(none, Done)
        assert (none.text, none.meta.finish_reason) == ("", "length")


def test_a_gen_without_a_cap_ends_where_the_model_ends() -> None:
    with scripted(lambda text: "z" * 300) as backend:
        done = Run(backend).results(chain(Text("s"), Gen("x")))[1]
    assert isinstance(done, Done)
    assert (done.text, done.meta.finish_reason) == ("z" * 300, "stop")


def test_a_seeded_result_does_not_depend_on_how_the_program_is_cut() -> None:
    warm = Sampling(temperature=1.0, max_tokens=12)
    nodes = [
        Node(0, Text("s"), None),
        *(Node(1 + i, Gen("x", warm), 0, branch=f"0.{i}") for i in range(8)),
        *(Node(9 + i, Gen("y", warm), 1 + i, branch=f"0.{i}") for i in range(8)),
    ]
    with scripted(lambda text: {"a": 0.5, "b": 0.5}) as backend:
        whole = Run(backend).results(nodes)
        cut = Run(backend)
        for i, node in enumerate(nodes):
            cut.session.submit([node])
            cut.wait(i + 1)
        other = Run(backend, seed=2).results(nodes)
    texts = [[run[i].text for i in range(1, 17)] for run in (whole, cut.ends, other)]  # type: ignore[union-attr]
    assert texts[0] == texts[1] != texts[2]
    assert len(set(texts[0])) > 8


def test_stop_strings_are_cut_off_and_text_goes_on_after_them() -> None:
    gen = Gen("x", Sampling(stop=(", t",)))
    with scripted(lambda text: "one, two") as backend:
        run = Run(backend)
        assert run.text(chain(Text("> "), gen, Text("!"), Select("y", ("?", "one")))) == (
            "> one!one"
        )
        done = run.ends[1]
    assert isinstance(done, Done)
    assert (done.meta.finish_reason, done.meta.stop_reason) == ("stop", ", t")


def test_a_stop_string_ends_a_constrained_gen_where_its_text_is_whole() -> None:
    gen = Gen("x", Sampling(stop=('"',), temperature=0.0), constraint=Constraint(regex="[a-z ]+"))
    with scripted(lambda text: 'one two", three') as backend:
        run = Run(backend)
        assert run.text(chain(Text('{"'), gen, Text('"}'))) == '{"one two"}'
        done = run.ends[1]
    assert isinstance(done, Done)
    assert (done.meta.finish_reason, done.meta.stop_reason) == ("stop", '"')


def test_deltas_join_to_the_value() -> None:
    with scripted(lambda text: "Grüße, Welt 👋") as backend:
        run = Run(backend, is_streaming=True)
        run.results(chain(Text("s"), Gen("x")))
    deltas = [event.text for event in run.events if isinstance(event, Delta)]
    assert "".join(deltas) == "Grüße, Welt 👋"  # how many there are is a matter of time


@pytest.mark.parametrize(
    ("op", "code"),
    [
        (Gen("x", constraint=Constraint(regex="(unclosed")), "bad_grammar"),
        (Gen("x", Sampling(top_p=1.5)), "invalid_request"),
        (Gen("x", Sampling(min_p=-1.0)), "invalid_request"),
    ],
)
def test_a_bad_gen_fails_with_its_code_and_its_siblings_finish(op: Gen, code: str) -> None:
    nodes = [Node(0, Text("s"), None), Node(1, op, 0), Node(2, Text("t"), 1), Node(3, Gen("y"), 0)]
    with scripted(answer) as backend:
        ends = Run(backend).results(nodes)
    for i in (1, 2):
        end = ends[i]
        assert isinstance(end, Failed)
        assert (end.code, end.origin) == (code, 1)
        assert end.message.startswith('gen("x"): ')
    assert isinstance(ends[3], Done)


def test_a_prompt_over_the_context_is_refused_with_both_numbers() -> None:
    with scripted(answer, max_context=64) as backend:
        failed = Run(backend).results(chain(Text("a" * 100), Gen("x")))[1]
    assert isinstance(failed, Failed)
    assert failed.code == "context_exceeded"
    assert "100" in failed.message
    assert "64" in failed.message


def test_a_constrained_gen_keeps_to_its_choices() -> None:
    with scripted(lambda text: "no such thing") as backend:
        answer = Gen("x", constraint=Constraint(choices=("yes", "no")))
        assert Run(backend).text(chain(Text("? "), answer)) == "? no"
        digits = Gen("x", constraint=Constraint(regex="[0-9]{3}"))
        assert Run(backend).text(chain(Text("? "), digits)).strip("? ").isdigit()


def test_cancel_ends_what_runs_and_frees_it() -> None:
    endless = Gen("x", Sampling(ignore_eos=True, max_tokens=4000))
    with scripted(lambda text: "") as backend:
        run = Run(backend, is_streaming=True)
        run.session.submit([Node(0, Text("s"), None), Node(1, endless, 0), Node(2, Text("t"), 1)])
        run.session.cancel([1])
        run.session.cancel([1])
        ends = run.wait(3)
        assert isinstance(ends[2], Failed)
        assert (ends[2].code, ends[2].origin) == ("cancelled", 1)
        assert Run(backend).text(chain(Text("a"), Gen("x"))) == "a"
        assert backend.stats().num_running == 0


def test_a_closed_session_is_silent_and_its_backend_serves_others() -> None:
    endless = Gen("x", Sampling(ignore_eos=True, max_tokens=4000))
    with scripted(lambda text: "") as backend:
        run = Run(backend)
        run.session.submit(chain(Text("s"), endless))
        run.session.close()
        run.session.close()
        assert Run(backend).text(chain(Text("a"), Gen("x"))) == "a"
        assert backend.stats().num_running == 0
        assert 1 not in run.ends
    assert run.lost == []


@pytest.mark.slow
def test_many_branches_in_one_segment_need_few_threads() -> None:
    nodes = [Node(0, Text("A long beginning that all branches share. " * 20), None)]
    for i in range(1600):
        nodes.append(Node(1 + 2 * i, Text(f" {i}:"), 0, branch=f"0.{i}"))
        nodes.append(Node(2 + 2 * i, Gen("x"), 1 + 2 * i, branch=f"0.{i}"))
    num_before = threading.active_count()
    with scripted(lambda text: text[-6:]) as backend:
        run = Run(backend)
        run.session.submit(nodes)
        assert threading.active_count() - num_before < 5
        ends = run.wait(len(nodes))
    assert all(isinstance(end, Done) for end in ends.values())
    assert ends[3200].text == " 1599:"[-6:]  # type: ignore[union-attr]


# --- select
