"""The command line's entry: parse, run, and turn every known error into one line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from .cli import check, diff, doctor, grammar, graph, keys, models, plan, pull, replay, run, serve
from .lang.errors import (
    BackendError,
    InvalidArgument,
    ModelError,
    NodeError,
    PlaitError,
    UsageError,
)
from .lang.graph import Where
from .lang.where import raised_at
from .runtime.errors import EngineDied, LinkError, ModelLoadError, RequestError

KNOWN_ERRORS = (PlaitError, RequestError, ModelLoadError, LinkError, EngineDied)

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the way to the help."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="plait",
        description="Run prompt programs, and serve the models that execute them.",
        epilog="example: plait run examples/hello.py:hello --arg name=Ada",
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for module in (
        run,
        replay,
        serve,
        pull,
        check,
        plan,
        graph,
        diff,
        grammar,
        models,
        keys,
        doctor,
    ):
        name = module.__name__.rsplit(".", 1)[-1]
        summary = (module.__doc__ or "").splitlines()[0]
        sub = commands.add_parser(
            name,
            help=summary,
            description=summary,
            epilog=module.EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)
        sub.add_argument("--debug", action="store_true", help="show the traceback of an error")
        sub.set_defaults(execute=module.execute)
    return parser


def _version() -> str:
    from importlib.metadata import version

    return version("plait")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; give the process's exit code: 0, 1 for a failure, 2 for wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        args = _parser().parse_args(words)
        if args.version:
            print(f"plait {_version()}")
            return 0
        if args.command is None:
            _parser().print_help()
            return EXIT_USAGE
        code: int = args.execute(args)
        return code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader has enough: `plait run ... | head`
        sys.stderr.close()
        return EXIT_FAILURE
    except Exception as error:
        return _report(error, words)


def _report(error: Exception, words: Sequence[str]) -> int:
    """Print what failed, the author's line first if it is in a program; give the exit code."""
    if "--debug" in words:
        raise error
    is_known = isinstance(error, KNOWN_ERRORS)
    text = str(error) if is_known else f"{type(error).__name__}: {error}"
    where = _where(error)
    if where is None or isinstance(error, UsageError):
        text = f"plait: {' '.join(text.split())}"
    elif not re.match(r"[^\s:]+\.py:\d+: ", text):
        text = f"{where}: {text}"
    hint = "" if is_known or isinstance(error, OSError) else " (--debug shows the traceback)"
    print(f"{text}{hint}", file=sys.stderr)
    is_usage = isinstance(error, UsageError) or (
        isinstance(error, InvalidArgument) and where is None
    )
    return EXIT_USAGE if is_usage else EXIT_FAILURE


def _where(error: Exception) -> Where | None:
    """Give the line of the author's program that an error comes from, None if of no program."""
    if isinstance(error, NodeError):
        return error.where
    if isinstance(error, BackendError | ModelError):
        return None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Where(error.filename, error.lineno)
    return raised_at(error.__traceback__)


if __name__ == "__main__":
    sys.exit(main())
