"""Scores are the model's own, alone or together, in any chunks."""

from __future__ import annotations

import numpy as np
import pytest

from plait.runtime.sequence import (
    ScoredText,
    ScoreRequest,
)

from .bench import drain, ids, make


def test_scores_equal_those_of_single_texts() -> None:
    prompt = "x" * 30 + "yes or no? "
    texts = [prompt + choice for choice in ("yes", "no", "yes, but", "n")]
    scored = tuple(ScoredText(ids(t), len(prompt)) for t in texts)
    together = drain(make(), ScoreRequest("s", scored))["s"].last
    alone = [drain(make(), ScoreRequest("s", (one,)))["s"].last.logprobs[0] for one in scored]
    assert [len(t) for t in together.logprobs] == [3, 2, 8, 1]
    assert np.allclose(np.concatenate(together.logprobs), np.concatenate(alone), atol=1e-6)
    assert together.usage.cached_tokens >= 3 * (len(prompt) - 1)


def test_scores_are_the_models_own() -> None:
    script = {"q": {"a": 0.75, "b": 0.25}, "qa": {"c": 0.5, "d": 0.5}}
    engine = make(lambda text: script.get(text, {"": 1.0}), width=320)
    request = ScoreRequest("s", (ScoredText(ids("qac"), 1), ScoredText(ids("qb"), 1)))
    found = drain(engine, request)["s"].last.logprobs
    assert found[0] == pytest.approx(np.log([0.75, 0.5]), abs=1e-5)
    assert found[1] == pytest.approx(np.log([0.25]), abs=1e-5)
