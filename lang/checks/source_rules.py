"""Rules about a program's source: what its author wrote, whatever a run makes of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..ops import ROLES, Gen, Sampling, Select
from .problem import Finding
from .source import text_of
from .subject import Subject

OPTIONS = ("backend", "seed", *Sampling.__dataclass_fields__)  # what `run` takes for itself
_MAKES_TEXT = ("str", "repr", "format", "print")


def unused_argument(subject: Subject) -> Iterator[Finding]:
    """An argument of the program is never used in its body."""
    source = subject.source
    if source is None:
        return
    used = {node.id for node in source.walk() if isinstance(node, ast.Name)}
    if "locals" in used:
        return
    arguments = source.tree.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        is_own = each.arg in subject.program.parameters and not each.arg.startswith("_")
        if is_own and each.arg not in used:
            yield Finding(
                source.where(each),
                f'the argument "{each.arg}" is never used',
                "put it into the text, or take it out of the signature",
            )


def argument_hides_option(subject: Subject) -> Iterator[Finding]:
    """An argument has the name of a run option, which then has to be given another way."""
    source = subject.source
    for name in subject.program.parameters:
        if name in OPTIONS and source is not None:
            arguments = source.tree.args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            place = next((each for each in every if each.arg == name), source.tree)
            yield Finding(
                source.where(place),
                f'the argument "{name}" hides the run option of that name',
                f"rename it; else the option is given as {subject.program.name}"
                f".options({name}=...)",
            )


def formatted_expression(subject: Subject) -> Iterator[Finding]:
    """An f-string, str() or % is put round a gen, a select or a turn."""
    source = subject.source
    for node in () if source is None else source.walk():
        assert source is not None
        for inner in _formatted(node):
            called = source.expression_of(inner)
            if called is not None:
                yield Finding(
                    source.where(inner),
                    f"{called}(...) is put into a str, and has no text before it has run",
                    f's += "text " + {called}(...)',
                )


def not_appended(subject: Subject) -> Iterator[Finding]:
    """A gen, a select or a turn is built, and nothing is done with it."""
    source = subject.source
    for node in () if source is None else source.walk():
        assert source is not None
        called = source.expression_of(node.value) if isinstance(node, ast.Expr) else None
        if called is not None:
            yield Finding(
                source.where(node),
                f"{called}(...) stands alone: building it runs nothing",
                f"append it: {source.state} += {called}(...)",
            )


def turn_not_entered(subject: Subject) -> Iterator[Finding]:
    """A turn without content is made, and no `with` opens it."""
    source = subject.source
    for node in () if source is None else source.walk():
        assert source is not None
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        role = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        is_ours = isinstance(call.func, ast.Attribute) and source.is_state(call.func.value)
        if is_ours and role in ROLES and not call.args and not call.keywords:
            yield Finding(
                source.where(node),
                f"{source.state}.{role}() opens no turn by itself",
                f"with {source.state}.{role}(): ..., or {source.state}.{role}(content)",
            )


def state_replaced(subject: Subject) -> Iterator[Finding]:
    """The name of the state is bound to something else, and so the state is lost."""
    source = subject.source
    for node in () if source is None else source.walk():
        assert source is not None
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(source.is_state(target) for target in targets):
            yield Finding(
                source.where(node),
                f'"{source.state} = ..." loses the state: nothing is appended to it',
                f"{source.state} += ...; give what is no state another name",
            )


def duplicate_choices(subject: Subject) -> Iterator[Finding]:
    """A select, or the choices of a gen, name a text twice."""
    source = subject.source
    for node in () if source is None else source.walk():
        assert source is not None
        called = source.expression_of(node)
        if called not in ("gen", "select") or not isinstance(node, ast.Call):
            continue
        texts = _texts(_choices(node, called))
        twice = sorted({text for text in texts if texts.count(text) > 1})
        if twice:
            yield Finding(
                source.where(node),
                f"{called}(...): {twice[0]!r} is among its choices twice",
                "name each choice once: what is twice would get its share twice",
            )


def never_equal(subject: Subject) -> Iterator[Finding]:
    """A variable is compared with a text that is none of its choices."""
    source = subject.source
    for node in () if source is None else source.walk():
        assert source is not None
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        name = source.variable_read(node.left)
        choices = _choices_of(subject, name)
        if not choices or not isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            continue
        is_list = isinstance(node.ops[0], ast.In | ast.NotIn)
        for text in _texts(node.comparators[0]) if is_list else [text_of(node.comparators[0])]:
            if text is not None and text not in choices:
                yield Finding(
                    source.where(node),
                    f'"{name}" is never {text!r}: its choices are {", ".join(choices)}',
                    "compare it with one of its choices, letter for letter",
                )


def _choices_of(subject: Subject, name: str | None) -> tuple[str, ...]:
    """Give what a variable can be; nothing if it can be anything, or is set twice."""
    ops = [node.op for node in subject.writers if node.op.name == name]  # type: ignore[union-attr]
    if name is None or not ops or any(op != ops[0] for op in ops):
        return ()
    op = ops[0]
    if isinstance(op, Select):
        return op.choices
    assert isinstance(op, Gen)
    has_choices = op.constraint is not None and not op.sampling.stop and not op.sampling.max_tokens
    return (op.constraint.choices or ()) if has_choices and op.constraint is not None else ()


def _choices(call: ast.Call, called: str) -> ast.AST | None:
    named = next((k.value for k in call.keywords if k.arg == "choices"), None)
    if named is None and called == "select" and len(call.args) > 1:
        return call.args[1]
    return named


def _texts(node: ast.AST | None) -> list[str]:
    """Give the literal texts of a list."""
    items: Sequence[ast.expr] = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    return [text for text in map(text_of, items) if text is not None]


def _formatted(node: ast.AST) -> Iterator[ast.AST]:
    """Give what a node makes a str of."""
    match node:
        case ast.FormattedValue(value=value):
            yield value
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
            yield from right.elts if isinstance(right, ast.Tuple) else [right]
        case ast.Call(func=ast.Name(id=name), args=args) if name in _MAKES_TEXT:
            yield from args
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr=attr), args=args):
            if attr == "format":
                yield from args
        case _:
            return
