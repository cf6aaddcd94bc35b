"""The table of rules about programs, and the check that goes through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from . import graph_rules, loops, model_rules, raised, source_rules
from .problem import Finding, Problem, Rule, Severity
from .subject import Subject


def _rule(severity: Severity, find: Callable[[Subject], Iterator[Finding]]) -> Rule:
    return Rule(find.__name__, severity, find)


RULES: tuple[Rule, ...] = (
    _rule("error", raised.undefined_variable),
    _rule("error", raised.read_before_gen),
    _rule("error", raised.nested_turn),
    _rule("error", raised.records_without_end),
    _rule("error", source_rules.duplicate_choices),
    _rule("error", raised.wrong_argument),
    _rule("error", raised.body_raises),
    _rule("error", source_rules.formatted_expression),
    _rule("error", source_rules.state_replaced),
    _rule("error", loops.endless_loop),
    _rule("error", model_rules.no_template),
    _rule("error", model_rules.over_context),
    _rule("warning", loops.loop_without_bound),
    _rule("warning", source_rules.unused_argument),
    _rule("warning", source_rules.argument_hides_option),
    _rule("warning", source_rules.not_appended),
    _rule("warning", source_rules.turn_not_entered),
    _rule("warning", source_rules.never_equal),
    _rule("warning", graph_rules.duplicate_name),
    _rule("warning", graph_rules.join_collides),
    _rule("warning", graph_rules.never_joined),
    _rule("warning", graph_rules.unused_variable),
    _rule("warning", graph_rules.idle_fork),
    _rule("warning", graph_rules.greedy_twins),
    _rule("warning", graph_rules.one_choice),
    _rule("warning", graph_rules.idle_options),
    _rule("warning", graph_rules.writes_nothing),
    _rule("warning", graph_rules.nothing_before),
    _rule("warning", model_rules.may_pass_context),
    _rule("warning", model_rules.constant_after_argument),
)


def problems_of(subject: Subject, rules: Sequence[Rule] = RULES) -> list[Problem]:
    """Give what the rules find, in order of file and line; one error a line."""
    found = [problem for rule in rules for problem in rule.problems(subject)]
    kept: dict[object, Problem] = {}
    for problem in found:
        where = problem.where
        is_line = problem.severity == "error" and where is not None
        # What a line's source says is told once more by what the line raises.
        kept.setdefault((where, "error") if is_line else problem, problem)
    return sorted(kept.values(), key=_place)


def _place(problem: Problem) -> tuple[str, int]:
    where = problem.where
    return ("", 0) if where is None else (where.file, where.line)
