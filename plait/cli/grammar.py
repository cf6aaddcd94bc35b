"""Try out a grammar: match a text, draw samples, say what it guarantees; without a model."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..interpreter.offline import Grammar
from ..lang.errors import GrammarError, InvalidArgument, UsageError

EXAMPLE = """examples:
  plait grammar order.json --explain
  plait grammar sql.lark --match "SELECT name FROM users"
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
    kind = args.kind or next((k for end, k in ENDINGS.items() if args.file.endswith(end)), None)
    if kind is None:
        raise UsageError(f"{args.file}: pass --kind, one of {', '.join(KINDS)}")
    options = {"strict": args.strict or None, "whitespace": args.whitespace, "order": args.order}
    try:
        text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text("utf-8")
        match kind:
            case "json_schema":
                return Grammar(schema=json.loads(text), **options)
            case "choices":
                return Grammar(choices=json.loads(text), **options)
            case "regex":
                return Grammar(regex=text.removesuffix("\n"), **options)
            case "lark":
                return Grammar(lark=text, **options)
            case _:
                return Grammar(ebnf=text, **options)
    except OSError as error:
        raise UsageError(f"{args.file}: {error.strerror}") from error
    except (ValueError, InvalidArgument) as error:
        raise UsageError(f"{args.file}: {error}") from error
