"""A program's source as Python's tree, and what its names mean."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, cast

from .. import api
from ..graph import Where
from ..program import Program

FunctionTree: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

EXPRESSIONS: tuple[Callable[..., object], ...] = (
    *(api.gen, api.select, api.system, api.user, api.assistant),
)
MAX_FILES = 64  # whose trees are kept


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """The tree of a program's `def`; `state` is the name of its first parameter."""

    file: str
    tree: FunctionTree
    state: str
    names: Mapping[str, object]  # what the names outside of the function are bound to

    def where(self, node: ast.AST) -> Where:
        """Give the line of a part of the tree."""
        return Where(self.file, getattr(node, "lineno", self.tree.lineno))

    def walk(self) -> Iterator[ast.AST]:
        """Give all parts of the body."""
        for statement in self.tree.body:
            yield from ast.walk(statement)

    def expression_of(self, node: ast.AST) -> str | None:
        """Give "gen", "select", "user" ... if the node calls one of them."""
        if not isinstance(node, ast.Call):
            return None
        called = self._value(node.func)
        return next((fn.__name__ for fn in EXPRESSIONS if fn is called), None)

    def is_state(self, node: ast.AST) -> bool:
        """Say whether the node is the program's state by name."""
        return isinstance(node, ast.Name) and node.id == self.state

    def variable_read(self, node: ast.AST) -> str | None:
        """Give the name in `s["name"]`, None if the node is something else."""
        if not isinstance(node, ast.Subscript) or not self.is_state(node.value):
            return None
        return text_of(node.slice)

    def _value(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return getattr(self.names.get(node.value.id), node.attr, None)
        return None


def text_of(node: ast.AST | None) -> str | None:
    """Give a literal text, None if the node is no such."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return cast(str, cast(ast.Constant, node).value) if is_text else None


def source_of(program: Program) -> ProgramSource | None:
    """Read the source of a program; None where there is none, as in a shell."""
    function = inspect.unwrap(cast("Callable[..., object]", program))
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    tree = _tree(code.co_filename)
    found = None if tree is None else _definition(tree, code.co_firstlineno, code.co_name)
    if found is None:
        return None
    parameters = [*found.args.posonlyargs, *found.args.args]
    states = [each.arg for each in parameters if each.arg not in program.parameters]
    if not states:
        return None
    try:
        closed = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        closed = MappingProxyType({})
    names = {**getattr(function, "__globals__", {}), **closed}
    return ProgramSource(code.co_filename, found, states[-1], names)


@functools.lru_cache(MAX_FILES)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _tree(file: str) -> ast.Module | None:
    text = "".join(linecache.getlines(file))
    return _parsed(text) if text else None


def _definition(tree: ast.Module, line: int, name: str) -> FunctionTree | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            # A code object begins at its first decorator.
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if line in (first, node.lineno):
                return node
    return None
