"""The GGUF reader: truncated, damaged and foreign files are refused by name."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.gguf import GgufFile

Write = Callable[..., Path]


def open_bytes(path: Path, content: bytes) -> None:
    """Write a file, open it as GGUF, and close it."""
    path.write_bytes(content)
    GgufFile(path).close()


def test_metadata_and_tensor_table_are_read(write_gguf: Write, tmp_path: Path) -> None:
    with closing(GgufFile(write_gguf(tmp_path / "m.gguf"))) as file:
        assert file.version == 3
        assert file.metadata["general.architecture"] == "llama"
        assert file.metadata["llama.rope.freq_base"] == 5e5
        tokens = file.metadata["tokenizer.ggml.tokens"]
        assert isinstance(tokens, list)
        assert tokens[:2] == ["<|end|>", "<|user|>"]
        assert file.tensors["token_embd.weight"].shape == (300, 32)


def test_every_truncation_is_an_error_that_names_the_file(
    write_gguf: Write, tmp_path: Path
) -> None:
    whole = write_gguf(tmp_path / "m.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    for size in [*range(0, 400, 7), *range(400, len(whole), 997), len(whole) - 1]:
        with pytest.raises(ModelLoadError, match=r"cut\.gguf"):
            open_bytes(cut, whole[:size])


def test_a_short_file_is_named_with_its_tensor_and_both_sizes(
    write_gguf: Write, tmp_path: Path
) -> None:
    whole = write_gguf(tmp_path / "m.gguf").read_bytes()
    with pytest.raises(ModelLoadError, match=rf"ends at byte {len(whole)} .* {len(whole) - 32} by"):
        open_bytes(tmp_path / "cut.gguf", whole[:-32])


def test_every_damaged_header_byte_is_harmless(write_gguf: Write, tmp_path: Path) -> None:
    whole = bytearray(write_gguf(tmp_path / "m.gguf").read_bytes())
    for at in range(4, 300):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        with suppress(ModelLoadError):
            open_bytes(tmp_path / "d.gguf", bytes(damaged))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b"PK\x03\x04aaaaaaaaaaaaaaaaaaaaaa", "not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1 is not supported"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**60), "needs 1152921504606846976 bytes"),
    ],
)
def test_foreign_files_are_refused(content: bytes, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=problem):
        open_bytes(tmp_path / "x.gguf", content)


def test_a_part_of_a_split_file_is_refused(write_gguf: Write, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", extra=lambda w: w.add_uint16("split.count", 2))
    with pytest.raises(ModelLoadError, match="split into 2"):
        GgufFile(path)


def test_an_unknown_quantisation_is_refused_by_name(write_gguf: Write, tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "m.gguf").read_bytes()
    name = b"token_embd.weight"
    at = whole.index(name) + len(name) + 4 + 2 * 8
    assert whole[at : at + 4] == struct.pack("<I", 0)
    with pytest.raises(ModelLoadError, match=r"token_embd\.weight.*IQ2_XXS is not supported"):
        open_bytes(tmp_path / "q.gguf", whole[:at] + struct.pack("<I", 16) + whole[at + 4 :])


def test_the_digest_tells_models_with_equal_headers_apart(
    write_gguf: Write, gguf_tensors: Callable[[str], dict[str, object]], tmp_path: Path
) -> None:
    arrays = gguf_tensors("llama")
    paths = [write_gguf(tmp_path / "a.gguf", arrays=arrays)]
    arrays["output_norm.weight"] = -arrays["output_norm.weight"]  # type: ignore[operator]
    paths.append(write_gguf(tmp_path / "b.gguf", arrays=arrays))
    digests = set()
    for path in (*paths, paths[0]):
        with closing(GgufFile(path)) as file:
            digests.add(file.digest)
    assert len(digests) == 2
