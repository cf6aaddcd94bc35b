"""The formats of JSON Schema that are regular, as expressions over a string's characters.

Nothing is let in that a format forbids. Left out on purpose (but see `is_wide`):

- times: the leap second (23:59:60), which Python's datetime does not know; the year 0000;
- host names, and so the domains of e-mail addresses: labels with hyphens in the third and
  fourth place, such as xn--zca: whether they are valid is decided by Punycode tables;
- e-mail addresses: address literals other than [1.2.3.4] and [IPv6:...].

`regex`, `iri`, `iri-reference`, `idn-email`, `idn-hostname` and unknown formats are None: a
check at the end judges them, or nobody does.
"""

from __future__ import annotations

import functools

from ..expr import ANY, Both, Concat, Expr, Repeat, Union, literal
from ..regex import parse

# Dates and times (RFC 3339).
_YEAR = r"(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_FOURS = r"(?:0[48]|[2468][048]|[13579][26])"  # 04 to 96, each fourth
_LEAP_YEAR = rf"(?:[0-9]{{2}}{_FOURS}|{_FOURS}00)"
_DAY = r"(?:0[1-9]|1[0-9]|2[0-8])"
_MONTH_DAY = rf"(?:(?:0[1-9]|1[0-2])-{_DAY}|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_DATE = rf"(?:{_YEAR}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_MINUTE = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_ZONE = rf"(?:\.[0-9]+)?(?:[Zz]|[+-]{_HOUR_MINUTE})"
_TIME = rf"{_HOUR_MINUTE}:[0-5][0-9]{_ZONE}"
_WIDE_DATE = rf"(?:[0-9]{{4}}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29|0000-02-29)"
_WIDE_TIME = rf"{_HOUR_MINUTE}:(?:[0-5][0-9]|60){_ZONE}"
_SECONDS = r"[0-9]+S"
_MINUTES = rf"[0-9]+M(?:{_SECONDS})?"
_HOURS = rf"[0-9]+H(?:{_MINUTES})?"
_CLOCK = rf"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DAYS = r"[0-9]+D"
_MONTHS = rf"[0-9]+M(?:{_DAYS})?"
_YEARS = rf"[0-9]+Y(?:{_MONTHS})?"
_DURATION = rf"P(?:(?:{_DAYS}|{_MONTHS}|{_YEARS})(?:{_CLOCK})?|{_CLOCK}|[0-9]+W)"

# Addresses (RFC 1123, 2673, 4291, 5321); a label has 63 characters at most.
_LABEL = (
    r"[A-Za-z0-9](?:[A-Za-z0-9]|[A-Za-z0-9-](?:[A-Za-z0-9-]?"
    r"|(?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{0,58})[A-Za-z0-9])?"
)
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL})*"
_WIDE_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_WIDE_HOSTNAME = rf"{_WIDE_LABEL}(?:\.{_WIDE_LABEL})*"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_GROUP = r"[0-9A-Fa-f]{1,4}"
_LAST_GROUPS = rf"(?:{_GROUP}:{_GROUP}|{_IPV4})"


def _ipv6() -> str:
    """Give all forms of RFC 3986: `::` stands for one group of zeros or more."""
    forms = [rf"(?:{_GROUP}:){{6}}{_LAST_GROUPS}", rf"::(?:{_GROUP}:){{5}}{_LAST_GROUPS}"]
    for num_before in range(1, 8):
        before = rf"(?:(?:{_GROUP}:){{0,{num_before - 1}}}{_GROUP})?::"
        num_pairs = 5 - num_before
        after = rf"(?:{_GROUP}:){{{num_pairs}}}{_LAST_GROUPS}" if num_pairs >= 0 else ""
        forms.append(before + (after or (_GROUP if num_before == 6 else "")))
    return f"(?:{'|'.join(forms)})"


_IPV6 = _ipv6()
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])*")'
_ADDRESS_LITERAL = rf"\[(?:{_IPV4}|IPv6:{_IPV6})\]"
_WIDE_ADDRESS_LITERAL = r"\[[!-Z^-~]+\]"

# References (RFC 3986, 6570, 6901).
_ESCAPED = r"%[0-9A-Fa-f]{2}"
_NAME_CHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=-]|{_ESCAPED})"
_PATH_CHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_ESCAPED})"
_FUTURE = r"v[0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+"
_HOST = rf"(?:{_NAME_CHAR}*|\[(?:{_IPV6}|{_FUTURE})\])"
_AUTHORITY = rf"(?:(?:{_NAME_CHAR}|:)*@)?{_HOST}(?::[0-9]*)?"
_SEGMENTS = rf"(?:/{_PATH_CHAR}*)*"
_ROOTED = rf"//{_AUTHORITY}{_SEGMENTS}|/(?:{_PATH_CHAR}+{_SEGMENTS})?"
_END = rf"(?:\?(?:{_PATH_CHAR}|[/?])*)?(?:#(?:{_PATH_CHAR}|[/?])*)?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{_ROOTED}|{_PATH_CHAR}+{_SEGMENTS})?{_END}"
_FIRST_CHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|{_ESCAPED})"  # no colon
_RELATIVE = rf"(?:{_ROOTED}|{_FIRST_CHAR}+{_SEGMENTS})?{_END}"
_VARIABLE_CHAR = rf"(?:[A-Za-z0-9_]|{_ESCAPED})"
_VARIABLE = rf"{_VARIABLE_CHAR}(?:\.?{_VARIABLE_CHAR})*(?::[1-9][0-9]{{0,3}}|\*)?"
_TEMPLATE = (
    r"(?:[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\uffef]"
    r"|[\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd\U00040000-\U0004fffd]"
    r"|[\U00050000-\U0005fffd\U00060000-\U0006fffd\U00070000-\U0007fffd\U00080000-\U0008fffd]"
    r"|[\U00090000-\U0009fffd\U000a0000-\U000afffd\U000b0000-\U000bfffd\U000c0000-\U000cfffd]"
    r"|[\U000d0000-\U000dfffd\U000e1000-\U000efffd\U000f0000-\U000ffffd\U00100000-\U0010fffd]"
    rf"|{_ESCAPED}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"

_REGEXES = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "duration": _DURATION,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "uri": _URI,
    "uri-reference": rf"{_URI}|{_RELATIVE}",
    "uri-template": _TEMPLATE,
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
}


_WIDE_REGEXES = {
    "date": _WIDE_DATE,
    "time": _WIDE_TIME,
    "date-time": rf"{_WIDE_DATE}[Tt]{_WIDE_TIME}",
}


@functools.lru_cache(maxsize=64)
def format_language(name: str, is_wide: bool = False) -> Expr | None:
    """Give the texts of a format; None for one that only a check at the end can judge.

    With `is_wide` nothing is left out, but more may be let in: for the negation.
    """
    if name == "hostname":
        return _hostname(is_wide)
    if name == "email":
        address = parse(_WIDE_ADDRESS_LITERAL if is_wide else _ADDRESS_LITERAL)
        domain = Union((_hostname(is_wide), address))
        return Concat((_shorter_than(65, _LOCAL), literal("@"), domain))
    regex = (_WIDE_REGEXES if is_wide else _REGEXES).get(name, _REGEXES.get(name))
    return None if regex is None else parse(regex)


def _hostname(is_wide: bool) -> Expr:
    return _shorter_than(254, _WIDE_HOSTNAME if is_wide else _HOSTNAME)


def _shorter_than(length: int, regex: str) -> Expr:
    return Both((Repeat(ANY, 0, length - 1), parse(regex)))
