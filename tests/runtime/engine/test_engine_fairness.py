"""Nobody waits for ever: K09."""

from __future__ import annotations

from .bench import ask, make


# K09
def test_the_odd_one_out_is_not_starved() -> None:
    engine = make(lambda _: "x" * 8, max_running=4)
    finished: list[str] = []
    for step in range(120):
        engine.add(ask(f"r{step}", "shared prefix " * 10 + str(step)))
        if step == 10:
            engine.add(ask("odd", "something else " * 10))
        finished += [o.request_id for o in engine.step() if o.finish_reason]
    assert "odd" in finished
    assert finished.index("odd") <= 12


def test_a_large_request_is_overtaken_but_not_for_ever() -> None:
    engine = make(lambda _: "x" * 30, num_blocks=24, max_running=4)
    finished: list[str] = []
    for step in range(900):
        if step % 8 == 0:
            engine.add(ask(f"r{step}", f"{step} small"))
        if step == 40:
            engine.add(ask("large", "y" * 330))
        finished += [o.request_id for o in engine.step() if o.finish_reason]
        engine.check()
    assert "large" in finished
    assert finished.index("large") < 64 + 20


def test_one_long_prompt_does_not_stop_the_decodes() -> None:
    engine = make(lambda _: "x" * 40, max_context=8192, budget=64)
    for i in range(3):
        engine.add(ask(f"short{i}", f"{i}"))
    engine.step()
    engine.add(ask("long", "y" * 4000))
    for _ in range(30):
        outputs = engine.step()
        assert {o.request_id for o in outputs} == {"short0", "short1", "short2"}
