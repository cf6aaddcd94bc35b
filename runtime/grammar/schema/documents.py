"""A schema's places: every subschema by its address, and what references lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin

from ...errors import RequestError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = dict[str, Json]

# Where subschemas stand: directly, in a list, or as the values of an object.
DIRECT = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "contains",
    "unevaluatedItems", "additionalItems", "not", "if", "then", "else", "contentSchema",
)  # fmt: skip
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
NAMED = (
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
)  # fmt: skip
# Beside a reference they change nothing.
_SILENT = frozenset(("title", "description", "default", "examples", "$comment", "deprecated"))
# Drafts in which `$ref` hides what stands beside it.
_HIDING = re.compile(r"^https?://json-schema\.org/draft-0[1-7]/")


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """One subschema at its place. Made by `Documents`: one object for each place and scope.

    `scope`: the resources entered on the way that have dynamic anchors, outermost first.
    """

    value: bool | Object
    base: str  # URI of its resource
    pointer: str  # from the root of its document
    scope: tuple[str, ...]
    documents: Documents
    options: list[Schema] | None = None  # of one that `any_of` made

    @property
    def keywords(self) -> Object:
        """Give its keywords; none for `true` and `false`."""
        if isinstance(self.value, bool):
            return {}
        if "$ref" in self.value and self.documents.hides_siblings:
            return {"$ref": self.value["$ref"]}
        return self.value

    @property
    def is_reference(self) -> bool:
        """True where it says nothing but `$ref`."""
        keywords = self.keywords
        return "$ref" in keywords and all(k == "$ref" or k in _SILENT for k in keywords)

    def inside(self, *path: str | int) -> Schema:
        """Give the subschema at `path` from here."""
        value: Json = cast("Json", self.value)
        for step in path:
            value = value[step]  # type: ignore[index]  # there by the path
        return self.documents.place(value, self.base, _join(self.pointer, path), self.scope)

    def __str__(self) -> str:
        return "#" + self.pointer


class Documents:
    """A schema, the schemas that it may refer to, and all their places.

    Raises: RequestError (bad_grammar) with the place of what is not a schema.
    """

    def __init__(self, root: Json, registry: Mapping[str, Json]) -> None:
        self._roots: dict[str, tuple[Json, str]] = {}  # resource URI -> (value, pointer)
        self._anchors: dict[str, tuple[Json, str, str]] = {}  # URI#name -> value, base, pointer
        self._made: dict[tuple[Schema, ...], Schema] = {}
        self._dynamic: set[str] = set()  # URI#name of the dynamic ones
        self._places: dict[tuple[int, str, str, tuple[str, ...]], Schema] = {}
        dialect = root.get("$schema") if isinstance(root, dict) else None
        self.hides_siblings = bool(_HIDING.match(dialect)) if isinstance(dialect, str) else False
        for uri, document in registry.items():
            self._index(document, urldefrag(uri)[0], "")
        base = _own_uri(root, "")
        self._index(root, "", "")
        self.root = self._enter(root, base, "", ())
        self.nothing = self._intern(False, "", "/", ())  # what no value matches

    def place(self, value: Json, base: str, pointer: str, scope: tuple[str, ...]) -> Schema:
        """Give the schema `value` that stands at `pointer` under the resource `base`."""
        own = _own_uri(value, base)
        if own != base:
            return self._enter(value, own, pointer, scope)
        return self._intern(value, base, pointer, scope)

    def any_of(self, options: list[Schema]) -> Schema:
        """Give a schema that is matched where one of `options` is."""
        key = tuple(options)
        if key not in self._made:
            first = options[0]
            value: Object = {"anyOf": []}
            self._made[key] = Schema(value, first.base, first.pointer, first.scope, self, options)
        return self._made[key]

    def follow(self, schema: Schema, keyword: str) -> Schema:
        """Give what a `$ref`, `$dynamicRef` or `$recursiveRef` of `schema` leads to.

        Raises: RequestError (bad_grammar) if there is nothing.
        """
        reference = schema.keywords[keyword]
        if not isinstance(reference, str):
            raise bad_schema(schema, keyword, "a reference is a text")
        # `urljoin` does not know that a URN can be joined with a fragment.
        is_local = reference.startswith("#")
        uri = schema.base + reference if is_local else urljoin(schema.base, reference)
        target = self._find(uri) or self._find_dialect(uri)
        if target is None:
            hint = (
                "nothing is fetched, so put it under $defs or into registry="
                if urldefrag(reference)[0]
                else "there is no such place"
            )
            raise bad_schema(schema, keyword, f"cannot resolve {reference!r}: {hint}")
        value, base, pointer = target
        if keyword != "$ref":
            value, base, pointer = self._dynamic_target(uri, schema, target)
        return self._enter(value, base, pointer, schema.scope)

    def _dynamic_target(
        self, uri: str, schema: Schema, target: tuple[Json, str, str]
    ) -> tuple[Json, str, str]:
        """Give the outermost place in scope with the same dynamic anchor."""
        resource, name = urldefrag(uri)
        if f"{resource}#{name}" not in self._dynamic:
            return target
        for outer in schema.scope:
            if f"{outer}#{name}" in self._dynamic:
                return self._anchors[f"{outer}#{name}"]
        return target

    def _enter(self, value: Json, base: str, pointer: str, scope: tuple[str, ...]) -> Schema:
        has_dynamic = any(key.startswith(base + "#") for key in self._dynamic)
        if has_dynamic and base not in scope:
            scope = (*scope, base)
        return self._intern(value, base, pointer, scope)

    def _intern(self, value: Json, base: str, pointer: str, scope: tuple[str, ...]) -> Schema:
        if not isinstance(value, bool | dict):
            message = f"schema: #{pointer} is {value!r:.40}: a schema is an object, true or false"
            raise RequestError("bad_grammar", message)
        key = (id(value) if isinstance(value, dict) else int(value), base, pointer, scope)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = Schema(value, base, pointer, scope, self)
        return found

    def _index(self, root: Json, base: str, pointer: str) -> None:
        """Note the resources and anchors of a document."""
        self._roots.setdefault(base, (root, pointer))
        pending = [(root, base, pointer)]
        while pending:
            value, base, pointer = pending.pop()
            if not isinstance(value, dict):
                continue
            own = _own_uri(value, base)
            if own != base:
                base = own
                self._roots[base] = (value, pointer)
            name = value.get("$id", value.get("id"))
            if isinstance(name, str) and name.startswith("#"):  # an anchor, up to draft 7
                self._anchors[base + name] = (value, base, pointer)
            for keyword in ("$anchor", "$dynamicAnchor"):
                name = value.get(keyword)
                if isinstance(name, str):
                    self._anchors[f"{base}#{name}"] = (value, base, pointer)
                    if keyword == "$dynamicAnchor":
                        self._dynamic.add(f"{base}#{name}")
            if value.get("$recursiveAnchor") is True:
                self._anchors[f"{base}#"] = (value, base, pointer)
                self._dynamic.add(f"{base}#")
            pending.extend((v, base, _join(pointer, path)) for path, v in subschemas(value))

    def _find_dialect(self, uri: str) -> tuple[Json, str, str] | None:
        """Look among the meta-schemas of JSON Schema itself, which everybody may refer to."""
        resource = urldefrag(uri)[0]
        if not resource.startswith(("https://json-schema.org/", "http://json-schema.org/")):
            return None
        from jsonschema_specifications import REGISTRY

        found = REGISTRY.get(resource) or REGISTRY.get(resource + "#")
        if found is None:
            return None
        self._index(cast("Json", found.contents), resource, "")
        return self._find(uri)

    def _find(self, uri: str) -> tuple[Json, str, str] | None:
        resource, fragment = urldefrag(uri)
        if f"{resource}#{fragment}" in self._anchors and fragment:
            return self._anchors[f"{resource}#{fragment}"]
        found = self._roots.get(resource)
        if found is None:
            return None
        value, pointer = found
        base = resource
        if fragment and not fragment.startswith("/"):
            return None
        for step in unquote(fragment).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            value, pointer = _child(value, step), f"{pointer}/{_escape(step)}"
            if value is None:
                return None
            base = _own_uri(value, base)
        return value, base, pointer


def subschemas(value: Object) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Give the subschemas directly inside, each with its path."""
    for keyword, inner in value.items():
        if keyword in DIRECT and isinstance(inner, bool | dict):
            yield (keyword,), inner
        elif keyword in LISTED and isinstance(inner, list):
            yield from (((keyword, i), item) for i, item in enumerate(inner))
        elif keyword in NAMED and isinstance(inner, dict):
            for name, item in inner.items():
                if not (keyword == "dependencies" and isinstance(item, list)):
                    yield (keyword, name), item


def bad_schema(schema: Schema, keyword: str, reason: str) -> RequestError:
    """Say what is wrong with a keyword, and where it stands."""
    return RequestError("bad_grammar", f"schema: {schema}/{keyword}: {reason}")


def _own_uri(value: Json, base: str) -> str:
    if isinstance(value, dict):
        own = value.get("$id", value.get("id"))
        if isinstance(own, str) and not own.startswith("#"):
            return urldefrag(urljoin(base, own))[0]
    return base


def _child(value: Json, step: str) -> Json:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


def _join(pointer: str, path: tuple[str | int, ...]) -> str:
    return pointer + "".join(f"/{_escape(str(step))}" for step in path)


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
