"""Token healing: the output spells the prompt's last token first, and goes on as it likes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from plait.runtime.errors import RequestError
from plait.runtime.grammar.spec import GrammarSpec
from plait.runtime.healing import Speller
from plait.runtime.model.scripted import IM_END
from plait.runtime.sample import SampleRow, sample
from plait.runtime.sequence import Request, SamplingParams

from .bench import Result
from .cases import answer, compiled, compiled_for, finish, random_regex
from .words import MERGES, TOKENIZER, WIDTH, whims

HEAL = SamplingParams(temperature=0.0, max_tokens=12, heal=True)
ENDS = ["", " ", "  ", '"', '":', "na", "tr", "say {", "\n", "é", "aa", "-", "[", "a", "😀", "no"]


def ask(name: str, prompt: str, sampling: SamplingParams = HEAL, seed: int = 0) -> Request:
    return Request(name, np.array(TOKENIZER.encode(prompt), np.int32), sampling, seed=seed)


def regex(pattern: str) -> GrammarSpec:
    return GrammarSpec("regex", (pattern,))


def run(request: Request, grammar: GrammarSpec | None = None, **options: int) -> Result:
    engine = whims(**options)
    engine.add(request, compiled_for(engine, request, grammar))
    return finish(engine)[request.id]


def after(request: Request, result: Result) -> list[int]:
    """Give the tokens that a branch goes on from."""
    prompt: list[int] = request.prompt.tolist()
    kept = prompt[:-1] if result.last.is_healed else prompt
    return [*kept, *result.last.token_ids]


def spelled(token_ids: list[int]) -> bytes:
    return b"".join(TOKENIZER.token_bytes[i] or b"" for i in token_ids)


def slowly(request: Request) -> list[int]:
    """Give the tokens by the definition: one full pass a token, every token looked at."""
    model = whims().model
    prompt: list[int] = request.prompt.tolist()
    tokens, rest = prompt[:-1], TOKENIZER.token_bytes[prompt[-1]] or b""
    if not any(data and data.startswith(rest) and data != rest for data in TOKENIZER.token_bytes):
        tokens, rest = prompt, b""
    num_drawn, num_output = 0, 0
    while num_output < (request.sampling.max_tokens or 0):
        mask, position = None, num_output
        if rest:
            may_come = [
                i not in TOKENIZER.eos_token_ids
                and data is not None
                and (data.startswith(rest) or rest.startswith(data))
                for i, data in enumerate(TOKENIZER.token_bytes)
            ]
            padded = np.array(may_come + [False] * (-len(may_come) % 32))
            mask = np.packbits(padded, bitorder="little").view(np.int32)
            position = -1 - num_drawn
        logits = model.runner._logits(np.array(tokens, np.int32), 0)  # type: ignore[attr-defined]
        (token,) = sample(
            torch.from_numpy(logits)[None],
            [SampleRow(request.sampling, request.seed, position, mask)],
            TOKENIZER.vocab_size,
            TOKENIZER.eos_token_ids,
        )
        assert isinstance(token, int)
        if token == IM_END:
            break
        data = TOKENIZER.token_bytes[token] or b""
        num_output += not rest or len(data) > len(rest)
        num_drawn += 1
        rest = rest[len(data) :]
        tokens.append(token)
    return tokens


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
def test_the_answer_is_that_of_the_definition(end: str, temperature: float) -> None:
    sampling = replace(HEAL, temperature=temperature)
    for seed in range(4):
        request = ask("a", f"{seed} so{end}", sampling, seed)
        result = run(request)
        assert after(request, result) == slowly(request)
        prompt = spelled(request.prompt.tolist())
        written = spelled(after(request, result))
        assert written.startswith(prompt)
        assert result.text == written[len(prompt) :].decode("utf-8", "replace")
        assert result.last.usage.prompt_tokens == len(request.prompt)


def random_requests(seed: int) -> list[tuple[Request, GrammarSpec | None]]:
    rng = random.Random(f"healing {seed}")
    requests: list[tuple[Request, GrammarSpec | None]] = []
    start = "".join(rng.choices([*MERGES, "x", ". "], k=rng.randint(0, 20)))
    for i in range(6):
        sampling = SamplingParams(
            temperature=rng.choice([0.0, 1.0, 2.0]),
            max_tokens=rng.choice([0, 1, 2, 9, 20]),
            min_tokens=rng.choice([0, 0, 6]),
            stop=rng.choice([(), (), ("me",), ("a", '"'), ("é",)]),
            heal=rng.random() < 0.8,
        )
        request = ask(f"r{i}", f"{start}1{rng.choice(ENDS)}", sampling, rng.randint(0, 9))
        grammar = regex(random_regex(rng)) if rng.random() < 0.5 else None
        requests.append((request, grammar))
    return requests


@pytest.mark.parametrize("seed", range(12))
def test_nothing_but_the_request_decides_the_answer(seed: int) -> None:
    requests = random_requests(seed)
    alone = {r.id: answer(run(r, g, jump_forward=False)) for r, g in requests}
    variants: tuple[dict[str, int], ...] = (
        {},
        {"token_budget": 1},
        {"token_budget": 5, "block_size": 1},
        {"token_budget": 7, "block_size": 4, "num_blocks": 24},
        {"is_prefix_caching": False, "block_size": 4},
    )
    for options in variants:
        engine = whims(**options)
        for _ in range(2):
            for request, grammar in requests:
                engine.add(request, compiled_for(engine, request, grammar))
            assert {name: answer(r) for name, r in finish(engine).items()} == alone, options


@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_outputs_of_one_prompt_do_not_write_over_each_other(block_size: int) -> None:
    sampling = replace(HEAL, temperature=2.0)
    for end in ENDS:
        prompt = "x" * (len(end) + 5) + end
        requests = [ask(f"r{seed}", prompt, sampling, seed) for seed in range(5)]
        engine = whims(block_size=block_size)
        for request in requests:
            engine.add(request)
        together = {name: answer(result) for name, result in finish(engine).items()}
        assert together == {r.id: answer(run(r)) for r in requests}


def test_without_a_longer_token_nothing_is_healed() -> None:
    speller = Speller(TOKENIZER, WIDTH)
    assert speller.border(np.array([97, *TOKENIZER.encode("aaaa")], np.int32)) is None
    assert speller.border(np.array(TOKENIZER.encode("na"), np.int32)) is None  # the only token
    assert speller.border(np.array([97, IM_END], np.int32)) is None
    found = speller.border(np.array(TOKENIZER.encode("x\n"), np.int32))
    assert found is not None
    assert found.data == b"\n"


@pytest.mark.parametrize("data", [b" ", b"  ", b"tru", b"na", b"xyz", "é".encode(), b'":', b"\xff"])
def test_a_mask_has_the_tokens_that_can_spell_the_bytes(data: bytes) -> None:
    mask = Speller(TOKENIZER, WIDTH).mask(data)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    expected = [
        i
        for i, token in enumerate(TOKENIZER.token_bytes)
        if token and (token.startswith(data) or data.startswith(token))
    ]
    assert np.flatnonzero(bits).tolist() == expected
    assert len(mask) == -(-WIDTH // 32)


class Few:
    """A vocabulary without a token for each byte."""

    token_bytes = (b"abc", b"ab", b"a", b"bcd", b"c", b"", None, b"abcde")
    eos_token_ids = frozenset((7,))


def test_a_token_after_which_the_bytes_cannot_be_spelled_is_masked() -> None:
    speller = Speller(Few(), 40)  # type: ignore[arg-type]

    def allowed(data: bytes) -> list[int]:
        bits = np.unpackbits(speller.mask(data).view(np.uint8), bitorder="little")
        return [int(i) for i in np.flatnonzero(bits)]

    assert allowed(b"abc") == [0, 1, 2]
    assert allowed(b"abcd") == [2]
    assert allowed(b"ab") == [0, 1, 2]
    assert allowed(b"b") == [3]


def test_the_limits_count_what_is_new_alone() -> None:
    for end in ENDS[1:]:
        for count in (0, 1, 3):
            request = ask("a", f"so{end}", replace(HEAL, max_tokens=count, ignore_eos=True))
            result = run(request)
            assert result.last.finish_reason == "length"
            assert result.last.usage.output_tokens == count
            assert bool(result.text) == bool(count)


def test_the_context_holds_what_is_spelled_in_smaller_tokens() -> None:
    for seed in range(40):
        sampling = replace(HEAL, max_tokens=None, temperature=3.0, ignore_eos=True)
        request = ask("a", "say aaaa na true", sampling, seed)
        result = run(request, max_context=len(request.prompt) + 2)
        assert len(after(request, result)) <= len(request.prompt) + 2
        assert spelled(after(request, result)).startswith(b"say aaaa na true")
        assert result.last.finish_reason == "length"


def test_no_stop_string_is_found_in_the_prompt() -> None:
    request = ask("a", 'say"', replace(HEAL, stop=('"',)))
    grammar = regex(r':\[\[[ab]"')
    result = run(request, grammar)
    assert result.text[:-1] == ":[["
    assert result.last.stop_reason == '"'


def test_a_stop_in_the_token_over_the_border_leaves_the_prompt_as_it_was() -> None:
    request = ask("a", 'say"', replace(HEAL, stop=("[",)))
    result = run(request, regex(r":\[[ab]"))
    assert (result.text, result.last.tail, result.last.stop_reason) == (":", ":", "[")
    assert not result.last.is_healed
    assert after(request, result) == request.prompt.tolist()


@pytest.mark.parametrize("jump_forward", [True, False])
def test_what_is_forced_is_canonical_over_the_border(jump_forward: bool) -> None:
    request = ask("a", 'say {"name"')
    result = run(request, regex(r":\[[0-9]"), jump_forward=jump_forward)
    assert result.last.is_healed
    assert after(request, result) == TOKENIZER.encode('say {"name' + f'"{result.text}')
    assert result.text[:-1] == ":["
    forced = 1 if jump_forward else 0
    assert (result.last.usage.output_tokens, result.last.usage.forced_tokens) == (2, forced)


def test_a_grammar_that_does_not_begin_with_the_border_is_refused() -> None:
    engine, request = whims(), ask("a", 'say"')
    with pytest.raises(RequestError, match=r"gate\.constraint") as refusal:
        engine.add(request, compiled("regex", r":\[[ab]{3}"))
    assert refusal.value.code == "internal"
    grammar = compiled_for(engine, request, regex(r":\[[ab]{3}"))
    unhealed = replace(request, sampling=replace(request.sampling, heal=False))
    with pytest.raises(RequestError, match=r"gate\.constraint"):
        engine.add(unhealed, grammar)
    assert not engine.has_work
    engine.add(request, grammar)
    assert finish(engine)["a"].last.finish_reason == "stop"


def test_a_token_that_comes_again_costs_no_step() -> None:
    for seed in range(30):
        request = ask("a", f"{seed} ab na", replace(HEAL, max_tokens=1))
        engine = whims()
        engine.add(request)
        result = finish(engine)["a"]
        if not result.last.is_healed:
            assert engine.stats().num_steps == 1
            plain = run(replace(request, sampling=replace(request.sampling, heal=False)))
            assert answer(plain) == answer(result)
            return
    raise AssertionError("never the same token")


def test_a_shared_prompt_is_computed_once() -> None:
    prompt = "x" * 40 + " na"
    engine = whims(block_size=4)
    engine.add(ask("first", prompt))
    finish(engine)
    engine.add(ask("second", prompt))
    assert finish(engine)["second"].last.usage.cached_tokens == len(TOKENIZER.encode(prompt)) - 2


def test_an_abort_at_the_border_gives_all_back() -> None:
    engine = whims(token_budget=2, block_size=1)
    engine.add(ask("a", "say aaaa na na na"))
    for _ in range(3):
        engine.step()
        engine.check()
    engine.abort("a")
    assert finish(engine)["a"].last.finish_reason == "cancelled"


def test_the_stream_shows_the_output_alone() -> None:
    engine = whims()
    request = ask("a", 'say"')
    engine.add(request, compiled_for(engine, request, regex(r":\[[ab]{3}")))
    texts: list[str] = []
    while engine.has_work:
        texts += [output.text for output in engine.step()]
    assert "".join(texts)[:-3] == ":["
    assert texts[0] == ":["
