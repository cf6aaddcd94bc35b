"""All places of a schema that a value can get to, looked at before the first token.

What is no schema, refers to nothing, or is one of its own parts is refused here, so that
nothing is found wrong in the middle of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .documents import DIRECT, LISTED, NAMED, Schema, bad_schema, subschemas
from .read import read_count, read_names, read_number, read_object, read_text
from .reader import REFERENCES, Reader

_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_READERS: Mapping[str, Callable[[Schema, str], object]] = {
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), read_count),
    **dict.fromkeys(("minProperties", "maxProperties"), read_count),
    **dict.fromkeys(("minContains", "maxContains"), read_count),
    **dict.fromkeys(("minimum", "maximum", "multipleOf", "divisibleBy"), read_number),
    **dict.fromkeys(("pattern", "format", "$ref", "$dynamicRef"), read_text),
    **dict.fromkeys(NAMED, read_object),
}


def check_schema(reader: Reader) -> None:
    """Look at every place. Raises: RequestError (bad_grammar) with the place and the reason."""
    places: list[Schema] = []
    for schema in places_of(reader):
        reader.languages.budget.check_time(f"the schema at {schema}")
        _check_keywords(reader, schema)
        places.append(schema)
    _check_cycles(reader, places)


def places_of(reader: Reader) -> Iterator[Schema]:
    """Give every place that a value can get to, each once.

    Raises: RequestError (bad_grammar) for a reference that leads nowhere.
    """
    root = reader.documents.root
    seen, pending = {root}, [root]
    while pending:
        schema = pending.pop()
        yield schema
        for other in _parts(reader, schema):
            if other not in seen:
                seen.add(other)
                pending.append(other)


def _check_keywords(reader: Reader, schema: Schema) -> None:
    keywords = schema.keywords
    for keyword, value in keywords.items():
        read = _READERS.get(keyword)
        if read is not None and not (keyword == "dependencies" and isinstance(value, list)):
            read(schema, keyword)
        elif keyword in DIRECT and keyword not in LISTED and not isinstance(value, bool | dict):
            raise bad_schema(schema, keyword, "a schema is expected")
        elif keyword in ("allOf", "anyOf", "oneOf"):
            reader.options(schema, keyword)
    if isinstance(keywords.get("required"), list):
        read_names(schema, "required")
    if "pattern" in keywords:
        reader.pattern(schema, "pattern", read_text(schema, "pattern"))
    if "patternProperties" in keywords:
        for source in read_object(schema, "patternProperties"):
            reader.pattern(schema, "patternProperties", source)
    if "type" in keywords:
        reader.types(schema)


def _parts(reader: Reader, schema: Schema) -> Iterator[Schema]:
    """Give what stands inside, but for definitions: those count where they are referred to."""
    for path, _ in subschemas(schema.keywords):
        if path[0] not in ("$defs", "definitions", "contentSchema"):
            yield schema.inside(*path)
    yield from _targets(reader, schema)


def _targets(reader: Reader, schema: Schema) -> Iterator[Schema]:
    for keyword in REFERENCES:
        if keyword in schema.keywords:
            yield reader.documents.follow(schema, keyword)


def _same_value(reader: Reader, schema: Schema) -> Iterator[Schema]:
    """Give the schemas that the same value is held against."""
    for path, _ in subschemas(schema.keywords):
        if path[0] in _IN_PLACE:
            yield schema.inside(*path)
    yield from _targets(reader, schema)


def _check_cycles(reader: Reader, places: list[Schema]) -> None:
    done: set[Schema] = set()
    for start in places:
        if start in done:
            continue
        path = {start: None}
        iterators = [_same_value(reader, start)]
        while iterators:
            schema = next(iterators[-1], None)
            if schema is None:
                iterators.pop()
                done.add(path.popitem()[0])
            elif schema in path:
                raise bad_schema(schema, "$ref", "the schema is one of its own parts")
            elif schema not in done:
                path[schema] = None
                iterators.append(_same_value(reader, schema))
