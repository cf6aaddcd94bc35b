"""Changes to a tokenizer.json that make it exact, and the bytes of its tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..errors import ModelLoadError
from .tokenizer_source import TokenizerSource

_SPACE = "\u2581"  # sentencepiece's blank
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_STEPS = ("normalizers", "pretokenizers", "decoders", "processors")


def exact(source: TokenizerSource) -> dict[str, object]:
    """Give the tokenizer.json without steps that add or eat blanks, or draw lots.

    Tokens that a side file calls special become so.
    """
    data = dict(source.data)
    data["truncation"] = data["padding"] = None
    data["added_tokens"] = _added_tokens(source)
    for key in ("normalizer", "pre_tokenizer"):
        data[key] = _without_prefix(data.get(key))
    if isinstance(model := data.get("model"), dict):
        data["model"] = {**model, "dropout": None} if model.get("dropout") is not None else model
    return data


def _added_tokens(source: TokenizerSource) -> list[dict[str, object]]:
    listed = source.data.get("added_tokens")
    tokens = (
        [dict(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    )
    special = set(source.special_tokens)
    if source.bos_token is not None:
        special.add(source.bos_token)
    for token in tokens:
        is_special = token.get("special") is True or token.get("content") in special
        token.update(lstrip=False, rstrip=False, special=is_special)
    known = {token.get("content") for token in tokens}
    model = source.data.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    for text in sorted(special - known):
        if isinstance(vocab, dict) and text in vocab:
            tokens.append(_special(text, vocab[text]))
    return tokens


def _special(text: str, token_id: int) -> dict[str, object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": text, **flags, "special": True}


def _without_prefix(step: object) -> object:
    """Take out of a step, or of the steps inside it, what puts a blank before a text."""
    if not isinstance(step, dict):
        return step
    step = dict(step)
    for key in _STEPS:
        if isinstance(inner := step.get(key), list):
            kept = (_without_prefix(one) for one in inner)
            step[key] = [one for one in kept if one is not None]
    if step.get("type") == "Prepend":
        return None
    if "add_prefix_space" in step:
        step["add_prefix_space"] = False
    if "prepend_scheme" in step:
        step["prepend_scheme"] = "never"
    return step


def token_spelling(data: Mapping[str, object], path: Path) -> Callable[[str], bytes]:
    """Give the function from a token's entry in the vocabulary to its bytes.

    Raises: ModelLoadError for a tokenizer that is neither byte-level nor sentencepiece's.
    """
    steps = [
        step for key in ("normalizer", "pre_tokenizer", "decoder") for step in _walk(data.get(key))
    ]
    kinds = {str(step.get("type")) for step in steps}
    if "ByteLevel" in kinds:
        return _byte_level()
    blanks = (
        step.get("content") == _SPACE or step.get("pattern") == {"String": _SPACE} for step in steps
    )
    if "Metaspace" in kinds or any(blanks):
        return _byte_fallback if "ByteFallback" in kinds else _sentencepiece
    raise ModelLoadError(
        f"{path}: a tokenizer made of {', '.join(sorted(kinds)) or 'no steps'} is not supported; "
        "byte-level and sentencepiece ones are"
    )


def _walk(step: object) -> Iterator[Mapping[str, object]]:
    if not isinstance(step, dict):
        return
    yield step
    for key in _STEPS:
        for one in step.get(key) or ():
            yield from _walk(one)


def _byte_level() -> Callable[[str], bytes]:
    """Undo GPT-2's alphabet, in which each byte is one printable character."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    table = {chr(byte): byte for byte in shown}
    table.update({chr(0x100 + index): byte for index, byte in enumerate(hidden)})

    def spell(token: str) -> bytes:
        try:
            return bytes([table[char] for char in token])
        except KeyError:
            # Not in the alphabet, so it stands for itself.
            return token.encode()

    return spell


def _sentencepiece(token: str) -> bytes:
    return token.replace(_SPACE, " ").encode()


def _byte_fallback(token: str) -> bytes:
    match = _BYTE_TOKEN.fullmatch(token)
    return bytes([int(match[1], 16)]) if match else _sentencepiece(token)
