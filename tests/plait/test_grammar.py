"""`plait grammar` and `plait.Grammar`: a grammar tried out without a model."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from plait import Grammar, GrammarError, InvalidArgument, gen
from plait.__main__ import main
from plait.lang.ops import Constraint, Gen, GrammarText

ORDER = {
    "type": "object",
    "properties": {
        "sizes": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
    },
    "required": ["code"],
    "additionalProperties": False,
}
FILES = {
    "order.json": json.dumps(ORDER),
    "word.regex": "[a-z]{3}\n",
    "mood.choices.json": '["yes", "no"]',
    "word.lark": 'start: "a" start?',
    "word.gbnf": 'root ::= "a" root?',
    "word.ebnf": 'root ::= "a" root?',
    "bad.lark": "start: nowhere",
    "bad.json": '{"type": "nope"}',
    "no.json": "{",
    "never.json": "false",
    "words.txt": "a",
    "marked.json": '\ufeff{"type":"null"}',
    "deep.json": "[" * 100_000,
    "dict.choices.json": '{"yes": 1}',
    "minus.json": "true",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("order.json", '{"code":"AB"}', 0),
        ("order.json", '{"sizes":[1,2],"code":"AB"}', 0),
        ("order.json", '{"sizes":[1,1],"code":"AB"}', 1),
        ("order.json", '{"code":"ab"}', 1),
        ("order.json", '{"code":"AB"', 1),
        ("word.regex", "abc", 0),
        ("word.regex", "abcd", 1),
        ("mood.choices.json", "no", 0),
        ("mood.choices.json", "maybe", 1),
        ("word.lark", "aaa", 0),
        ("word.lark", "", 1),
        ("word.gbnf", "aa", 0),
        ("word.ebnf", "b", 1),
        ("bad.lark", "a", 2),
        ("bad.json", "1", 2),
        ("never.json", "1", 2),
        ("marked.json", "null", 0),
    ],
)
def test_match_tells_by_its_exit_code(
    folder: Path, name: str, text: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grammar", str(folder / name), "--match", text]) == code
    printed = capsys.readouterr()
    start = {0: "match\n", 1: "no match: ", 2: ""}[code]
    assert printed.out.startswith(start)
    assert ("refused: " in printed.err) == (code == 2)


def test_a_text_that_does_not_match_is_told_where(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["grammar", str(folder / "order.json"), "--match", '{"code":"aB"}'])
    assert capsys.readouterr().out == (
        "no match: character 9, 'a', cannot come after '{\"code\":\"'\n"
    )


def test_samples_match_and_follow_from_the_seed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grammar", str(folder / "word.regex"), "--sample", "5", "--seed"]
    printed = []
    for seed in ("3", "3", "4"):
        assert main([*words, seed]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]
    assert all(re.fullmatch("[a-z]{3}", line) for line in printed[0].splitlines())


def test_explain_says_what_is_exact_and_what_is_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grammar", str(folder / "order.json")]) == 0
    printed = capsys.readouterr().out
    exact, _, checked = printed.partition("checked at the end:")
    assert "#/properties/code/pattern" in exact
    assert "#/properties/sizes/uniqueItems: " in checked
    assert "states and nodes" in checked


def test_strict_refuses_what_is_only_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grammar", str(folder / "order.json"), "--strict"]) == 2
    assert "refused: schema: #/properties/sizes/uniqueItems" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["bad.lark", "bad.json", "never.json"])
def test_explain_of_what_is_refused_says_why(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grammar", str(folder / name), "--explain"]) == 2
    assert "refused: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["words.txt"], "pass --kind"),
        (["nowhere.lark"], "No such file"),
        (["no.json"], "no.json"),
        (["word.regex", "--sample", "0"], "--sample 0"),
        (["word.regex", "--strict"], "plait: --strict: it says how a JSON Schema's value is"),
        (["word.lark", "--whitespace", "1"], "plait: --whitespace: it says how"),
        (["deep.json"], "deep.json: it is nested too deeply"),
        (["dict.choices.json"], "dict.choices.json: choices={'yes': 1}: choices must be a list"),
        (["minus.json", "--whitespace", "-1"], "minus.json: whitespace=-1: whitespace must be"),
        (["mood.choices.json", "--kind", "nope"], "nope"),
    ],
)
def test_wrong_usage_is_one_line(
    folder: Path, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grammar", str(folder / words[0]), *words[1:]]) == 2
    printed = capsys.readouterr().err
    assert part in printed
    assert len(printed.splitlines()) == 1


CALL = 'root ::= name "(" args ")"'


@pytest.mark.parametrize(
    ("text", "code"),
    [('yes({"code":"AB"})', 0), ("yes({})", 1), ('yes({"sizes":[1,1],"code":"AB"})', 1)],
)
def test_parts_are_read_from_files(folder: Path, text: str, code: int) -> None:
    (folder / "call.ebnf").write_text(CALL)
    words = [str(folder / "call.ebnf"), "--part", f"name={folder / 'mood.choices.json'}"]
    words += ["--part", f"args={folder / 'order.json'}", "--match", text]
    assert main(["grammar", *words]) == code
    assert main(["grammar", *words, "--strict"]) == 2
    assert main(["grammar", *words, "--whitespace", "1"]) == code


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["name"], "--part name: pass NAME=FILE"),
        (["name=words.txt"], "words.txt: a part's file ends in one of .choices.json, .json, "),
        (["name=mood.choices.json", "name=word.regex"], "name is there twice"),
        (["name=nowhere.json"], "No such file"),
    ],
)
def test_a_part_that_is_none_is_refused(
    folder: Path, parts: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "call.ebnf").write_text(CALL)
    words = [word.replace("=", f"={folder}/") for part in parts for word in ("--part", part)]
    assert main(["grammar", str(folder / "call.ebnf"), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_part_is_not_read_from_stdin(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grammar", str(folder / "sql.lark"), "--part", "name=-"]) == 2
    assert "--part name=-: a part is read from a file, not from stdin" in capsys.readouterr().err


def test_a_grammar_is_read_from_stdin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('start: "a"'))
    assert main(["grammar", "-", "--kind", "lark", "--match", "a"]) == 0
    assert capsys.readouterr().out == "match\n"


@pytest.mark.parametrize(
    "options",
    [
        {"schema": {"enum": ["a.b", 1, None]}},
        {"regex": "a+"},
        {"choices": ["a", "ab"]},
        {"lark": 'start: "a" start?'},
        {"ebnf": 'root ::= "a" root?'},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_grammar_matches_its_samples(options: dict[str, Any]) -> None:
    grammar = Grammar(**options)
    assert grammar.kind in repr(grammar)
    assert all(grammar.match(grammar.sample(seed)) for seed in range(5))
    assert not grammar.match("b")
    assert not grammar.explain().refused


def test_the_layout_of_json_is_as_gen_has_it() -> None:
    text = '{ "code": "AB" }'
    assert not Grammar(schema=ORDER).match(text)
    assert Grammar(schema=ORDER, whitespace=1).match(text)
    turned = '{"code":"AB","sizes":[]}'
    assert not Grammar(schema=ORDER).match(turned)
    assert Grammar(schema=ORDER, order="any").match(turned)


def test_gen_takes_a_grammar_that_says_what_it_is() -> None:
    (op,) = gen("x", grammar=Grammar(ebnf='root ::= "a"')).parts
    assert isinstance(op, Gen)
    assert op.constraint == Constraint(grammar=GrammarText("ebnf", 'root ::= "a"'))
    assert gen("x", grammar=Grammar(regex="a")).parts == gen("x", regex="a").parts
    assert gen("x", grammar=Grammar(choices=["a"])).parts == gen("x", choices=["a"]).parts
    schema = Grammar(schema={}, whitespace=2)
    assert gen("x", grammar=schema).parts == gen("x", {}, whitespace=2).parts


@pytest.mark.parametrize("options", [{}, {"regex": "a", "lark": "b"}, {"regex": 3}])
def test_a_grammar_of_nothing_or_of_two_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"test_grammar\.py:\d+: Grammar\(\)"):
        Grammar(**options)


def test_a_refused_grammar_is_an_error_with_its_reason() -> None:
    for bad in (Grammar(regex="("), Grammar(schema={"type": "nope"}), Grammar(lark="start: b")):
        with pytest.raises(GrammarError):
            bad.match("a")
        assert bad.explain().refused
