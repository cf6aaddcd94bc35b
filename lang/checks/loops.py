"""Rules about loops: what ends them, and whether that is left to the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .problem import Finding
from .source import ProgramSource
from .subject import Subject

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ENDS = (ast.Break, ast.Return, ast.Raise)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def endless_loop(subject: Subject) -> Iterator[Finding]:
    """A `while True` has neither break, return nor raise."""
    for source, loop in _whiles(subject):
        if _is_true(loop.test) and not list(_exits(loop.body, ())):
            yield Finding(
                source.where(loop),
                "this loop never ends: it has no break, return or raise",
                "bound it: for _ in range(MAX_STEPS)",
            )


def loop_without_bound(subject: Subject) -> Iterator[Finding]:
    """What the model writes alone decides when a loop ends."""
    for source, loop in _whiles(subject):
        exits = [guards for guards in _exits(loop.body, ()) if guards]
        if not _is_true(loop.test):
            exits.append((loop.test,))
        if not exits or not _asks_model(source, loop):
            continue
        tainted = _from_model(source)
        if all(_is_models(source, guards, tainted) for guards in exits):
            yield Finding(
                source.where(loop),
                "only what the model writes ends this loop: it may never write it",
                "bound it: for _ in range(MAX_STEPS), with a break",
            )


def _whiles(subject: Subject) -> Iterator[tuple[ProgramSource, ast.While]]:
    if subject.source is not None:
        for node in subject.source.walk():
            if isinstance(node, ast.While):
                yield subject.source, node


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _exits(
    body: list[ast.stmt], guards: tuple[ast.expr, ...], is_inner: bool = False
) -> Iterator[tuple[ast.expr, ...]]:
    """Give the conditions on the way to each statement that leaves the loop."""
    for node in body:
        if isinstance(node, _FUNCTIONS):
            continue
        is_end = isinstance(node, _ENDS) and not (is_inner and isinstance(node, ast.Break))
        if is_end:
            yield guards
        own = (*guards, node.test) if isinstance(node, ast.If) else guards
        inner = is_inner or isinstance(node, _LOOPS)
        for name in ("body", "orelse", "finalbody"):
            yield from _exits(getattr(node, name, []), own, inner)
        for handler in getattr(node, "handlers", []):
            yield from _exits(handler.body, guards, inner)
        for case in getattr(node, "cases", []):
            yield from _exits(case.body, (*guards, node.subject), inner)  # type: ignore[attr-defined]


def _asks_model(source: ProgramSource, loop: ast.While) -> bool:
    return any(source.expression_of(node) in ("gen", "select") for node in ast.walk(loop))


def _from_model(source: ProgramSource) -> set[str]:
    """Give the names that get what the model wrote, directly or by way of another name."""
    found: set[str] = set()
    while True:
        new = {
            name.id
            for node in source.walk()
            if isinstance(node, ast.Assign | ast.NamedExpr) and _reads(source, node.value, found)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        }
        if new <= found:
            return found
        found |= new


def _reads(source: ProgramSource, node: ast.AST, tainted: set[str]) -> bool:
    return any(
        source.is_state(each) or (isinstance(each, ast.Name) and each.id in tainted)
        for each in ast.walk(node)
    )


def _is_models(source: ProgramSource, guards: tuple[ast.expr, ...], tainted: set[str]) -> bool:
    """Say whether the model decides: some condition reads its text, and none counts."""
    parts = [each for guard in guards for each in ast.walk(guard)]
    counts = any(
        isinstance(each, ast.Compare)
        and any(isinstance(op, _ORDERED) for op in each.ops)
        and not _reads(source, each, tainted)
        for each in parts
    )
    return not counts and any(_reads(source, guard, tainted) for guard in guards)
