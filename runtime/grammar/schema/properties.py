r"""Sets of characters that ECMA-262 names: `\d`, `\w`, `\s` and the properties of `\p{...}`.

General categories and some binary properties come from Python's own Unicode tables; it has
none of scripts, so those are refused.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Callable

from .. import chars
from ..expr import Ranges

DIGIT: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
WHITE: Ranges = (
    (9, 13), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))

# All else is not assigned, or private, in every version of Unicode so far.
_ASSIGNED = ((0, 0x33FFF), (0xE0000, 0xE01FF))
_PRIVATE = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))

_CATEGORIES = {
    "C": ("Other", "Cc Cf Cn Co Cs"),
    "Cc": ("Control cntrl", "Cc"),
    "Cf": ("Format", "Cf"),
    "Cn": ("Unassigned", "Cn"),
    "Co": ("Private_Use", "Co"),
    "Cs": ("Surrogate", "Cs"),
    "L": ("Letter", "Ll Lm Lo Lt Lu"),
    "LC": ("Cased_Letter", "Ll Lt Lu"),
    "Ll": ("Lowercase_Letter", "Ll"),
    "Lm": ("Modifier_Letter", "Lm"),
    "Lo": ("Other_Letter", "Lo"),
    "Lt": ("Titlecase_Letter", "Lt"),
    "Lu": ("Uppercase_Letter", "Lu"),
    "M": ("Mark Combining_Mark", "Mc Me Mn"),
    "Mc": ("Spacing_Mark", "Mc"),
    "Me": ("Enclosing_Mark", "Me"),
    "Mn": ("Nonspacing_Mark", "Mn"),
    "N": ("Number", "Nd Nl No"),
    "Nd": ("Decimal_Number digit", "Nd"),
    "Nl": ("Letter_Number", "Nl"),
    "No": ("Other_Number", "No"),
    "P": ("Punctuation punct", "Pc Pd Pe Pf Pi Po Ps"),
    "Pc": ("Connector_Punctuation", "Pc"),
    "Pd": ("Dash_Punctuation", "Pd"),
    "Pe": ("Close_Punctuation", "Pe"),
    "Pf": ("Final_Punctuation", "Pf"),
    "Pi": ("Initial_Punctuation", "Pi"),
    "Po": ("Other_Punctuation", "Po"),
    "Ps": ("Open_Punctuation", "Ps"),
    "S": ("Symbol", "Sc Sk Sm So"),
    "Sc": ("Currency_Symbol", "Sc"),
    "Sk": ("Modifier_Symbol", "Sk"),
    "Sm": ("Math_Symbol", "Sm"),
    "So": ("Other_Symbol", "So"),
    "Z": ("Separator", "Zl Zp Zs"),
    "Zl": ("Line_Separator", "Zl"),
    "Zp": ("Paragraph_Separator", "Zp"),
    "Zs": ("Space_Separator", "Zs"),
}
_LONG_NAMES = {long: short for short, (names, _) in _CATEGORIES.items() for long in names.split()}
_BINARY: dict[str, Ranges] = {
    "Any": ((0, chars.LAST),),
    "ASCII": ((0, 0x7F),),
    "ASCII_Hex_Digit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "Hex_Digit": (
        (0x30, 0x39), (0x41, 0x46), (0x61, 0x66),
        (0xFF10, 0xFF19), (0xFF21, 0xFF26), (0xFF41, 0xFF46),
    ),
    "White_Space": chars.union((*chars.difference(WHITE, ((0xFEFF, 0xFEFF),)), (0x85, 0x85))),
}  # fmt: skip
_TESTED: dict[str, Callable[[str], bool]] = {
    "Lowercase": str.islower,
    "Uppercase": str.isupper,
    "XID_Start": lambda c: c != "_" and c.isidentifier(),
    "XID_Continue": lambda c: ("a" + c).isidentifier(),
}
_SHORT_NAMES = {
    "AHex": "ASCII_Hex_Digit", "Hex": "Hex_Digit", "space": "White_Space", "Lower": "Lowercase",
    "Upper": "Uppercase", "XIDS": "XID_Start", "XIDC": "XID_Continue",
}  # fmt: skip


def property_of(name: str) -> Ranges:
    r"""Give the characters of `\p{name}`.

    Raises: LookupError with the reason, if the property is not known.
    """
    key, _, value = name.partition("=")
    if key in ("gc", "General_Category") and value:
        if value in _CATEGORIES or value in _LONG_NAMES:
            return property_of(value)
    elif key in ("sc", "scx", "Script", "Script_Extensions"):
        raise LookupError(rf"\p{{{name}}} is not supported: scripts are not known here")
    elif name in _CATEGORIES or name in _LONG_NAMES:
        short = _LONG_NAMES.get(name, name)
        tables = _tables()
        return chars.union(
            span for part in _CATEGORIES[short][1].split() for span in tables.get(part, ())
        )
    elif name == "Assigned":
        return chars.complement(property_of("Cn"))
    name = _SHORT_NAMES.get(name, name)
    if name in _BINARY:
        return _BINARY[name]
    if name in _TESTED:
        return _tested(name)
    raise LookupError(rf"\p{{{name}}} is not a property that is known here")


@functools.lru_cache(maxsize=1)
def _tables() -> dict[str, Ranges]:
    """Give the characters of each general category. Takes 50 ms, so it is kept."""
    found: dict[str, list[tuple[int, int]]] = {}
    for code, last in _ASSIGNED:
        categories = map(unicodedata.category, map(chr, range(code, last + 1)))
        for name, run in itertools.groupby(categories):
            length = sum(1 for _ in run)
            found.setdefault(name, []).append((code, code + length - 1))
            code += length
    found["Co"].extend(_PRIVATE)
    assigned = (span for name, spans in found.items() if name != "Cn" for span in spans)
    unassigned = chars.complement(chars.union(assigned))
    return {name: tuple(spans) for name, spans in found.items()} | {"Cn": unassigned}


@functools.lru_cache(maxsize=8)
def _tested(name: str) -> Ranges:
    test = _TESTED[name]
    codes = (code for first, last in _ASSIGNED for code in range(first, last + 1))
    return chars.union((code, code) for code in codes if test(chr(code)))
