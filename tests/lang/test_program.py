"""Programs: signatures, bindings, methods, and ways to define one."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest

from plait.lang.api import gen
from plait.lang.errors import InvalidArgument, NotSupported
from plait.lang.program import Program
from plait.lang.state import State


def ask(s: State, question: str, *, style: str = "short") -> str:
    s += question + gen("answer")
    return style


top = Program(ask)
top.__qualname__ = "top"  # as a decorator would leave it: the name finds the program


@pytest.fixture
def state(start: Callable[..., tuple[State, Any]]) -> State:
    return start()[0]


def call(program: Program, state: State, /, *args: object, **kwargs: object) -> object:
    return program.body(state, **program.arguments(args, kwargs))


def test_arguments_are_matched_as_python_does(state: State) -> None:
    program = Program(ask)
    assert program.name == "ask"
    assert program.parameters == ("question", "style")
    assert program.required == ("question",)
    assert program.arguments(("q",)) == {"question": "q"}
    assert program.arguments((), {"style": "s", "question": "q"}) == {"question": "q", "style": "s"}
    assert call(program, state, "q") == "short"


@pytest.mark.parametrize(
    ("args", "kwargs", "fault"),
    [
        ((), {}, "missing: question"),
        (("q",), {"stile": "x", "a": 1}, "unknown: a, stile"),
        ((), {"stile": "x"}, "unknown: stile, missing: question"),
        (("q", "r"), {}, "too many positional arguments"),
        (("q",), {"question": "q"}, "multiple values for argument 'question'"),
    ],
)
def test_a_mismatch_names_the_arguments_and_the_signature(
    args: tuple[object, ...], kwargs: dict[str, object], fault: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Program(ask).arguments(args, kwargs)
    assert f"ask: {fault}" in str(caught.value)
    assert "ask(question: 'str', *, style: 'str' = 'short')" in str(caught.value)


def test_every_kind_of_parameter_reaches_the_body(state: State) -> None:
    def body(st: State, a: int, /, b: int, *rest: int, c: int = 3, **more: int) -> object:
        return a, b, rest, c, more

    program = Program(body)
    assert call(program, state, 1, 2, 5, 6, c=4, a=9, self=8, state=7) == (
        *(1, 2, (5, 6), 4),
        {"a": 9, "self": 8, "state": 7},
    )
    assert call(program, state, 1, b=2) == (1, 2, (), 3, {})


def test_an_argument_may_have_the_name_of_an_option(state: State) -> None:
    def body(prompt: State, temperature: str, stop: str, backend: str, self: str) -> object:
        return temperature, stop, backend, self

    options = {"temperature": "hot", "stop": "here", "backend": "b", "self": "me"}
    assert call(Program(body), state, **options) == ("hot", "here", "b", "me")
    assert call(Program(body).bind(**options), state) == ("hot", "here", "b", "me")


def test_defaults_are_pythons_own(state: State) -> None:
    def body(s: State, x: list[int] = []) -> int:  # noqa: B006
        x.append(1)
        return len(x)

    program = Program(body)
    assert [call(program, state), call(program, state)] == [1, 2]


def test_binding_gives_another_program_and_can_be_overridden() -> None:
    program = Program(ask)
    bound = program.bind(style="long")
    assert program.arguments(("q",)) == {"question": "q"}
    assert bound.arguments(("q",)) == {"question": "q", "style": "long"}
    assert bound.arguments(("q",), {"style": "x"})["style"] == "x"
    assert bound.bind(question="q").arguments() == {"question": "q", "style": "long"}
    with pytest.raises(InvalidArgument, match="unknown: stile"):
        program.bind(stile="x")


def test_a_subclass_keeps_its_own_fields_when_bound() -> None:
    class Function(Program):
        def __init__(self, fn: Callable[..., object], extra: int) -> None:
            super().__init__(fn)
            self.extra = extra

    bound = Function(ask, 3).bind(style="x")
    assert isinstance(bound, Function)
    assert bound.extra == 3


def test_methods_get_self_and_the_state_after_it(state: State) -> None:
    class Asker:
        def __init__(self, k: int) -> None:
            self.k = k

        @Program
        def ask(self, s: State, n: int = 1) -> int:
            return self.k * n

        @staticmethod
        @Program
        def plain(s: State, n: int) -> int:
            return n

    method = Asker(5).ask
    assert method.parameters == ("n",)
    assert call(method, state, 2) == 10
    assert call(method.bind(n=3), state) == 15
    assert call(Asker.plain, state, 4) == 4
    assert isinstance(Asker.ask, Program)


def test_partials_closures_and_executed_code_work(state: State) -> None:
    assert call(Program(functools.partial(ask, style="p")), state, "q") == "p"
    programs = [Program(lambda s, k=k: k) for k in range(3)]
    assert [call(program, state) for program in programs] == [0, 1, 2]
    scope: dict[str, Any] = {"gen": gen}
    exec("def f(s, q):\n    s += q + gen('x')\n    return q", scope)
    assert call(Program(scope["f"]), state, "q") == "q"


def test_a_decorated_function_keeps_its_signature(state: State) -> None:
    @functools.wraps(ask)
    def wrapper(*args: Any, **kwargs: Any) -> str:
        return "wrapped " + ask(*args, **kwargs)

    program = Program(wrapper)
    assert program.parameters == ("question", "style")
    assert call(program, state, "q") == "wrapped short"


def test_async_is_known(state: State) -> None:
    async def body(s: State) -> None: ...

    class Callable_:
        async def __call__(self, s: State) -> None: ...

    assert Program(body).is_async
    assert Program(functools.partial(body)).is_async
    assert Program(Callable_()).is_async
    assert not Program(ask).is_async


def test_programs_call_each_other_on_one_state(state: State) -> None:
    @Program
    def a(s: State, depth: int) -> object:
        s += f"a{depth}"
        return b(s, depth - 1) if depth else "end"

    @Program
    def b(s: State, depth: int) -> object:
        s += f"b{depth}"
        return a(s, depth)

    assert a(state, 3) == "end"
    assert state.text() == "a3b2a2b1a1b0a0"


def test_a_call_outside_of_a_program_says_to_run_it() -> None:
    with pytest.raises(InvalidArgument, match=r"call ask.run\(...\)"):
        Program(ask)("question")  # type: ignore[arg-type]


def no_parameter() -> None: ...
def keyword_only(*, s: State) -> None: ...
def generator(s: State) -> Any:
    yield s


async def async_generator(s: State) -> Any:
    yield s


@pytest.mark.parametrize("fn", [no_parameter, keyword_only])
def test_a_program_needs_a_first_parameter(fn: Callable[..., object]) -> None:
    with pytest.raises(InvalidArgument, match=rf"{fn.__name__}.*its first parameter"):
        Program(fn)


@pytest.mark.parametrize("fn", [generator, async_generator])
def test_generators_are_refused_by_name(fn: Callable[..., object]) -> None:
    with pytest.raises(NotSupported, match=f"{fn.__name__} is a generator function"):
        Program(fn)


@pytest.mark.parametrize("fn", [3, "f", State])
def test_what_is_not_a_function_is_refused(fn: Any) -> None:
    with pytest.raises(InvalidArgument, match="not a function"):
        Program(fn)


def test_a_program_of_a_module_goes_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[ask.__module__])
    assert top.__reduce__() == "top"
    assert copy.deepcopy(top) is top
    again = copy.deepcopy(top.bind(style="x"))
    assert again.arguments(("q",)) == {"question": "q", "style": "x"}


def test_a_closure_cannot_be_sent_to_another_process() -> None:
    def local(s: State) -> None: ...

    with pytest.raises(TypeError, match=r"local cannot be sent .* at the top of a module"):
        Program(local).__reduce__()
    with pytest.raises(TypeError, match="cannot be sent"):
        Program(ask).__reduce__()  # the name finds the function, not the program
