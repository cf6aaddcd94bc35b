"""The seam between programs and whoever executes their nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from ..lang.graph import Node
from ..lang.ops import Sampling

ABSTAINED: Final = "abstained"  # how a select ends that appends nothing


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do; asked before a program relies on it."""

    model: str
    max_context: int  # tokens
    has_chat_template: bool
    model_digest: str = ""  # names weights and tokenizer


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """One run of one program: its seed, and the sampling that its nodes inherit."""

    id: str
    seed: int
    sampling: Sampling = Sampling()
    is_streaming: bool = False  # send Delta events
    keeps_tokens: bool = False  # tell the tokens of each gen that is done


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """Tokens and seconds that a node cost; `forced_tokens` of the output were not drawn.

    `drafted_tokens` were guessed and went through the model, of which `accepted_tokens` were
    drawn then.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    forced_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    drafted_tokens: int = 0
    accepted_tokens: int = 0


@dataclass(frozen=True, slots=True)
class NodeMeta:
    """What is known of a finished node besides its value.

    `probabilities` and `scores` are a select's, by choice; probabilities sum to 1. `logprobs`
    are a score's, one a token. `is_emulated`: the backend has no such operation; it asked the
    model, and checked the answer.
    """

    finish_reason: str | None = None
    stop_reason: str | None = None
    usage: NodeUsage = NodeUsage()
    probabilities: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    logprobs: tuple[float, ...] = ()
    is_emulated: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """A gen or select has its prompt and is on its way to the engine."""

    node: int


@dataclass(frozen=True, slots=True)
class Delta:
    """New text of a gen that is still running."""

    node: int
    text: str


@dataclass(frozen=True, slots=True)
class GenTokens:
    """What a gen put into its branch, token for token.

    `tail` is text after the tokens that no token of its own stands for; with `is_healed` they
    replace the last token of the prompt.
    """

    token_ids: tuple[int, ...]
    tail: str = ""
    is_healed: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """A node is finished.

    `text` is what it added to its branch; of a gen or select it is the value as well, unless
    `value` is another text: one without the stop string that was kept. `tokens` are a gen's,
    where the session keeps them.
    """

    node: int
    text: str
    meta: NodeMeta = NodeMeta()
    value: str | None = None
    tokens: GenTokens | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A node failed; `origin` is the node that failed first (itself, or one it depends on)."""

    node: int
    code: str
    message: str
    origin: int


NodeEvent: TypeAlias = Started | Delta | Done | Failed
Listener: TypeAlias = Callable[[Sequence[NodeEvent]], None]


class Session(Protocol):
    """One run on a backend. All calls are thread-safe, and return at once."""

    def submit(self, nodes: Sequence[Node], known: Sequence[Done] = ()) -> None:
        """Add a segment: nodes in order of id, whose edges may point into earlier segments.

        Each submitted node gets exactly one terminal event, Done or Failed. `known` are gens
        and selects of the segment that an earlier run has finished: they are not run again.
        """
        ...

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop these nodes and all that depend on them (Failed, code "cancelled"); idempotent."""
        ...

    def close(self) -> None:
        """Stop everything, give all resources back; no event comes after it. Idempotent."""
        ...


class Backend(Protocol):
    """Executes nodes. Shared by all runs of a process; every method is thread-safe."""

    def capabilities(self) -> Capabilities:
        """Say what the backend can do. Raises: BackendError."""
        ...

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> Session:
        """Start a run. `listener` gets its events in order, in lists, on a thread of the
        backend, and must return quickly; `on_lost` is called once instead if the backend
        dies. Raises: BackendError."""
        ...

    def close(self) -> None:
        """Give everything back; open sessions get `on_lost`. Idempotent."""
        ...
