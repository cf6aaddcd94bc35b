"""Try out a grammar: match a text, draw samples, say what it guarantees; without a model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..interpreter.grammar import Grammar
from ..lang.errors import GrammarError, InvalidArgument, UsageError

EXAMPLE = """examples:
  plait grammar order.json --explain
  plait grammar sql.lark --match "SELECT name FROM users"
  plait grammar call.ebnf --part args=order.json --sample 3
  echo "[a-z]{3}" | plait grammar - --kind regex --sample 5"""

ENDINGS = {
    ".choices.json": "choices",
    ".json": "json_schema",
    ".regex": "regex",
    ".lark": "lark",
    ".gbnf": "ebnf",
    ".ebnf": "ebnf",
}
KINDS = tuple(dict.fromkeys(ENDINGS.values()))

EXIT_NO_MATCH = 1
EXIT_REFUSED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait grammar`."""
    parser.add_argument("file", metavar="FILE", help="the grammar; - reads it from stdin")
    parser.add_argument(
        "--kind", choices=KINDS, help=f"else from the file's ending: {', '.join(ENDINGS)}"
    )
    parser.add_argument(
        "--part",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="a grammar that a Lark or EBNF one names; its kind is by the file's ending",
    )
    parser.add_argument("--match", metavar="TEXT", help="exit 0 if it is one of the texts, else 1")
    parser.add_argument("--sample", metavar="N", type=int, help="print N random texts")
    parser.add_argument("--explain", action="store_true", help="say what is exact; the default")
    parser.add_argument("--seed", type=int, default=0, help="of the samples; default: 0")
    parser.add_argument("--strict", action="store_true", help="refuse what is only checked")
    parser.add_argument("--whitespace", metavar="N", type=int, help="blanks that JSON may have")
    parser.add_argument("--order", choices=("listed", "any"), help="of properties")


def execute(args: argparse.Namespace) -> int:
    """Do what is asked; give the exit code: 2 where the grammar is refused."""
    if args.sample is not None and args.sample < 1:
        raise UsageError(f"--sample {args.sample}: pass a whole number, 1 or more")
    grammar = _grammar(args)
    if args.match is None and args.sample is None:
        args.explain = True
    try:
        for seed in range(args.seed, args.seed + (args.sample or 0)):
            print(grammar.sample(seed))
        if args.explain:
            explanation = grammar.explain()
            print(explanation)
            if explanation.refused:
                return EXIT_REFUSED
        return 0 if args.match is None else _match(grammar, args.match)
    except GrammarError as error:
        print(f"plait: refused: {error}", file=sys.stderr)
        return EXIT_REFUSED


def _match(grammar: Grammar, text: str) -> int:
    reason = grammar.mismatch(text)
    print(f"no match: {reason}" if reason else "match")
    return EXIT_NO_MATCH if reason else 0


def _grammar(args: argparse.Namespace) -> Grammar:
    options = {"strict": args.strict or None, "whitespace": args.whitespace, "order": args.order}
    files = _part_files(args.part)
    kind = args.kind or _kind_of(args.file)
    if "json_schema" not in (kind, *map(_kind_of, files.values())):
        _refuse_options(options)
    parts = {name: _read(file, _kind_of(file), options) for name, file in files.items()}
    return _read(args.file, kind, options, parts or None)


def _refuse_options(options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None:
            reason = "it says how a JSON Schema's value is written, and there is no schema"
            raise UsageError(f"--{name}: {reason} (a file that ends in .json)")


def _part_files(parts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in parts:
        name, _, file = part.partition("=")
        if not name or not file:
            raise UsageError(f"--part {part}: pass NAME=FILE")
        if name in found:
            raise UsageError(f"--part {part}: {name} is there twice")
        if file == "-":
            raise UsageError(f"--part {part}: a part is read from a file, not from stdin")
        if _kind_of(file) is None:
            endings = ", ".join(ENDINGS)
            raise UsageError(f"--part {part}: a part's file ends in one of {endings}")
        found[name] = file
    return found


def _kind_of(file: str) -> str | None:
    return next((kind for end, kind in ENDINGS.items() if file.endswith(end)), None)


def _read(
    file: str,
    kind: str | None,
    options: Mapping[str, Any],
    parts: Mapping[str, Grammar] | None = None,
) -> Grammar:
    """Read a grammar from a file; `options` are those of a schema."""
    if kind is None:
        raise UsageError(f"{file}: pass --kind, one of {', '.join(KINDS)}")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        text = text.removeprefix("\ufeff")  # as some editors begin a file
        match kind:
            case "json_schema":
                return Grammar(schema=json.loads(text), parts=parts, **options)
            case "choices":
                return Grammar(choices=json.loads(text), parts=parts)
            case "regex":
                return Grammar(regex=text.removesuffix("\n"), parts=parts)
            case "lark":
                return Grammar(lark=text, parts=parts)
            case _:
                return Grammar(ebnf=text, parts=parts)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except RecursionError as error:
        raise UsageError(f"{file}: it is nested too deeply") from error
    except InvalidArgument as error:  # without the line of the author's, which is none here
        raise UsageError(f"{file}: {str(error).partition('Grammar(): ')[2]}") from error
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from error
