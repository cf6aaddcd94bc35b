"""A stand-in model that says what a Python function wants: for tests of programs."""

from __future__ import annotations

from ...runtime.config import EngineConfig
from ...runtime.model.scripted import CHATML, Script, scripted_model
from .local import LocalBackend

_NUM_BLOCKS = 4096


class ScriptedBackend(LocalBackend):
    """The real engine over a byte-level model without weights: deterministic, milliseconds.

    `script` is called with the text before an output. A str is what the model says before
    it ends; a mapping gives the probabilities of the next character, "" for the end.
    `template` is "default" for ChatML, another Jinja template, or None for a model without
    roles. `config` has the engine's other settings; its block size is this one's.

    Raises: ValueError, naming the field of a setting.
    """

    def __init__(
        self,
        script: Script,
        *,
        block_size: int = 16,
        num_blocks: int | None = None,
        max_context: int = 4096,
        template: str | None = "default",
        adds_bos: bool = False,
        logits_width: int | None = None,
        config: EngineConfig | None = None,
    ) -> None:
        model = scripted_model(
            script,
            block_size=block_size,
            num_blocks=_NUM_BLOCKS if num_blocks is None else num_blocks,
            max_context=max_context,
            template=CHATML if template == "default" else template,
            adds_bos=adds_bos,
            logits_width=logits_width,
        )
        if config is None:
            config = EngineConfig(block_size=block_size)
        super().__init__(model, config)
