"""One faulty program a rule, named after it; `# <-` marks the line of the fault."""

from __future__ import annotations

from plait import Function, State, assistant, function, gen, select, user

PROGRAMS: dict[str, Function] = {}
LONG = "A constant that all rows could share, if only it stood before the argument. " * 4


def faulty(program: Function) -> Function:
    """Keep a program as the example of the rule that it is named after."""
    PROGRAMS[program.name] = program
    return program


@faulty
@function
def undefined_variable(s: State) -> None:
    s += "q" + gen("answer", max_tokens=4)
    s += s.ref("anwser")  # <-


@faulty
@function
def read_before_gen(s: State) -> None:
    s += "Once more: " + s.ref("answer")  # <-
    s += gen("answer", max_tokens=4)


@faulty
@function
def nested_turn(s: State) -> None:
    with s.user():
        s += "a question"
        s += assistant(gen("answer"))  # <-


@faulty
@function
def records_without_end(s: State) -> None:
    while True:
        s += "x"  # <-
        if s.variables():
            break


@faulty
@function
def duplicate_choices(s: State) -> None:
    s += "Is it?" + select("verdict", ["yes", "no", "yes"])  # <-


@faulty
@function
def wrong_argument(s: State) -> None:
    s += "q" + gen("answer", temperature=-1)  # <-


@faulty
@function
def body_raises(s: State) -> None:
    prices = {"tea": 2}
    s += f"Coffee costs {prices['coffee']}." + gen("answer")  # <-


@faulty
@function
def formatted_expression(s: State, question: str) -> None:
    s += f"{question} The answer is {gen('answer')}."  # <-


@faulty
@function
def state_replaced(s: State) -> None:
    s = "q" + gen("answer")  # type: ignore[assignment]  # <-
    s += "!"


@faulty
@function
def endless_loop(s: State, items: list[str]) -> None:
    queue = list(items)
    while True:  # <-
        s += queue.pop() + gen("answer", max_tokens=4)


@faulty
@function
def loop_without_bound(s: State) -> None:
    s += "Guess."
    while True:  # <-
        s += gen("guess", max_tokens=4)
        answer = s["guess"]
        if "seven" in answer:
            break


@faulty
@function
def unused_argument(
    s: State,
    question: str,
    style: str,  # <-
) -> None:
    s += question + gen("answer", max_tokens=4)


@faulty
@function
def argument_hides_option(s: State, temperature: str) -> None:  # <-
    s += "It is " + temperature + gen("answer", max_tokens=4)


@faulty
@function
def not_appended(s: State) -> None:
    s += "q"
    gen("answer")  # <-


@faulty
@function
def turn_not_entered(s: State) -> None:
    s.user()  # <-
    s += "a question" + gen("answer", max_tokens=4)


@faulty
@function
def never_equal(s: State) -> None:
    s += "Is it?" + select("verdict", ["Yes", "No"])
    if s["verdict"] == "yes":  # <-
        s += "So it is."


@faulty
@function
def duplicate_name(s: State) -> None:
    s += "one: " + gen("answer", max_tokens=4)
    s += "two: " + gen("answer", max_tokens=4)  # <-


@faulty
@function
def join_collides(s: State) -> None:
    s += "q" + gen("answer", max_tokens=4)
    forks = s.fork(2)
    forks += lambda i: f"{i}: " + gen("answer", max_tokens=4)  # <-
    forks.join()


@faulty
@function
def never_joined(s: State) -> None:
    for i, outline in enumerate(s.fork(2)):
        outline += f"outline {i}" + gen("outline", max_tokens=4)
        if i == 0:
            drafts = outline.fork(2)
            drafts += lambda k: f"draft {k}" + gen("draft", max_tokens=4)  # <-


@faulty
@function
def unused_variable(s: State) -> None:
    outline = s.copy()
    drafts = outline.fork(2)
    drafts += lambda k: f"draft {k}" + gen("draft", max_tokens=4)  # <-
    drafts.join()


@faulty
@function
def idle_fork(s: State) -> None:
    s += "q"
    s.fork(3)  # <-
    s += gen("answer", max_tokens=4)


@faulty
@function
def greedy_twins(s: State) -> None:
    forks = s.fork(3)
    forks += "Why?" + gen("reason", max_tokens=4, temperature=0)  # <-


@faulty
@function
def one_choice(s: State) -> None:
    s += "Is it?" + select("verdict", ["yes"])  # <-


@faulty
@function
def idle_options(s: State) -> None:
    s += "q" + gen("answer", max_tokens=4, temperature=0, top_p=0.9, seed=3)  # <-


@faulty
@function
def writes_nothing(s: State) -> None:
    s += "q" + gen("answer", max_tokens=0)  # <-


@faulty
@function
def nothing_before(s: State) -> None:
    s += gen("answer", max_tokens=4) + " and on"  # <-


@faulty
@function
def no_template(s: State) -> None:
    s += user("q")  # <-
    s += assistant(gen("answer", max_tokens=4))


@faulty
@function
def over_context(s: State) -> None:
    s += LONG + LONG
    s += gen("answer", max_tokens=4)  # <-


@faulty
@function
def may_pass_context(s: State) -> None:
    s += LONG
    s += gen("answer", max_tokens=500)  # <-


@faulty
@function
def constant_after_argument(s: State, question: str) -> None:
    s += question
    s += LONG  # <-
    s += gen("answer", max_tokens=4)


@faulty
@function
def bad_grammar(s: State) -> None:
    s += "q" + gen("answer", regex="[0-9+")  # <-


@faulty
@function
def matches_nothing(s: State) -> None:
    s += "q" + gen("n", {"type": "integer", "minimum": 5, "maximum": 2})  # <-


@faulty
@function
def limit_cuts_text(s: State) -> None:
    s += "q" + gen("answer", choices=["perhaps", "certainly"], max_tokens=3)  # <-


@faulty
@function
def stop_hides_text(s: State) -> None:
    s += "q" + gen("answer", regex="[a-z]+[.] [a-z]+", stop=".")  # <-
