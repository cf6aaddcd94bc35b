"""Programs on the stand-in model: run, options, results."""

from __future__ import annotations

import copy

import pytest

from plait import (
    Backend,
    Function,
    InvalidArgument,
    State,
    UnknownVariable,
    function,
    gen,
    scripted,
    set_default_backend,
)

from .programs import two


def test_a_run_gives_value_variables_text_and_usage(backend: Backend) -> None:
    result = two.run("one", backend=backend)
    assert result.value == "firstsecond"
    assert (result["a"], result["b"]) == ("first", "second")
    assert result.variables == ("a", "b")
    assert result.text() == "one: first two: second"
    assert result.ok
    assert result.usage.output_tokens >= len("firstsecond")
    assert result.meta("b").finish_reason == "stop"


def test_an_unknown_name_lists_the_known(backend: Backend) -> None:
    result = two.run(backend=backend)
    with pytest.raises(UnknownVariable, match=r"no variable \"c\".*a, b"):
        result["c"]


def test_text_is_never_read_as_a_template(backend: Backend) -> None:
    raw = '{"a": {}} {question} {0} %s $x {{y}} <|im_end|>'

    @function
    def quotes(s: State, q: str) -> str:
        s += q
        s += gen("name", max_tokens=8, temperature=0)
        return f"v={s['name']}"

    @function
    def formats(s: State) -> None:
        s += f"ask {gen('x')} now"

    result = quotes.run(q=raw, backend=backend)
    assert result.text() == f"{raw}first"
    assert result.value == "v=first"
    with pytest.raises(TypeError, match=r"test_program\.py"):
        formats.run(backend=backend)


def test_options_and_parameters_of_the_same_name_are_apart(backend: Backend) -> None:
    @function
    def weather(s: State, temperature: str, seed: int = 3) -> str:
        s += f"It is {temperature} {seed}: " + gen("a", max_tokens=8)
        return str(s["a"])

    program = weather.options(temperature=0, backend=backend, seed=1)
    result = program.run(temperature="hot", seed=5)
    assert result.text() == "It is hot 5: first"
    assert result.seed == 1
    assert weather.run("hot", backend=backend, max_tokens=0).text() != result.text()


def test_an_argument_of_the_wrong_name_lists_the_right_ones(backend: Backend) -> None:
    with pytest.raises(InvalidArgument, match=r"wrod.*word"):
        two.run(wrod="x", backend=backend)


def test_zero_is_a_value() -> None:
    @function
    def letters(s: State, n: int) -> None:
        s += "x" + gen("a", max_tokens=n)

    with_weights = scripted(lambda text: {"a": 0.6, "b": 0.4})
    greedy = letters.options(backend=with_weights, temperature=0.0)
    assert {greedy.run(8)["a"] for _ in range(20)} == {"aaaaaaaa"}
    assert letters.run(0, backend=with_weights)["a"] == ""
    drawn = letters.options(backend=with_weights, temperature=1)
    assert drawn.run(40, seed=0)["a"] == drawn.run(40, seed=0)["a"]
    unseeded = [drawn.run(40) for _ in range(2)]
    assert unseeded[0]["a"] != unseeded[1]["a"]
    assert drawn.run(40, seed=unseeded[0].seed)["a"] == unseeded[0]["a"]
    with_weights.close()


def test_nothing_caps_a_gen_in_silence() -> None:
    @function
    def writes(s: State) -> None:
        s += "x" + gen("a", temperature=0)

    backend = scripted(lambda text: "y" * 300)
    result = writes.run(backend=backend)
    assert result["a"] == "y" * 300
    assert result.meta("a").finish_reason == "stop"
    capped = writes.run(backend=backend, max_tokens=5)
    assert (capped["a"], capped.meta("a").finish_reason) == ("yyyyy", "length")
    backend.close()


class Speaker:
    """Programs as methods."""

    def __init__(self, k: str) -> None:
        self.k = k

    @function
    def speak(self, s: State) -> str:
        s += self.k + gen("a", max_tokens=8, temperature=0)
        return str(s["a"])


def make(source: str) -> Function:
    """Define a program by `exec`."""
    names: dict[str, object] = {}
    exec(source, {"function": function, "gen": gen}, names)
    made = names["f"]
    assert isinstance(made, Function)
    return made


SOURCE = """
@function
def f(anything):
    anything += "one: " + gen("a", max_tokens=8, temperature=0)
    return anything["a"]
"""


def test_programs_need_no_source_and_no_module(backend: Backend) -> None:
    assert make(SOURCE).run(backend=backend).value == "first"
    assert make(SOURCE.replace("def", "async def")).run(backend=backend).value == "first"
    assert Speaker("two: ").speak.run(backend=backend).value == "second"
    words = [function(lambda s, word=word: two(s, word)) for word in ("x", "y")]
    assert words[1].run(backend=backend).text() == "y: first two: second"
    with pytest.raises(TypeError, match="another process"):
        copy.copy(words[0])  # asks what another process would be sent
    assert copy.copy(two) is two
    seeded = copy.copy(two.options(seed=3))
    assert seeded.run(backend=backend).seed == 3


def test_programs_call_each_other(backend: Backend) -> None:
    @function
    def ping(s: State, depth: int) -> None:
        s += "ping " + gen(f"ping_{depth}", max_tokens=2, temperature=0)
        if depth:
            pong(s, depth - 1)

    @function
    def pong(s: State, depth: int) -> None:
        s += "pong " + gen(f"pong_{depth}", max_tokens=2, temperature=0)
        if depth:
            ping(s, depth - 1)

    assert ping.run(3, backend=backend).variables == ("ping_3", "pong_2", "ping_1", "pong_0")


def test_the_default_backend_is_the_one_that_was_set(backend: Backend) -> None:
    set_default_backend(backend)
    try:
        assert two.run()["b"] == "second"
        assert two.run_batch([{}])[0]["b"] == "second"
    finally:
        set_default_backend(None)
