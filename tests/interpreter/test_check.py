"""Checks: each rule has a faulty program, which is told with its line and its remedy."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait import Function, InvalidArgument, Problem, State, check, function, gen, scripted, select
from plait.interpreter.backends.scripted import ScriptedBackend
from plait.interpreter.grammar_rules import ALL_RULES
from plait.lang.checks.problem import Rule

from .faulty_programs import PROGRAMS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compiler.md"
MAX_CONTEXT = 512
# What the message says, and what the remedy says.
SAID = {
    "undefined_variable": (
        'no variable "anwser" is set; known here: answer',
        "perhaps it is answer",
    ),
    "read_before_gen": ('"answer" is read before', 'append gen("answer") before this line'),
    "nested_turn": ("assistant inside an open user turn", "close each turn"),
    "records_without_end": ("passed 1,000 nodes", "for _ in range(MAX_STEPS)"),
    "duplicate_choices": ("select(...): 'yes' is among its choices twice", "name each choice once"),
    "wrong_argument": ("gen('answer'): temperature=-1", "correct the option"),
    "body_raises": ("the body raises KeyError: 'coffee'", "pass the arguments"),
    "formatted_expression": ("gen(...) is put into a str", 's += "text " + gen(...)'),
    "state_replaced": ('"s = ..." loses the state', "s += ..."),
    "endless_loop": ("this loop never ends", "for _ in range(MAX_STEPS)"),
    "no_template": ("scripted has no chat template", "plain text"),
    "over_context": ('608 tokens stand before gen("answer"); the context', "shorten the text"),
    "loop_without_bound": ("only what the model writes ends this loop", "with a break"),
    "unused_argument": ('the argument "style" is never used', "out of the signature"),
    "argument_hides_option": ("hides the run option", ".options(temperature=...)"),
    "not_appended": ("gen(...) stands alone", "s += gen(...)"),
    "turn_not_entered": ("s.user() opens no turn by itself", "with s.user(): ..."),
    "never_equal": ("\"verdict\" is never 'yes': its choices are Yes, No", "letter for letter"),
    "duplicate_name": ('"answer" is set again; what gen("answer") at', "its own name"),
    "join_collides": ('a branch and the body both set "answer"', "names of their own"),
    "never_joined": ("the branches of fork 0.0/0 are never joined", "call join()"),
    "unused_variable": ('"draft" is never read', "leave the name out: gen(...)"),
    "idle_fork": ("fork(3) is made, and nothing is appended", "take the fork out"),
    "greedy_twins": ("in branch 0.1 asks what branch 0.0 asks, at temperature 0", "above 0"),
    "one_choice": ("select(\"verdict\") has one choice: 'yes'", "append it as text"),
    "idle_options": ("top_p, seed do nothing at temperature 0", "above 0"),
    "writes_nothing": ("with max_tokens=0 it writes nothing", "max_tokens=1 or more"),
    "nothing_before": ('no text stands before gen("answer")', "append what the model"),
    "may_pass_context": (
        'up to 304 tokens before gen("answer") and max_tokens=500',
        "lower max_tokens",
    ),
    "constant_after_argument": (
        "304 constant tokens stand after an argument",
        "before the argument",
    ),
    "bad_grammar": ('gen("answer"): regex: ', "plait.Grammar(...).explain()"),
    "matches_nothing": ('gen("n"): schema: no value matches it', "loosen it"),
    "limit_cuts_text": (
        "max_tokens=3 cuts even its shortest text, 'perhaps' of 7",
        "raise max_tokens",
    ),
    "stop_hides_text": (
        "the stop '.' is inside a text of its constraint, such as 'a. a'",
        "leave the stop out",
    ),
}


@pytest.fixture(scope="module")
def backend() -> Iterator[ScriptedBackend]:
    opened = scripted(lambda text: pytest.fail("a check asks no model"), max_context=MAX_CONTEXT)
    assert isinstance(opened, ScriptedBackend)
    yield opened
    opened.close()


def line_of_fault(program: Function) -> tuple[str, int]:
    """Give the file and the line that is marked in a program's source."""
    function = inspect.unwrap(program)
    lines, start = inspect.getsourcelines(function)
    (line,) = [start + i for i, text in enumerate(lines) if text.rstrip().endswith("# <-")]
    assert linecache.getline(inspect.getfile(function), line)
    return Path(inspect.getfile(function)).name, line


def test_each_rule_has_a_faulty_program() -> None:
    assert set(SAID) == set(PROGRAMS) == {rule.name for rule in ALL_RULES}
    assert len(ALL_RULES) >= 20


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_a_faulty_program_is_told_with_its_line_and_remedy(
    rule: Rule, backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plait.lang.tracing.MAX_NODES", 1000)
    monkeypatch.setattr("plait.lang.trace.MAX_NODES", 1000)
    name, severity = rule.name, rule.severity
    program = PROGRAMS[name]
    chosen = bare() if name == "no_template" else backend
    found = check(program, backend=chosen)
    (problem,) = [each for each in found if each.rule == name]
    message, remedy = SAID[name]
    file, line = line_of_fault(program)
    assert str(problem.where) == f"{file}:{line}"
    assert problem.severity == severity
    assert message in problem.message
    assert remedy in problem.remedy
    assert re.match(rf"{file}:{line}: {severity}: .*; ", str(problem))


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_a_rule_is_in_the_table_of_the_page(rule: Rule, backend: ScriptedBackend) -> None:
    chosen = bare() if rule.name == "no_template" else backend
    if rule.name == "records_without_end":  # its example takes long to trace
        remedy = "bound the loop: for _ in range(MAX_STEPS)"
    else:
        found = check(PROGRAMS[rule.name], backend=chosen)
        remedy = next(each.remedy for each in found if each.rule == rule.name)
    row = f"| `{rule.name}` | {rule.severity} | {rule.summary} | {remedy} |"
    assert row in PAGE.read_text().splitlines()


def bare() -> ScriptedBackend:
    opened = scripted(lambda text: "", template=None)
    assert isinstance(opened, ScriptedBackend)
    opened.close()
    return opened


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_faulty_program_has_no_other_error(
    name: str, backend: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plait.lang.tracing.MAX_NODES", 1000)
    monkeypatch.setattr("plait.lang.trace.MAX_NODES", 1000)
    found = check(PROGRAMS[name], backend=backend)
    assert {each.rule for each in found if each.severity == "error"} <= {name}


def rules_of(problems: list[Problem]) -> list[str]:
    return [problem.rule for problem in problems]


def test_a_program_without_faults_has_no_problem(backend: ScriptedBackend) -> None:
    @function
    def sound(s: State, question: str, steps: int = 3) -> str:
        s += "Answer: " + question
        for _ in range(steps):
            s += gen("thought", max_tokens=8, stop="\n")
        forks = s.fork(2)
        forks += lambda i: f"{i}: " + gen("opinion", max_tokens=4)
        joined = forks.join()
        s += "both say " + " and ".join(joined["opinion"][:1])
        s += select("verdict", ["yes", "no"])
        return "so" if s["verdict"] == "yes" else "not so"

    assert check(sound, {"question": "why?"}, backend=backend) == []


def test_a_loop_with_a_counter_is_bounded(backend: ScriptedBackend) -> None:
    @function
    def counts(s: State) -> None:
        s += "Guess."
        tries = 0
        while True:
            s += gen("guess", max_tokens=4)
            tries += 1
            if s["guess"] == "seven" or tries > 5:
                break

    assert check(counts, backend=backend) == []


def test_text_that_later_branches_go_on_from_is_used(backend: ScriptedBackend) -> None:
    @function
    def tree(s: State) -> str:
        for i, first in enumerate(s.fork(2)):
            first += f"{i}" + gen("plan", max_tokens=4)
            for k, second in enumerate(first.fork(2)):
                second += f"{k}" + gen("work", max_tokens=4)
                leaf = second.copy()
                leaf += gen("answer", max_tokens=4)
                s += leaf.ref("answer")
        return "done"

    assert check(tree, backend=backend) == []


def test_branches_that_are_given_to_the_caller_count_as_read(backend: ScriptedBackend) -> None:
    @function
    def gives(s: State) -> object:
        inner = s.copy().fork(2)
        inner += lambda i: f"{i}" + gen("x", max_tokens=4)
        return [inner]

    assert check(gives, backend=backend) == []


def test_arguments_that_are_given_are_checked_as_they_are(backend: ScriptedBackend) -> None:
    @function
    def asks(s: State, text: str) -> None:
        s += text
        s += gen("x", max_tokens=4)

    assert check(asks, backend=backend) == []
    assert rules_of(check(asks, {"text": "long " * 200}, backend=backend)) == ["over_context"]
    assert rules_of(check(asks.bind(text="long " * 200), backend=backend)) == ["over_context"]
    with pytest.raises(InvalidArgument, match="unknown: texts"):
        check(asks, {"texts": ""})


def test_several_samples_at_temperature_0_are_an_error() -> None:
    @function
    def samples(s: State) -> None:
        s += "q" + gen("answer", n=3, temperature=0, max_tokens=4)

    (problem,) = check(samples)
    assert (problem.rule, problem.severity) == ("wrong_argument", "error")
    assert "n=3: at temperature=0 all samples are the same" in problem.message


def test_a_program_without_source_is_checked_by_its_graph() -> None:
    names: dict[str, object] = {"gen": gen, "function": function}
    exec("@function\ndef f(s):\n    s += gen('x', max_tokens=0)", names)
    made = names["f"]
    assert isinstance(made, Function)
    assert rules_of(check(made)) == ["writes_nothing", "nothing_before"]


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"test_check\.py:\d+: check\(3\): pass a program"):
        check(3)  # type: ignore[arg-type]
