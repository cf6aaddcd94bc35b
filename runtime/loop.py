"""The thread that an engine runs on: commands in through a queue, outputs out to sinks."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from .compiling import CompilerThread, Grammars
from .config import EngineConfig
from .engine import Engine
from .errors import EngineDied, RequestError, as_request_error
from .grammar.compiler import GrammarCompiler
from .grammar.disk import DiskCache
from .grammar.disk_vocabulary import open_vocabulary
from .grammar.spec import CompiledGrammar, GrammarSpec
from .grammar.vocabulary import Vocabulary
from .metrics import EngineStats
from .model.interface import Model
from .sequence import Output, Request, ScoreRequest

Sink: TypeAlias = Callable[[Output], None]
CLOSE_S = 0.9  # how long `close` waits for the step in progress, and for the disk

_log = logging.getLogger(__name__)


class _Command(Protocol):
    def __call__(self) -> None: ...


class EngineThread:
    """An engine on its own thread. Every method is thread-safe and returns at once.

    Each submitted request gets exactly one terminal Output, whatever happens. Grammars
    compile on another thread; a request that waits for its own holds up nobody. `on_death`
    is called on the engine's thread if a bug of ours ends that, after each request got its end.
    In `grammar_folder` what grammars cost most is kept for later processes, if the
    configuration says so; without one it is not.
    """

    def __init__(
        self,
        model: Model,
        config: EngineConfig,
        grammars: Grammars | None = None,
        on_death: Callable[[EngineDied], None] | None = None,
        grammar_folder: Path | None = None,
    ) -> None:
        self.model = model
        self._engine = Engine(model, config)
        self._max_waiting = config.max_waiting
        self._disk: DiskCache | None = None
        if grammar_folder is not None and config.is_grammar_cache_on_disk:
            self._disk = DiskCache(grammar_folder)
        self._compiler = CompilerThread(lambda: grammars or self._start_grammars(config))
        self._wake = threading.Condition()
        self._commands: deque[_Command] = deque()
        self._is_closing = False
        self._end = RequestError("cancelled", "the engine is closed")  # for what comes too late
        self._is_dead = False
        self._on_death = on_death
        self._sinks: dict[str, Sink] = {}  # of live requests
        self._compiling: dict[str, Request] = {}
        self._num_faults = 0
        self._thread = threading.Thread(target=self._run, name="plait-engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request | ScoreRequest, sink: Sink) -> None:
        """Serve `request`; `sink` gets its outputs on the engine's thread and must be quick.

        Never raises for a bad request: it gets one terminal Output with `error_code`.
        After `close`, that Output comes at once, on the caller's thread.
        """
        if not self._post(lambda: self._submit(request, sink)):
            self._give(sink, _refusal(request.id, self._end))

    def abort(self, request_id: str) -> None:
        """Cancel a request. Idempotent; of one that is unknown or over, do nothing."""
        self._post(lambda: self._abort(request_id))

    def stats(self) -> EngineStats:
        """Give a snapshot of the counters; those of a running step may be one step old."""
        return self._engine.stats()

    @property
    def num_faults(self) -> int:
        """How often a step raised, and the engine started afresh."""
        return self._num_faults

    def close(self) -> None:
        """Cancel what is live, write what is to be kept, and stop. Idempotent.

        Returns within a second: a step, or writing, that takes longer is left alone.
        """
        end_s = time.monotonic() + CLOSE_S
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self._compiler.close()
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_S)
        if self._disk is not None:
            self._disk.flush(max(0.0, end_s - time.monotonic()))

    def _post(self, command: _Command) -> bool:
        """Hand a command to the loop; False if it is closing."""
        with self._wake:
            if self._is_closing:
                return False
            self._commands.append(command)
            self._wake.notify()
            return True

    def _run(self) -> None:
        """Be the engine's thread; whatever ends it, no request is left without its end."""
        try:
            self._loop()
        except BaseException as e:
            _log.critical("the engine's thread died", exc_info=e)
            death = EngineDied(f"the engine died: {type(e).__name__}: {e}")
            death.__cause__ = e
            self._die(RequestError("internal", str(death)))
            if self._on_death is not None:
                self._on_death(death)

    def _die(self, error: RequestError) -> None:
        self._end, self._is_dead = error, True
        with self._wake:
            self._is_closing = True  # so no command comes after those that are there
        self._end_all()
        while self._commands:
            self._commands.popleft()()  # each submit among them is refused

    def _loop(self) -> None:
        while self._next_commands():
            if self._engine.has_work:
                self._step()
            elif self._engine.repair():
                _log.error("KV blocks were lost; the pool was rebuilt while nothing ran")
        self._deliver(self._engine.fail_all(self._end))
        self._end_all()

    def _next_commands(self) -> bool:
        """Sleep until there is something to do, and do the commands; False to stop."""
        with self._wake:
            while not (self._commands or self._engine.has_work or self._is_closing):
                self._wake.wait()
            num_commands, is_closing = len(self._commands), self._is_closing
        for _ in range(num_commands):
            self._commands.popleft()()
        return not is_closing

    def _step(self) -> None:
        try:
            outputs = self._engine.step()
        except Exception as e:
            self._num_faults += 1
            _log.exception("a step failed; the engine starts afresh")
            error = RequestError("internal", f"the engine failed: {type(e).__name__}: {e}")
            outputs = self._engine.fail_all(error)
        self._deliver(outputs)

    def _submit(self, request: Request | ScoreRequest, sink: Sink) -> None:
        try:
            self._check_new(request)
            if isinstance(request, ScoreRequest) or request.grammar is None:
                self._engine.add(request)
            else:
                self._engine.gate.check(request)  # refuse before compiling for nothing
                self._compile(request, request.grammar)
        except Exception as e:
            self._give(sink, _refusal(request.id, as_request_error(e)))
        else:
            self._sinks[request.id] = sink

    def _check_new(self, request: Request | ScoreRequest) -> None:
        if self._is_dead:
            raise self._end
        if request.id in self._sinks:
            raise RequestError("duplicate_id", f"request {request.id!r} is still running")
        if len(self._compiling) >= self._max_waiting:
            raise RequestError(
                "queue_full", f"{len(self._compiling)} requests wait for their grammars; try again"
            )

    def _compile(self, request: Request, grammar: GrammarSpec) -> None:
        self._compiler.submit(
            self._engine.gate.constraint(request, grammar),
            lambda result: self._post(lambda: self._compiled(request, result)),
        )
        self._compiling[request.id] = request  # last: what is above may raise

    def _compiled(self, request: Request, result: CompiledGrammar | RequestError) -> None:
        if self._compiling.get(request.id) is not request:
            return  # cancelled meanwhile; its id may belong to another by now
        del self._compiling[request.id]
        try:
            if isinstance(result, RequestError):
                raise result
            self._engine.add(request, result)
        except Exception as e:
            self._deliver([_refusal(request.id, as_request_error(e))])

    def _abort(self, request_id: str) -> None:
        if self._compiling.pop(request_id, None) is not None:
            self._deliver([_refusal(request_id, RequestError("cancelled", "cancelled"))])
        elif not self._is_dead:
            self._engine.abort(request_id)

    def _deliver(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            is_last = output.finish_reason is not None
            sinks = self._sinks
            sink = sinks.pop(output.request_id, None) if is_last else sinks.get(output.request_id)
            if sink is not None:
                self._give(sink, output)

    def _give(self, sink: Sink, output: Output) -> None:
        """Call a sink; one that raises is a bug of its owner, and must not stop the others."""
        try:
            sink(output)
        except Exception:
            _log.exception("the sink of request %r raised", output.request_id)

    def _start_grammars(self, config: EngineConfig) -> Grammars:
        """Make the compiler for the model's vocabulary; on the compiler's thread."""
        tokenizer, width = self.model.tokenizer, self.model.runner.limits.logits_width
        tokens, eos_ids, folder = tokenizer.token_bytes, tokenizer.eos_token_ids, None
        if self._disk is None:
            vocabulary = Vocabulary(tokens, eos_ids, width)
        else:
            vocabulary, folder = open_vocabulary(tokens, eos_ids, width, self._disk)
        limits = (config.grammar_timeout_s, config.grammar_max_states)
        return GrammarCompiler(vocabulary, *limits, folder)

    def _end_all(self) -> None:
        self._deliver([_refusal(i, self._end) for i in list(self._sinks)])
        self._compiling.clear()


def _refusal(request_id: str, error: RequestError) -> Output:
    return Output(
        request_id=request_id,
        finish_reason="cancelled" if error.code == "cancelled" else "error",
        error_code=error.code,
        error=str(error),
    )
