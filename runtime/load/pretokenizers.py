"""What `tokenizer.ggml.pre` names: how a byte-level BPE model cuts text into words.

A closed table. An unknown name is refused, since a wrong cut gives other tokens in silence.
The patterns are those of the models' own tokenizer.json files; llama.cpp's
`unicode_regex_split` has them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"

_LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}"
_QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How one family cuts text, as parts of a tokenizer.json.

    `pattern` None is GPT-2's own, built into `ByteLevel`. `adds_bos` holds where the file
    does not say.
    """

    pattern: str | None = None
    single_digits: bool = False
    is_nfc: bool = False
    ignores_merges: bool = False
    adds_bos: bool = False

    def pre_tokenizer(self) -> dict[str, object]:
        """Give the `pre_tokenizer` of a tokenizer.json."""
        steps: list[dict[str, object]] = []
        if self.single_digits:
            steps.append({"type": "Digits", "individual_digits": True})
        if self.pattern is not None:
            steps.append(
                {
                    "type": "Split",
                    "pattern": {"Regex": self.pattern},
                    "behavior": "Isolated",
                    "invert": False,
                }
            )
        steps.append(byte_level(use_regex=self.pattern is None))
        return {"type": "Sequence", "pretokenizers": steps}

    def normalizer(self) -> dict[str, object] | None:
        """Give the `normalizer` of a tokenizer.json."""
        return {"type": "NFC"} if self.is_nfc else None


def byte_level(*, use_regex: bool) -> dict[str, object]:
    """Give a `ByteLevel` step that adds no space."""
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


_GPT2 = PreTokenizer()
_DIGITS = PreTokenizer(single_digits=True)

PRE_TOKENIZERS: Final = {
    "gpt-2": _GPT2,
    "phi-2": _GPT2,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "llama-bpe": PreTokenizer(_LLAMA3, ignores_merges=True, adds_bos=True),
    "llama3": PreTokenizer(_LLAMA3, ignores_merges=True, adds_bos=True),
    "qwen2": PreTokenizer(_QWEN2, is_nfc=True),
    "deepseek-r1-qwen": PreTokenizer(_QWEN2, is_nfc=True),
    "tekken": PreTokenizer(_TEKKEN, ignores_merges=True, adds_bos=True),
}
