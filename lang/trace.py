"""Run a body with stand-ins: the whole graph, and where Python needs a value.

A stand-in may go into text: appended, added to text, or formatted into a str. Every other
use of it ends the trace; the end is a BaseException, which `except Exception` in a body does
not catch. A formatted str is a real one, which Python can read without our knowing: unless the
statement that forms it appends it, the graph has a break there, and is not complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .bodies import complete
from .errors import PlaitError, ProgramError
from .graph import Graph
from .ops import Input
from .standin import Hole, StandIn
from .tracing import MAX_NODES, Stop, TracedState, Tracing
from .where import raised_at

if TYPE_CHECKING:
    from .program import Program


def trace(
    program: Program, arguments: Mapping[str, object], tracing: Tracing | None = None
) -> Graph:
    """Give the graph of `program`; required arguments that are not given become inputs.

    `tracing` is one to record in, for who wants to know more of the trace than its graph.

    Raises: ProgramError if the body records without end, and what the body itself raises.
    """
    tracing = Tracing() if tracing is None else tracing
    inputs = tuple(name for name in program.required if name not in arguments)
    open_ones = {name: StandIn(tracing, (Hole(name, Input(name), tracing),)) for name in inputs}
    try:
        state = TracedState(tracing.tape, tracing)
        result = complete(state, lambda: program.body(state, **arguments, **open_ones))
        tracing.take_result(result)
    except Stop:
        pass
    except PlaitError:
        raise
    except Exception as error:
        if not _is_for_want_of_value(error, tracing, bool(inputs), program.is_async):
            raise
        tracing.note_failure(raised_at(error.__traceback__), error)
    if tracing.tape.is_full:
        last = tracing.tape.nodes[-1].where
        place = "" if last is None else f"{last}: "
        raise ProgramError(
            f"{place}the trace of {program.name} passed {MAX_NODES:,} nodes; "
            "does a loop wait for a value that only a run has?"
        )
    return tracing.graph(program.name, inputs)


def _is_for_want_of_value(
    error: Exception, tracing: Tracing, has_inputs: bool, is_async: bool
) -> bool:
    """Say whether a body's failure follows from a stand-in, or is its own.

    What Python's C code says to a stand-in is TypeError. A str with a sentinel in it can fail
    anything. An async body may look for the event loop, which a trace does not have.
    """
    if isinstance(error, TypeError) and (tracing.reads or has_inputs):
        return True
    is_loopless = is_async and isinstance(error, RuntimeError) and "event loop" in str(error)
    return tracing.has_escaped or is_loopless
