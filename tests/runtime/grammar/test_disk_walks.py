"""What a second process finds on disk: tables and walks, equal to those it would have made."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from plait.runtime.grammar import disk_vocabulary as disk_vocabulary_module
from plait.runtime.grammar.compiler import GrammarCompiler
from plait.runtime.grammar.disk import DiskCache
from plait.runtime.grammar.disk_vocabulary import MIN_TOKENS, open_vocabulary
from plait.runtime.grammar.spec import GrammarMatcher, GrammarSpec
from plait.runtime.grammar.terminal import LocalState
from plait.runtime.grammar.vocabulary import Tables, Vocabulary
from plait.runtime.grammar.walk import Walker

from .tokens import EOS, SECOND_EOS, TOKENS, VOCABULARY, WIDTH, allowed, is_text, stepped

LARK = """
start: NAME "=" (NUMBER | STRING)
NAME: /[a-z]+/
NUMBER: /[0-9]+/
STRING: /"[^"]*"/
"""
SCHEMA = """{"type": "object", "minProperties": 1, "additionalProperties":
    {"type": "array", "items": {"type": "string", "maxLength": 30}, "minItems": 1}}"""
SPECS = [
    GrammarSpec("regex", (r"[^x]{1,40}",)),
    GrammarSpec("regex", (r"(?!.*ab)(?s:.{3,25})",)),
    GrammarSpec("regex", (r"((?!ab)\w)+",)),  # a loop over looks: not kept
    GrammarSpec("json_schema", (SCHEMA,)),
    GrammarSpec("lark", (LARK,)),
]


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what belongs to the tests' small vocabulary, too."""
    monkeypatch.setattr(disk_vocabulary_module, "MIN_TOKENS", 0)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Collect the places in terminals that are walked from."""
    walk, found = Walker.walk, list[object]()

    def counted(self: Walker[object], start: object, *args: object) -> object:
        if isinstance(start, LocalState):
            found.append(start)
        return walk(self, start, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Walker, "walk", counted)
    return found


def opened(root: Path) -> tuple[GrammarCompiler, DiskCache]:
    """Start as a process does."""
    disk = DiskCache(root)
    vocabulary, folder = open_vocabulary(TOKENS, (EOS, SECOND_EOS), WIDTH, disk)
    assert folder is not None
    return GrammarCompiler(vocabulary, 10.0, 200_000, folder), disk


def followed(matcher: GrammarMatcher, num_tokens: int = 12) -> list[list[int]]:
    """Give the masks along a random text, the same in every process."""
    rng, found = random.Random(3), []
    for _ in range(num_tokens):
        found.append(allowed(matcher))
        texts = [i for i in found[-1] if is_text(i)]
        if not texts:
            break
        assert matcher.accept(rng.choice(texts))
    return found


def run(root: Path, specs: list[GrammarSpec]) -> list[list[list[int]]]:
    """Follow each grammar in a process of its own."""
    compiler, disk = opened(root)
    found = [followed(compiler.compile(spec).matcher()) for spec in specs]
    disk.flush()
    return found


def test_a_restart_walks_nothing_again_and_changes_no_mask(
    tmp_path: Path, walks: list[object]
) -> None:
    specs = [SPECS[0], SPECS[1], SPECS[3]]
    plain = GrammarCompiler(VOCABULARY, 10.0, 200_000)
    expected = [followed(plain.compile(spec).matcher()) for spec in specs]
    walks.clear()
    assert run(tmp_path, specs) == expected
    assert len(walks) > 20
    walks.clear()
    assert run(tmp_path, specs) == expected
    assert not walks


@pytest.mark.parametrize("spec", SPECS)
def test_masks_from_disk_are_what_stepping_gives(spec: GrammarSpec, tmp_path: Path) -> None:
    run(tmp_path, SPECS)
    compiler, _ = opened(tmp_path)
    matcher = compiler.compile(spec).matcher()
    rng = random.Random(4)
    for _ in range(8):
        choices = allowed(matcher)
        assert choices == stepped(matcher)
        texts = [i for i in choices if is_text(i)]
        if not texts:
            break
        assert matcher.accept(rng.choice(texts))


def test_damaged_files_cost_walks_and_change_no_mask(tmp_path: Path, walks: list[object]) -> None:
    expected = run(tmp_path, SPECS)
    rng = random.Random(0)
    for path in sorted(tmp_path.glob("*/*")):
        data = bytearray(path.read_bytes())
        if rng.random() < 0.5:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            del data[rng.randrange(len(data)) :]
        path.write_bytes(data)
    walks.clear()
    assert run(tmp_path, SPECS) == expected
    num_walks = len(walks)
    walks.clear()
    assert run(tmp_path, SPECS) == expected
    assert len(walks) < num_walks / 2  # written again


def test_tables_from_disk_are_those_that_were_made(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path)
    made, _ = open_vocabulary(TOKENS, (EOS, SECOND_EOS), WIDTH, disk)
    disk.flush()
    read, _ = open_vocabulary(TOKENS, (EOS, SECOND_EOS), WIDTH, disk)
    assert read.tables is not made.tables
    assert arrays_of(read.tables) == arrays_of(made.tables) == arrays_of(VOCABULARY.tables)
    for name in ("width", "eos_ids", "longest", "spellable"):
        assert getattr(read, name) == getattr(made, name)
    assert all(read.bytes_of(i) == made.bytes_of(i) for i in range(-1, WIDTH + 1))


def arrays_of(tables: Tables) -> list[object]:
    """Give all that is in the tables, in a form that can be compared."""
    tries = [tables.trie, *(part.trie for part in tables.slices)]
    arrays = [getattr(trie, name) for trie in tries for name in trie.__slots__]
    arrays += [tables.ranked_ids, *(a for part in tables.slices for a in (part.ranks, part.nodes))]
    described = [(array.dtype.str, array.shape, array.tobytes()) for array in arrays]
    return [*described, [part.longest for part in tables.slices]]


@pytest.mark.parametrize(
    "tokens", [[], [None], [b"a"], [b"a" * 20, b"a" * 20, None, b"\xff"], [b"x" * 9, b"xy"]]
)
def test_tables_of_awkward_vocabularies_are_kept(
    tokens: list[bytes | None], tmp_path: Path
) -> None:
    disk = DiskCache(tmp_path)
    made, _ = open_vocabulary(tokens, (1,), 7, disk)
    disk.flush()
    read, _ = open_vocabulary(tokens, (1,), 7, disk)
    assert read.tables is not made.tables
    assert arrays_of(read.tables) == arrays_of(made.tables)


def test_another_tokenizer_or_other_code_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = DiskCache(tmp_path)

    def folder(tokens: list[bytes | None], eos_ids: tuple[int, ...], width: int) -> str:
        _, found = open_vocabulary(tokens, eos_ids, width, disk)
        assert found is not None
        return found.name

    tokens: list[bytes | None] = [b"a", b"bc", None, b"d"]
    names = [
        folder(tokens, (3,), 4),
        folder(tokens, (2,), 4),
        folder(tokens, (3,), 5),
        folder(tokens[:3], (3,), 4),
        folder([b"ab", b"c", None, b"d"], (3,), 4),
        folder([b"a", b"bc", b"", b"d"], (3,), 4),
        folder([b"a", None, b"bc", b"d"], (3,), 4),
    ]
    monkeypatch.setattr(disk_vocabulary_module, "CODE_DIGEST", b"of another version")
    names.append(folder(tokens, (3,), 4))
    assert len(set(names)) == len(names)
    disk.flush()


def test_another_version_walks_for_itself(
    tmp_path: Path, walks: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(tmp_path, SPECS)
    num_walks = len(walks)
    walks.clear()
    monkeypatch.setattr(disk_vocabulary_module, "CODE_DIGEST", b"of another version")
    assert run(tmp_path, SPECS) == expected
    assert len(walks) == num_walks


def test_a_small_vocabulary_and_a_package_without_sources_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = DiskCache(tmp_path)
    monkeypatch.setattr(disk_vocabulary_module, "MIN_TOKENS", MIN_TOKENS)
    assert open_vocabulary(TOKENS, (EOS,), WIDTH, disk)[1] is None
    monkeypatch.setattr(disk_vocabulary_module, "MIN_TOKENS", 0)
    monkeypatch.setattr(disk_vocabulary_module, "CODE_DIGEST", None)
    vocabulary, folder = open_vocabulary(TOKENS, (EOS,), WIDTH, disk)
    assert folder is None
    assert isinstance(vocabulary, Vocabulary)
    disk.flush()
    assert not list(tmp_path.iterdir())


def test_a_home_that_cannot_be_written_serves_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    expected = run(tmp_path / "good", SPECS)
    assert run(tmp_path / "home", SPECS) == expected
    assert len(caplog.records) == 1


def test_a_mask_from_disk_cannot_be_changed(tmp_path: Path) -> None:
    run(tmp_path, SPECS[:1])
    compiler, _ = opened(tmp_path)
    first = compiler.compile(SPECS[0]).matcher()
    row = np.full(VOCABULARY.mask_len, -1, np.int32)
    first.fill_bitmask(row)
    row[:] = 0
    again = np.full(VOCABULARY.mask_len, -1, np.int32)
    first.fill_bitmask(again)
    assert again.any()
