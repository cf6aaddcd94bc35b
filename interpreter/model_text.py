"""What text becomes for one model: its tokenizer and its context, without its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..lang.checks.subject import ModelFacts
from ..lang.errors import InvalidArgument, ModelError

if TYPE_CHECKING:
    from ..runtime.model.interface import Model, Tokenizer
    from .backend import Backend

BLOCK_SIZE = 16  # of the KV pool, where no engine says another


@dataclass(frozen=True, slots=True)
class ModelText:
    """A model as far as text goes."""

    name: str
    tokenizer: Tokenizer
    max_context: int  # tokens
    block_size: int = BLOCK_SIZE  # tokens

    def facts(self) -> ModelFacts:
        """Give what the rules of a check ask for."""
        encode = self.tokenizer.encode
        has_template = self.tokenizer.chat_template is not None
        return ModelFacts(self.name, self.max_context, has_template, lambda text: len(encode(text)))


def text_of_model(name: str) -> ModelText:
    """Read the tokenizer and the context of a pulled model, a GGUF file or a model folder.

    Raises: ModelError.
    """
    # Here, because a check without a model does without the runtime.
    from ..runtime.config import EngineConfig
    from ..runtime.errors import ModelLoadError
    from ..runtime.load.store import Store, default_home
    from ..runtime.load.weights import opened
    from ..runtime.model.config import read_config
    from ..runtime.model.limits import choose_context
    from ..runtime.model.tokenizer import load_tokenizer

    try:
        path = Store(default_home()).resolve(name)
        with opened(path) as weights:
            max_context = choose_context(read_config(weights.config), EngineConfig())
        return ModelText(path.name, load_tokenizer(path), max_context)
    except ModelLoadError as error:
        raise ModelError(str(error)) from error


def text_of_backend(backend: Backend) -> ModelText:
    """Give the text side of a backend whose model is in this process.

    Raises: InvalidArgument for one whose model is elsewhere.
    """
    model: Model | None = getattr(backend, "model", None)
    if model is None:
        raise InvalidArgument(
            f"{type(backend).__name__} has its model in another process; pass model=NAME, whose "
            "tokenizer is read here"
        )
    limits = model.runner.limits
    return ModelText(model.name, model.tokenizer, limits.max_context, limits.block_size)
