"""The engine: requests in, outputs out, one step at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from .admission import Gate
from .audit import check_engine
from .cache.blocks import BlockPool
from .cache.radix import RadixCache
from .config import EngineConfig
from .drawing import Draw, Drawer, Prepared, shares
from .errors import InvariantError, RequestError, as_request_error
from .generation import Generation, Progress
from .grammar.spec import CompiledGrammar
from .job import Job
from .metrics import Counters, EngineStats, snapshot
from .model.interface import Logits, Model
from .plan import Chunk, Plan
from .prepare import to_batch
from .scheduler import Scheduler
from .scoring import Scorer, ScoreSheet
from .sequence import FinishReason, Output, Request, ScoreRequest
from .speculation.planner import Speculator


class Engine:
    """Serves requests on one model. One thread calls it; nothing here blocks but the model.

    Each request that `add` accepts gets exactly one terminal Output from `step`.
    """

    def __init__(
        self, model: Model, config: EngineConfig, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.model = model
        self.config = config
        self.gate = Gate(model, config)
        self._clock = clock
        self._counters = Counters()
        self._drawer = Drawer(model.tokenizer)
        self._speculator = Speculator(model, config, self._counters)
        self._outputs: list[Output] = []  # not given yet; kept over a step that breaks
        self._start()

    @property
    def has_work(self) -> bool:
        """True if a step would do something."""
        return bool(self._jobs or self._outputs)

    def add(self, request: Request | ScoreRequest, grammar: CompiledGrammar | None = None) -> None:
        """Accept a request.

        `grammar` must be compiled from `gate.constraint(request, ...)`: where the output spells
        the end of the prompt anew, these bytes come first in it.

        Raises: RequestError if it is refused; then it gets no Output.
        """
        if request.id in self._jobs:
            raise RequestError("duplicate_id", f"request {request.id!r} is still running")
        self.gate.check(request)
        border = self.gate.border(request)
        self.gate.check_queue(self._num_queued)
        work: Generation | ScoreSheet
        if isinstance(request, ScoreRequest):
            work = self._scorer.sheet(request, self.gate.namespace(request))
            sequences = self.gate.scored(request, work.spans())
            progress = Progress(finish_reason=None if sequences else "stop")
        else:
            work = self.gate.generation(request, grammar, border)
            sequences = (self.gate.sequence(request, border),)
            progress = work.begin()
        job = self._jobs[request.id] = Job.start(request, sequences, work, self._clock())
        self._num_queued += 1
        for sequence in sequences:
            self._scheduler.waiting.append(sequence)
        self._grow(job, progress)

    def abort(self, request_id: str) -> None:
        """Cancel a request at the next step; of one that is unknown or over, do nothing."""
        job = self._jobs.get(request_id)
        if job is not None and not job.is_aborted:
            job.is_aborted = True
            self._aborted.append(job)

    def step(self) -> list[Output]:
        """Schedule, run, commit. Raises nothing for a user's fault or a failing model."""
        self._apply_aborts()
        plan = self._scheduler.schedule()
        self._counters.num_preemptions += len(plan.preempted)
        if plan.stuck is not None:
            self._fail(self._jobs[plan.stuck.request_id], self.gate.pool_exceeded())
        elif plan.chunks:
            self._note_start(plan)
            self._speculator.extend(plan, self._jobs, self._scheduler)
            self._run(plan)
        elif self._jobs:
            raise InvariantError(f"{len(self._jobs)} requests wait and none can start")
        return self._take_outputs()

    def fail_all(self, error: RequestError) -> list[Output]:
        """End every live request with `error`, and start afresh with an empty cache.

        What a step that raised had brought comes first.
        """
        now_s = self._clock()
        self._outputs.extend(job.failure(error, now_s) for job in self._jobs.values())
        self._counters.num_failed += len(self._jobs)
        self._start()
        return self._take_outputs()

    def repair(self) -> bool:
        """With nothing running, set blocks right that were lost; True if there were any."""
        num_held = self._pool.num_blocks - self._pool.num_free - self._cache.num_blocks
        if self._jobs or (num_held == 0 and self._cache.num_locked == 0):
            return False
        self._counters.num_repairs += 1
        self._start()
        return True

    def reset_cache(self) -> None:
        """Forget every cached prefix. Raises: RequestError while requests run."""
        if self._jobs:
            raise RequestError("invalid_request", f"{len(self._jobs)} requests run; try later")
        self._cache.reset()

    def stats(self) -> EngineStats:
        """Give a snapshot of the counters."""
        scheduler = self._scheduler
        num_live = len(scheduler.running), len(scheduler.waiting)
        return snapshot(self._counters, self._pool, self._cache, *num_live)

    def check(self) -> None:
        """Raise InvariantError unless every block and lock is accounted for. O(pool)."""
        sequences = [s for job in self._jobs.values() for s in job.sequences]
        check_engine(self._pool, self._cache, sequences)

    def _take_outputs(self) -> list[Output]:
        outputs, self._outputs = self._outputs, []
        return outputs

    def _start(self) -> None:
        limits = self.model.runner.limits
        self._pool = BlockPool(limits.num_blocks)
        self._cache = RadixCache(self._pool, limits.block_size)
        self._scheduler = Scheduler(self.config, self._pool, self._cache)
        self._scorer = Scorer(self.model, self.config, self._cache.scores)
        self._jobs: dict[str, Job] = {}
        self._aborted: list[Job] = []
        self._num_queued = 0

    def _apply_aborts(self) -> None:
        """End the requests that were cancelled since the last step: the only place that does."""
        aborted, self._aborted = self._aborted, []
        for job in aborted:
            if self._jobs.get(job.request.id) is job:
                self._fail(job, RequestError("cancelled", "cancelled"))

    def _note_start(self, plan: Plan) -> None:
        now_s = self._clock()
        for chunk in plan.chunks:
            job = self._jobs[chunk.sequence.request_id]
            if job.started_s is None:
                job.started_s = now_s
                self._num_queued -= 1

    def _run(self, plan: Plan) -> None:
        """Run the model on the plan, and take what the step brought."""
        self._counters.num_steps += 1
        try:
            logits = self.model.runner.run(to_batch(plan, self._cache.block_size))
        except Exception as e:
            self._fail_chunks(plan, e)
            self._scheduler.fail(plan)
            return
        self._scheduler.commit(plan)
        self._counters.num_computed_tokens += sum(c.num_rows for c in plan.chunks)
        self._commit(plan, logits)
        self._scheduler.take_back(plan)

    def _fail_chunks(self, plan: Plan, cause: Exception) -> None:
        error = RequestError("internal", f"the model failed: {type(cause).__name__}: {cause}")
        for request_id in dict.fromkeys(chunk.sequence.request_id for chunk in plan.chunks):
            self._fail(self._jobs[request_id], error, is_kept=False)

    def _commit(self, plan: Plan, logits: Logits) -> None:
        """Hand each chunk its rows of the logits.

        The masks come first: on a device `run` only launches the pass, and it is who looks at
        the logits that waits for it.
        """
        draws, scores = shares(plan, self._jobs)
        rows = self._drawer.prepare(draws)
        for score in scores:
            self._score(score.chunk, logits[score.rows])
        while draws:
            draws = self._draw(draws, rows, logits)
            rows = self._drawer.prepare(draws)

    def _score(self, chunk: Chunk, logits: Logits) -> None:
        """Note the log-probabilities of one text; give the answer once all texts are done."""
        sequence = chunk.sequence
        job = self._jobs.get(sequence.request_id)
        if job is None or not isinstance(job.work, ScoreSheet):  # another of its texts failed
            return
        try:
            self._scorer.read(chunk, job.work, logits)
        except RequestError as e:
            self._fail(job, e)
            return
        if chunk.end < sequence.num_needed:
            return
        self._scheduler.release(sequence)
        job.num_open -= 1
        if not job.num_open:
            self._end(job, "", "stop")

    def _draw(self, draws: list[Draw], rows: list[Prepared], logits: Logits) -> list[Draw]:
        """Draw a token for each output; give the draws that this step still can make."""
        again: list[Draw] = []
        drawn = self._drawer.draw(draws, rows, logits, self.model.runner.largest_ids)
        for draw, result in zip(draws, drawn, strict=True):
            if isinstance(result, RequestError):
                self._fail(draw.job, result)
            elif self._advance(draw, result) and (following := draw.next()) is not None:
                again.append(following)
        return again

    def _advance(self, draw: Draw, token_id: int) -> bool:
        """Let an output take a token; True if it goes on."""
        job = draw.job
        if job.answered_s is None:
            job.answered_s = self._clock()
        try:
            progress = draw.generation.take(token_id)
        except Exception as e:  # a bug in a grammar is no other request's affair
            self._fail(job, as_request_error(e))
            return False
        if job.guesser is not None:
            job.guesser.note(progress.token_ids)
        return self._grow(job, progress)

    def _grow(self, job: Job, progress: Progress) -> bool:
        """Append what an output took, or end it; True if it goes on."""
        self._counters.num_output_tokens += progress.num_tokens
        self._counters.num_forced_tokens += progress.num_forced
        if progress.finish_reason is not None:
            self._end(job, progress.text, progress.finish_reason)
            return False
        if progress.text:
            self._outputs.append(Output(job.request.id, text=progress.text))
        if progress.num_taken_back is not None:
            job.sequences[0].settle(progress.num_taken_back)
        tokens = job.sequences[0].tokens
        for token_id in progress.token_ids:
            tokens.append(token_id)
        if len(tokens) > self.gate.pool_tokens:
            self._fail(job, self.gate.pool_exceeded())
            return False
        return True

    def _end(self, job: Job, text: str, reason: FinishReason) -> None:
        """Close a request that ended well."""
        self._close(job, is_kept=True)
        self._counters.num_finished += 1
        self._outputs.append(job.answer(text, reason, self._clock()))

    def _fail(self, job: Job, error: RequestError, *, is_kept: bool = True) -> None:
        """Close a request that failed or was cancelled."""
        self._close(job, is_kept=is_kept)
        self._counters.add_failure(error)
        self._outputs.append(job.failure(error, self._clock()))

    def _close(self, job: Job, *, is_kept: bool) -> None:
        """Give back all that a request holds: the only place that does."""
        for sequence in job.sequences:
            self._scheduler.release(sequence, is_kept=is_kept)
        del self._jobs[job.request.id]
        if job.started_s is None:
            self._num_queued -= 1
            if job.sequences:  # else the cache had all that was asked
                return
        self._counters.add_usage(job.usage(self._clock()))
