"""Where a tokenizer's parts are written: tokenizer.json and its side files, or GGUF metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelLoadError
from .convert import GgufVocabulary, default_adds_bos, read_vocabulary, tokenizer_data
from .gguf import GgufFile
from .json_file import read_json

TOKENIZER_NAME = "tokenizer.json"
CONFIG_NAME = "tokenizer_config.json"
GENERATION_NAME = "generation_config.json"
_NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


@dataclass(frozen=True, slots=True)
class TokenizerSource:
    """A tokenizer's parts, gathered from all the places that may name them.

    `adds_bos` is None where only the post-processor of `data` can tell. `special_tokens` are
    texts that a side file calls special. `num_rows` is the height of the embedding, if known.
    """

    path: Path
    data: Mapping[str, object]  # the content of tokenizer.json
    bos_token: str | None
    adds_bos: bool | None
    eos_tokens: frozenset[str | int]
    chat_template: str | None
    special_tokens: tuple[str, ...] = ()
    num_rows: int | None = None


def tokenizer_source(path: Path) -> TokenizerSource:
    """Gather a tokenizer's parts from a GGUF file or a folder.

    Raises: ModelLoadError, naming the file and the field.
    """
    if path.is_dir():
        return _from_folder(path)
    with closing(GgufFile(path)) as file:
        return _from_gguf(file)


def _from_gguf(file: GgufFile) -> TokenizerSource:
    vocabulary = read_vocabulary(file)
    beside = file.path.parent / TOKENIZER_NAME
    data = _beside(beside, vocabulary) if beside.exists() else tokenizer_data(vocabulary)
    adds_bos = vocabulary.get("add_bos_token")
    if adds_bos is None and not beside.exists():
        adds_bos = default_adds_bos(vocabulary)
    bos = vocabulary.token_id("bos_token_id")
    eos = (vocabulary.token_id(f"{key}_token_id") for key in ("eos", "eot", "eom"))
    template = file.metadata.get("tokenizer.chat_template")
    table = file.tensors.get("token_embd.weight")
    return TokenizerSource(
        path=file.path,
        data=data,
        bos_token=None if bos is None else vocabulary.tokens[bos],
        adds_bos=None if adds_bos is None else bool(adds_bos),
        eos_tokens=frozenset(token_id for token_id in eos if token_id is not None),
        chat_template=template if isinstance(template, str) else None,
        num_rows=None if table is None else table.shape[0],
    )


def _beside(path: Path, vocabulary: GgufVocabulary) -> dict[str, object]:
    """Read the tokenizer.json beside a GGUF file, after checking that it is that model's."""
    data = read_json(path)
    model = data.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocab, dict):
        for token, token_id in vocab.items():
            if token_id >= len(vocabulary.tokens) or vocabulary.tokens[token_id] != token:
                vocabulary.fail(f"{path} is of another model: its token {token_id} is {token!r}")
    return data


def _from_folder(folder: Path) -> TokenizerSource:
    if not (folder / TOKENIZER_NAME).exists():
        raise ModelLoadError(
            f"{folder}: no {TOKENIZER_NAME}; save the model's fast tokenizer into the folder"
        )
    settings = _optional(folder / CONFIG_NAME)
    config = _optional(folder / "config.json")
    adds_bos = settings.get("add_bos_token")
    num_rows = config.get("vocab_size")
    return TokenizerSource(
        path=folder,
        data=read_json(folder / TOKENIZER_NAME),
        bos_token=_text(settings.get("bos_token")),
        adds_bos=adds_bos if isinstance(adds_bos, bool) else None,
        eos_tokens=_eos_tokens(settings, config, _optional(folder / GENERATION_NAME)),
        chat_template=_chat_template(folder, settings),
        special_tokens=_special_tokens(settings),
        num_rows=num_rows if isinstance(num_rows, int) else None,
    )


def _optional(path: Path) -> Mapping[str, object]:
    return read_json(path) if path.exists() else {}


def _text(token: object) -> str | None:
    """Give a token's text: a string, or an object with its flags."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _eos_tokens(
    settings: Mapping[str, object], *configs: Mapping[str, object]
) -> frozenset[str | int]:
    """Unite the places that name end tokens; each may name several."""
    found: set[str | int] = set()
    if (text := _text(settings.get("eos_token"))) is not None:
        found.add(text)
    for config in configs:
        ids = config.get("eos_token_id")
        found.update(one for one in (ids if isinstance(ids, list) else [ids]) if type(one) is int)
    return frozenset(found)


def _special_tokens(settings: Mapping[str, object]) -> tuple[str, ...]:
    tokens: list[object] = [settings.get(key) for key in _NAMED_TOKENS]
    more = settings.get("additional_special_tokens")
    tokens.extend(more if isinstance(more, list) else [])
    decoder = settings.get("added_tokens_decoder")
    for token in decoder.values() if isinstance(decoder, dict) else ():
        if isinstance(token, dict) and token.get("special") is True:
            tokens.append(token)
    texts = (_text(token) for token in tokens)
    return tuple(dict.fromkeys(text for text in texts if text))


def _chat_template(folder: Path, settings: Mapping[str, object]) -> str | None:
    """Find the template: its own file first; of several named ones, the one called default."""
    file = folder / "chat_template.jinja"
    if file.exists():
        return file.read_text("utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {one.get("name"): one.get("template") for one in template if isinstance(one, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def write_source(source: TokenizerSource, folder: Path) -> None:
    """Write the parts as files that `tokenizer_source(folder)` reads back."""
    _dump(folder / TOKENIZER_NAME, source.data)
    settings = {
        "bos_token": source.bos_token,
        "add_bos_token": source.adds_bos,
        "chat_template": source.chat_template,
    }
    _dump(folder / CONFIG_NAME, settings)
    _dump(folder / GENERATION_NAME, {"eos_token_id": sorted(source.eos_tokens, key=str)})


def _dump(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
