"""Program: a decorated body, its signature, and the arguments bound so far."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from .errors import InvalidArgument, NotSupported
from .graph import Graph
from .options import nearest
from .state import State
from .where import place

P = TypeVar("P", bound="Program")

_NONE: Mapping[str, object] = MappingProxyType({})
_GENERATORS = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class Program:
    """A prompt program: a function, sync or async, whose first parameter is the state.

    Never changes; `bind` gives another one. Functions, methods, closures and
    functools.partial work alike, because only the signature is read, never the source.
    Inside another program, `f(s, ...)` runs the body on the caller's state.
    """

    __name__: str
    __qualname__: str

    def __init__(self, fn: Callable[..., object]) -> None:
        if not callable(fn) or inspect.isclass(fn):
            raise InvalidArgument(f"{place()}{fn!r} is not a function that takes a state")
        function = _function(fn)
        functools.update_wrapper(self, function, updated=())
        self.__name__ = getattr(function, "__name__", type(fn).__name__)
        if any(test(function) for test in _GENERATORS):
            raise NotSupported(
                f"{place()}{self.name} is a generator function; a program gives its result by "
                "`return`, and its text as it grows by `.stream(...)`"
            )
        self._fn = fn
        self._bound = _NONE
        self._recipe: tuple[Callable[..., object], tuple[object, ...]] | None = None
        self._is_async = inspect.iscoroutinefunction(function)
        self._signature = _without_state(fn, self.name)

    @property
    def name(self) -> str:
        """Give the function's name."""
        return self.__name__

    @property
    def is_async(self) -> bool:
        """True for an `async def` body."""
        return self._is_async

    @property
    def parameters(self) -> tuple[str, ...]:
        """Give the names of the arguments, without the state."""
        return tuple(self._signature.parameters)

    @property
    def body(self) -> Callable[..., object]:
        """Give what runs the body: `body(state, **program.arguments(args, kwargs))`.

        Of an async program it gives the coroutine.
        """
        return self._body

    def bind(self: P, /, **arguments: object) -> P:
        """Give a program with these arguments set; a caller can still override them by name.

        Raises: InvalidArgument for a name that the program does not take.
        """
        self._matched((), arguments, is_partial=True)
        bound = self._clone(self._fn)
        bound._bound = {**self._bound, **arguments}
        bound._recipe = (_bind, (self, arguments))
        return bound

    def arguments(
        self,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] = _NONE,
        options: Sequence[str] = (),
    ) -> dict[str, object]:
        """Match arguments with parameters: name -> value, bound ones included.

        Defaults are left out: Python fills them in, as for any call. `options` are the names
        that the caller takes besides, for the message.

        Raises: InvalidArgument naming what is missing, unknown or given twice.
        """
        return self._matched(args, kwargs, options, is_partial=False)

    def trace(self, /, **arguments: object) -> Graph:
        """Run the body with stand-ins and give its graph; nothing reaches a model.

        Required arguments that are left out become inputs of the graph. `Graph.breaks` lists
        where Python needs a value; the trace ends where it could not go on without one.

        Raises: InvalidArgument, or what the body raises by itself.
        """
        from .trace import trace  # the tracer imports states, which most programs only see run

        return trace(self, self.given(arguments))

    def given(self, arguments: Mapping[str, object] = _NONE) -> dict[str, object]:
        """Match arguments that need not be all: name -> value, bound ones included.

        Raises: InvalidArgument for a name that the program does not take.
        """
        return self._matched((), arguments, is_partial=True)

    @property
    def required(self) -> tuple[str, ...]:
        """Give the names of the arguments without a default."""
        return tuple(name for name, p in self._signature.parameters.items() if _is_required(p))

    def annotation(self, name: str) -> str:
        """Give the name of the type that a parameter is annotated with, "" if with none."""
        parameter = self._signature.parameters.get(name)
        if parameter is None or parameter.annotation is parameter.empty:
            return ""
        return str(getattr(parameter.annotation, "__name__", parameter.annotation))

    def __call__(self, state: State, /, *args: object, **kwargs: object) -> object:
        """Run the body on the state of a running program, as a part of it."""
        if not isinstance(state, State):
            raise InvalidArgument(
                f"{place()}{self.name}(...) outside of a program: call {self.name}.run(...); "
                f"inside of one, pass its state first: {self.name}(s, ...)"
            )
        return self._body(state, **self.arguments(args, kwargs))

    def __get__(self: P, instance: object, owner: type | None = None) -> P:
        """Bind a method: `self` is passed first, the state after it."""
        binder = getattr(type(self._fn), "__get__", None)
        if instance is None or binder is None:
            return self
        method = self._clone(binder(self._fn, instance, owner))
        method._signature = _without_state(method._fn, self.name)
        method._recipe = (getattr, (instance, self.name))
        return method

    def __reduce__(self) -> str | tuple[Callable[..., object], tuple[object, ...]]:
        """Name the program, so that another process finds it by importing its module.

        Raises: TypeError for a closure or another program that no import finds.
        """
        if self._recipe is not None:
            return self._recipe
        found: object = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is not self:
            raise TypeError(
                f"{self.__module__}.{self.__qualname__} cannot be sent to another process: "
                "no import finds it; define the program at the top of a module"
            )
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<program {self.name}{self._signature}>"

    def _body(self, state: State, /, **arguments: object) -> object:
        call = inspect.BoundArguments(self._signature, arguments)
        return self._fn(state, *call.args, **call.kwargs)

    def _matched(
        self,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        options: Sequence[str] = (),
        *,
        is_partial: bool,
    ) -> dict[str, object]:
        match = self._signature.bind_partial if is_partial else self._signature.bind
        given = {**self._bound, **kwargs}
        try:
            return dict(match(*args, **given).arguments)
        except TypeError as error:
            unknown = self._unknown(given)
            faults = self._faults(args, given) or str(error)
            listed = f", the options are {', '.join(options)}" if unknown and options else ""
            near = nearest(unknown, [*self.parameters, *options])
            raise InvalidArgument(
                f"{place()}{self.name}: {faults}; the arguments are {self.name}{self._signature}"
                f"{listed}{near}"
            ) from None

    def _faults(self, args: Sequence[object], given: Mapping[str, object]) -> str:
        """Name all that is unknown or missing; Python's own message names the first."""
        unknown = self._unknown(given)
        missing = [name for name in self.required[len(args) :] if name not in given]
        faults: list[str] = []
        if unknown:
            faults.append(f"unknown: {', '.join(unknown)}")
        if missing:
            faults.append(f"missing: {', '.join(missing)}")
        return ", ".join(faults)

    def _unknown(self, given: Mapping[str, object]) -> list[str]:
        parameters = self._signature.parameters
        kinds = {p.kind for p in parameters.values()}
        takes_any = inspect.Parameter.VAR_KEYWORD in kinds
        return [] if takes_any else sorted(given.keys() - parameters)

    def _clone(self: P, fn: Callable[..., object]) -> P:
        # Not through __init__: a subclass may have fields of its own, and they are kept.
        clone = type(self).__new__(type(self))
        clone.__dict__.update(self.__dict__)
        clone._fn = fn
        return clone


def _bind(program: Program, arguments: Mapping[str, object]) -> Program:
    return program.bind(**arguments)


def _function(fn: Callable[..., object]) -> Callable[..., object]:
    """Give the function inside partials, decorators that use functools.wraps, and callables."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    fn = inspect.unwrap(fn)
    if inspect.isroutine(fn):
        return fn
    call: Callable[..., object] = type(fn).__call__
    return call


def _is_required(parameter: inspect.Parameter) -> bool:
    is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not is_variadic


def _without_state(fn: Callable[..., object], name: str) -> inspect.Signature:
    """Give the signature without the state's parameter, whatever its name."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{place()}{name} has no signature that Python can read") from error
    parameters = list(signature.parameters.values())
    kinds = inspect.Parameter
    first = parameters[0].kind if parameters else None
    if first in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD):
        parameters = parameters[1:]
    elif first is not kinds.VAR_POSITIONAL:
        raise InvalidArgument(
            f"{place()}{name}{signature}: a program takes the state as its first parameter, "
            f"such as `def {name}(s, ...)`"
        )
    return signature.replace(parameters=parameters, return_annotation=signature.empty)
