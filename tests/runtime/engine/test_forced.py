"""Which tokens are forced: canonical ones, and none that the text to come could change."""

from __future__ import annotations

import random

import pytest

from plait.runtime.grammar.spec import CompiledGrammar, GrammarSpec

from .words import COMPILER, TOKENIZER, allowed


def compiled(pattern: str) -> CompiledGrammar:
    return COMPILER.compile(GrammarSpec("regex", (pattern,)))


def forced(pattern: str, before: str = "", *, tokens: list[str] | None = None) -> list[str]:
    """Give what is forced after `before`, which is spelt as the tokenizer does or as `tokens`."""
    matcher = compiled(pattern).matcher()
    taken = [i for part in tokens or [before] for i in TOKENIZER.encode(part)]
    assert all(map(matcher.accept, taken))
    found = matcher.forced_tokens(taken[-1] if taken else None, TOKENIZER.encode)
    return [(TOKENIZER.token_bytes[i] or b"").decode("utf-8", "replace") for i in found]


@pytest.mark.parametrize(
    ("pattern", "before", "expected"),
    [
        (r'\{"name":[0-9]', "", ['{"', "name", '":']),
        (r'\{"name":[0-9]', '{"', ["name", '":']),
        (r'\{"name":[0-9]+\}', '{"name":1', []),
        (r"[ab]{2}-yes", "ab", ["-", "yes"]),
        (r"yes|no", "", []),
        (r"yes|no", "no", []),
        (r"(?:yes|no)\.", "no", ["."]),
        (r"ж{3}", "", ["ж", "ж", "ж"]),
        (r"[ab]*", "ab", []),
    ],
)
def test_forced_text_is_spelt_as_the_tokenizer_does(
    pattern: str, before: str, expected: list[str]
) -> None:
    assert forced(pattern, before) == expected


def test_a_token_that_could_go_on_over_the_end_is_held_back() -> None:
    assert forced(r'\{"name":[0-9]') == ['{"', "name", '":']
    assert forced(r'\{"name":"[ab]') == ['{"', "name", '":"']
    # `":` and `":"` are tokens: which one comes is for the model to say.
    assert forced(r'\{"name":(?:"a"|1)') == ['{"', "name"]
    assert forced(r'\{"name":\[?"') == ['{"', "name"]
    # The tokens before it as well, if the longer one begins with them.
    assert forced(r"xb(?:cax|cy)", "x") == []
    assert forced(r"x(?:bcax|bcay)", "x") == ["bca"]


def test_a_text_that_may_end_is_not_held_back_but_for_longer_tokens() -> None:
    assert forced(r"yes(?:, no)?") == ["yes"]
    assert forced(r"tru(?:e)?") == []
    assert forced(r"tr(?:x)?") == ["tr"]
    assert forced("yes") == ["yes"]


def test_nothing_is_forced_that_would_spell_the_token_before_anew() -> None:
    assert forced("name!", tokens=["na"]) == []
    assert forced("name!", tokens=["na", "me"]) == ["!"]


def test_forced_text_ends_with_a_character() -> None:
    assert forced("xé|xè") == ["x"]
    assert forced("é|è") == []
    assert forced("🙏x|🙏y") == ["\ufffd"] * 4
    first = TOKENIZER.encode("🙏")[0]
    matcher = compiled("[🙏🙂]!").matcher()
    assert matcher.accept(first)
    assert matcher.forced_tokens(first, TOKENIZER.encode) == ()


def test_inside_a_character_nothing_is_forced() -> None:
    matcher = compiled("🙏!").matcher()
    spelt = TOKENIZER.encode("🙏!")
    for position, token_id in enumerate(spelt):
        last_id = spelt[position - 1] if position else None
        expected = tuple(spelt[position:]) if position in (0, 1, 4) else ()
        assert matcher.forced_tokens(last_id, TOKENIZER.encode) == expected
        assert matcher.accept(token_id)


def test_a_long_forced_text_is_taken_in_parts() -> None:
    matcher = compiled("(?:ab-){3000}").matcher()
    taken: list[int] = []
    while found := matcher.forced_tokens(taken[-1] if taken else None, TOKENIZER.encode):
        assert len(TOKENIZER.decode(found)) <= 4096
        assert all(map(matcher.accept, found))
        taken += found
    assert matcher.is_finished
    assert TOKENIZER.decode(taken) == "ab-" * 3000


def test_after_the_end_nothing_is_forced() -> None:
    matcher = compiled("a?").matcher()
    assert matcher.accept(min(TOKENIZER.eos_token_ids))
    assert matcher.forced_tokens(None, TOKENIZER.encode) == ()


def test_what_a_tokenizer_leaves_out_or_changes_is_not_forced() -> None:
    grammar = compiled("q[ab]Q")
    assert grammar.matcher().forced_tokens(None, lambda text: []) == ()
    grammar = compiled("q[bc]Q")
    assert grammar.matcher().forced_tokens(None, lambda text: TOKENIZER.encode("Q")) == ()


def test_it_is_found_once_for_each_state_and_token() -> None:
    calls: list[str] = []

    def encode(text: str) -> list[int]:
        calls.append(text)
        return TOKENIZER.encode(text)

    grammar = compiled("[ab]once more")
    for name in "ababb":
        matcher = grammar.matcher()
        assert matcher.forced_tokens(None, encode) == ()
        assert matcher.accept(ord(name))
        assert TOKENIZER.decode(matcher.forced_tokens(ord(name), encode)) == "once more"
    assert calls == ["aonce more", "bonce more"]


@pytest.mark.parametrize("seed", range(20))
def test_no_allowed_token_leaves_the_forced_text(seed: int) -> None:
    """What is forced is what a mask allows, and any other spelling of it is shorter."""
    rng = random.Random(seed)
    parts = ['"name":', '"', "yes", "[ab]", "[0-9]{1,2}", ",", "ab", "(?:tru|fals)e", " ", "é", "{"]
    pattern = "".join(p if len(p) > 1 else rf"\{p}" for p in rng.choices(parts, k=8))
    pattern = pattern.replace(r"\é", "é")
    matcher = compiled(pattern).matcher()
    last_id = None
    while not matcher.is_finished:
        found = matcher.forced_tokens(last_id, TOKENIZER.encode)
        text = b"".join(TOKENIZER.token_bytes[i] or b"" for i in found)
        for token_id in found:
            choices = allowed(matcher)
            assert token_id in choices
            assert all(text.startswith(TOKENIZER.token_bytes[i] or b"?") for i in choices)
            assert matcher.accept(token_id)
            text = text[len(TOKENIZER.token_bytes[token_id] or b"") :]
        if found:
            last_id = found[-1]
            continue
        choices = [i for i in allowed(matcher) if i not in TOKENIZER.eos_token_ids]
        last_id = rng.choice(choices)
        assert matcher.accept(last_id)
