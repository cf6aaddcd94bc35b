"""What a score request asks for, each log-probability once: its texts as one tree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .cache.node import common_len
from .cache.scores import ScoreStore
from .config import EngineConfig
from .model.interface import Logits, Model
from .plan import Chunk
from .sample import gather_logprobs
from .sequence import Int32, ScoredText, ScoreRequest

Logprobs = dict[int, float | None]  # by the next token; None: not known yet


@dataclass(frozen=True, slots=True)
class Span:
    """Rows that one text has to compute: those after its first `first` to `last` tokens."""

    text: int
    first: int
    last: int


@dataclass(slots=True, eq=False)
class _Path:
    """A text, and the row after each of its beginnings from `score_from` tokens on."""

    text: ScoredText
    rows: list[Logprobs] = field(default_factory=list)

    def fill(self, above: _Path | None) -> None:
        """Make the rows, but for those that a path before it has already."""
        tokens, start = self.text.token_ids, self.text.score_from
        if above is not None and above.text.score_from != start:
            above = None
        shared = 0 if above is None else common_len(above.text.token_ids, tokens)
        for length, token_id in enumerate(tokens[start:].tolist(), start):
            row = None if above is None or length > shared else above.row(length)
            self.rows.append({} if row is None else row)
            self.rows[-1].setdefault(token_id, None)

    def row(self, length: int) -> Logprobs | None:
        """Give the row after the first `length` tokens, None if nothing is asked of it."""
        place = length - self.text.score_from
        return self.rows[place] if 0 <= place < len(self.rows) else None


class ScoreSheet:
    """The rows of logits that a request's texts need, and what was read off them.

    A row is what the model says after a beginning; texts that begin alike share their rows, so
    of many choices with few first tokens the prompt's last row is computed once.
    """

    def __init__(self, texts: Sequence[ScoredText]) -> None:
        self._paths = [_Path(text) for text in texts]
        # Sorted, those that begin alike stand together: a text shares most with the one before.
        self._order = sorted(range(len(texts)), key=lambda i: _key(texts[i].token_ids))
        above: _Path | None = None
        for i in self._order:
            self._paths[i].fill(above)
            above = self._paths[i]

    def unknown(self, text: int, length: int) -> list[int]:
        """Give the tokens whose log-probability after a beginning of a text is wanted."""
        row = self._paths[text].row(length)
        return [] if row is None else [token for token, found in row.items() if found is None]

    def put(self, text: int, length: int, known: Mapping[int, float]) -> None:
        """Note log-probabilities after the first `length` tokens of a text; others are let go."""
        row = self._paths[text].row(length)
        if row is not None:
            row.update((token, known[token]) for token in row.keys() & known.keys())

    def wanted(self) -> Iterator[tuple[int, list[int]]]:
        """Give texts and their beginnings that something is asked of, each beginning once."""
        seen: set[int] = set()
        for i in self._order:
            path = self._paths[i]
            new = [place for place, row in enumerate(path.rows) if id(row) not in seen]
            seen.update(id(path.rows[place]) for place in new)
            if new:
                yield i, [path.text.score_from + place for place in new]

    def spans(self) -> list[Span]:
        """Give what has to be computed: of each row that is not known, by the first text with it.

        Between the first and the last of a text's rows there may be some that are known.
        """
        found: list[Span] = []
        for text, lengths in self.wanted():
            unknown = [length for length in lengths if self.unknown(text, length)]
            if unknown:
                found.append(Span(text, unknown[0], unknown[-1]))
        return found

    def answer(self) -> tuple[tuple[float, ...], ...]:
        """Give the log-probabilities of each text's tokens; all are known by now."""
        return tuple(tuple(self._read(path)) for path in self._paths)

    def _read(self, path: _Path) -> Iterator[float]:
        targets = path.text.token_ids[path.text.score_from :].tolist()
        for token_id, row in zip(targets, path.rows, strict=True):
            logprob = row[token_id]
            yield math.nan if logprob is None else logprob


class Scorer:
    """Fills sheets: from what the cache knows, and from logits. The engine owns it."""

    def __init__(self, model: Model, config: EngineConfig, known: ScoreStore) -> None:
        self._known = known if config.is_prefix_caching else None
        self._vocab_size = model.tokenizer.vocab_size
        self._sees_start = model.sees_output_start

    def sheet(self, request: ScoreRequest, namespace: str) -> ScoreSheet:
        """Give what a request asks for, with what the cache knows of it."""
        sheet = ScoreSheet(request.texts)
        if self._known is not None:
            for text, lengths in sheet.wanted():
                scored = request.texts[text]
                mark = self._mark(scored.score_from)
                found = self._known.find(namespace, scored.token_ids, lengths, mark)
                for length, logprobs in found.items():
                    sheet.put(text, length, logprobs)
        return sheet

    def read(self, chunk: Chunk, sheet: ScoreSheet, logits: Logits) -> None:
        """Read what is asked of a chunk's rows off their logits, and keep it in the cache.

        Raises: RequestError (non_finite_logits).
        """
        sequence = chunk.sequence
        lengths = range(sequence.num_reusable + 1, chunk.end + 1)
        asked = [sheet.unknown(sequence.text_id, length) for length in lengths]
        found = gather_logprobs(logits, asked, self._vocab_size)
        sequence.num_scored += len(lengths)
        rows = {
            length: dict(zip(token_ids, row, strict=True))
            for length, token_ids, row in zip(lengths, asked, found, strict=True)
        }
        for length, logprobs in rows.items():
            sheet.put(sequence.text_id, length, logprobs)
        if self._known is not None:
            mark = self._mark(sequence.output_start)
            self._known.put(sequence.namespace, sequence.tokens.view, rows, mark)

    def _mark(self, score_from: int) -> bytes:
        return f"from {score_from}".encode() if self._sees_start else b""


def _key(tokens: Int32) -> bytes:
    return tokens.astype(">i4").tobytes()  # big-endian: bytes in the order of the numbers
