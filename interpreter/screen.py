"""What need not be sent: a node whose constraint is none, or lacks what it is to capture."""

from __future__ import annotations

import functools

from ..lang.graph import Node
from ..lang.ops import Constraint, Gen, GrammarText
from ..lang.options import nearest
from ..lang.words import spell
from .backend import Failed
from .schema_values import Fault, in_part, schema_fault, schemas_of

NUM_GRAMMARS = 256  # whose names are kept


def refusal(node: Node) -> Failed | None:
    """Give the failure of a node that the client's side can refuse by itself."""
    if not isinstance(node.op, Gen) or node.op.constraint is None:
        return None
    fault = constraint_fault(node.op.constraint, node.op.captures)
    if fault is None:
        return None
    return Failed(node.id, fault.code, f"{spell(node.op)}: {fault.reason}", node.id)


def constraint_fault(constraint: Constraint, captures: tuple[str, ...] = ()) -> Fault | None:
    """Say what is wrong with a constraint, as far as is known here."""
    if constraint.schema is not None:
        return schema_fault(constraint.schema)
    grammar = constraint.grammar
    if grammar is None:
        return None
    for path, schema in schemas_of(grammar):
        fault = schema_fault(schema)
        if fault is not None:
            return Fault(fault.code, in_part(path, fault.reason))
    return _name_fault(grammar, captures) if captures else None


@functools.lru_cache(NUM_GRAMMARS)
def _name_fault(grammar: GrammarText, captures: tuple[str, ...]) -> Fault | None:
    # Here, because it needs the runtime, which `import plait` does without.
    from ..runtime.errors import RequestError
    from ..runtime.grammar.split import capturable
    from .lowering import text_spec

    try:
        known = capturable(text_spec(grammar))
    except RequestError as error:
        return Fault(error.code, str(error))
    for name in captures:
        if name not in known:
            what = f"captures: no rule, terminal or part is named {name}"
            reason = f"{what}{nearest([name], known)}; the names are {', '.join(known)}"
            return Fault("bad_grammar", reason)
    return None
