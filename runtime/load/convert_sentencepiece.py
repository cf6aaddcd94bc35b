"""A sentencepiece tokenizer in a GGUF file, as the parts of a tokenizer.json.

GGUF keeps the pieces with their scores, and no merges. Sentencepiece's BPE joins, again and
again, the two neighbours whose joint piece has the best score; a list of all pairs that make
a piece, best score first, gives the `tokenizers` library the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SPACE = "\u2581"


def sentencepiece_parts(
    vocab: Mapping[str, int],
    pieces: Sequence[str],
    scores: Mapping[str, float],
    unknown: str | None,
) -> dict[str, object]:
    """Give model, normalizer, pre-tokenizer and decoder.

    `pieces` are the ordinary ones, which merges may make. The blank that sentencepiece puts
    before a text is left out: `encode` adds nothing.
    """
    return {
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE},
        "pre_tokenizer": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": unknown,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": dict(vocab),
            "merges": merges_from_scores(vocab, pieces, scores),
        },
    }


def merges_from_scores(
    vocab: Mapping[str, int], pieces: Sequence[str], scores: Mapping[str, float]
) -> list[list[str]]:
    """List every pair that makes a piece, best score first.

    Among the pairs of one piece the order is that of the models' own tokenizer.json files.
    After: `generate_merges` of transformers' converter.
    """
    merges: list[tuple[float, str, str]] = []
    for piece in pieces:
        cuts = ((piece[:at], piece[at:]) for at in range(1, len(piece)))
        pairs = [(left, right) for left, right in cuts if left in vocab and right in vocab]
        pairs.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        merges.extend((scores[piece], left, right) for left, right in pairs)
    merges.sort(key=lambda merge: (merge[0], len(merge[1]), len(merge[2])), reverse=True)
    return [[left, right] for _, left, right in merges]
