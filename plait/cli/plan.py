"""Count what a run would cost, before a model is asked."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from ..interpreter.plan import plan
from ..interpreter.planning.report import PlannedCall
from ..lang.errors import UsageError
from .target import add_target, check_arguments, load_program, parse_arguments

EXAMPLE = "example: plait plan examples/essay_judge.py:judge --rows essays.jsonl"

EXIT_FAILS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait plan`."""
    add_target(parser)
    parser.add_argument(
        "--rows", metavar="FILE.jsonl", help="a batch: a row a line, a JSON object of arguments"
    )
    parser.add_argument("--model", help="whose tokenizer counts; default: the one that would run")
    parser.add_argument(
        "--output-tokens",
        metavar="N",
        type=int,
        help="what each gen is taken to write; default: as much as it may",
    )
    parser.add_argument("--calls", action="store_true", help="print each call, too")


def execute(args: argparse.Namespace) -> int:
    """Print the plan; give the exit code: 1 if a call would fail."""
    program = load_program(args.target)
    arguments = parse_arguments(program, args.arg)
    rows = None if args.rows is None else list(_rows(args.rows))
    check_arguments(program, {**arguments, **(rows[0] if rows else {})}, is_partial=rows == [])
    made = plan(program, arguments, rows=rows, model=args.model, output_tokens=args.output_tokens)
    print(made)
    if args.calls:
        print("\n".join(["  row   node  prompt  cached  output", *map(_line, made.calls)]))
    return EXIT_FAILS if made.failures else 0


def _line(call: PlannedCall) -> str:
    numbers = f"{call.row:5}  {call.node:5}  {call.prompt_tokens:6}  {call.cached_tokens:6}"
    return f"{numbers}  {call.output_tokens:6}  {call.name}  {call.where}"


def _rows(file: str) -> Iterator[dict[str, object]]:
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"--rows {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--rows {file}: it is not UTF-8") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UsageError(f"--rows {file}, line {number}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise UsageError(f"--rows {file}, line {number}: a row is an object of arguments")
        yield row
