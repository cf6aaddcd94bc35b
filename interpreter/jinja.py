"""Jinja as chat templates expect it: sandboxed, with the helpers that models rely on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.sandbox import ImmutableSandboxedEnvironment

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.parser import Parser

Message = Mapping[str, str]


class _GenerationBlock(Extension):
    """Read `{% generation %}` blocks, which mark a model's own text, as what they hold."""

    tags = {"generation"}  # noqa: RUF012  (jinja's own way of declaring it)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Give the statements inside the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def compile_template(source: str, now: datetime) -> Template:
    """Compile a chat template; `now` is all it ever learns of the time.

    Raises: jinja2.TemplateSyntaxError.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_GenerationBlock, LoopControlExtension],
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = now.strftime
    return environment.from_string(source)


def render(
    template: Template,
    messages: Sequence[Message],
    *,
    bos_token: str,
    eos_token: str,
    add_generation_prompt: bool,
) -> str:
    """Render a talk. Raises: whatever the template raises, by itself or by a mistake in it."""
    return template.render(
        messages=list(messages),
        tools=None,
        documents=None,
        bos_token=bos_token,
        eos_token=eos_token,
        add_generation_prompt=add_generation_prompt,
    )


def _raise_exception(message: str) -> None:
    raise TemplateError(message)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes for HTML and sorts keys; models were trained on neither.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
