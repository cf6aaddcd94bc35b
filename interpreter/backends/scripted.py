"""A stand-in model that says what a Python function wants: for tests of programs."""

from __future__ import annotations

from ...lang.errors import InvalidArgument
from ...runtime.config import EngineConfig
from ...runtime.model.interface import Model
from ...runtime.model.scripted import CHATML, Script, scripted_model
from .local import LocalBackend

DEFAULT_CONTEXT = 4096  # tokens
DEFAULT_CONTEXTS = 16  # that the pool holds


class ScriptedBackend(LocalBackend):
    """The real engine over a byte-level model without weights: deterministic, milliseconds.

    `script` is called with the text before an output. A str is what the model says before
    it ends; a mapping gives the probabilities of the next character, "" for the end.
    `template` is "default" for ChatML, another Jinja template, or None for a model without
    roles; `adds_bos` says whether a text starts with a token of its own.

    Raises: InvalidArgument, if `script` is not a function.
    """

    def __init__(
        self,
        script: Script,
        config: EngineConfig | None = None,
        *,
        template: str | None = "default",
        adds_bos: bool = False,
    ) -> None:
        config = config or EngineConfig()
        model = configured_model(script, config, template=template, adds_bos=adds_bos)
        super().__init__(model, config)


def configured_model(
    script: Script,
    config: EngineConfig,
    *,
    template: str | None = "default",
    adds_bos: bool = False,
) -> Model:
    """Give the scripted model whose context, pool and blocks are those of `config`.

    Raises: InvalidArgument, if `script` is not a function.
    """
    if not callable(script):
        raise InvalidArgument(f"script={script!r}: pass a function of the text so far")
    if template is not None and not isinstance(template, str):
        raise InvalidArgument(f"template={template!r}: pass a Jinja template, or None")
    max_context = config.max_context or DEFAULT_CONTEXT
    num_tokens = config.kv_cache_tokens or DEFAULT_CONTEXTS * max_context
    return scripted_model(
        script,
        block_size=config.block_size,
        num_blocks=-(-num_tokens // config.block_size),
        max_context=max_context,
        template=CHATML if template == "default" else template,
        adds_bos=adds_bos,
    )
