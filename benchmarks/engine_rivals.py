"""A forward pass by plait's runner, by llama.cpp and by transformers, behind one face."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from plait.runtime.config import EngineConfig
from plait.runtime.load.weights import opened
from plait.runtime.model.interface import Runner
from plait.runtime.model.registry import load_model
from plait.runtime.sequence import Batch

BLOCK = 16
POOL_TOKENS = 24_576  # 16 sequences of 1,088 tokens, or 64 of 256, and room
NONE = np.zeros(0, np.int64)


class Rival(Protocol):
    """One engine: sequences are filled with a text, then go on by a token each."""

    def fill(self, texts: Sequence[Sequence[int]], num_shared: int = 0) -> None:
        """Forget everything, and compute texts whose first `num_shared` tokens are the same."""
        ...

    def step(self, tokens: Sequence[int]) -> None:
        """Compute one more token of each sequence, with its logits."""
        ...


class Plait:
    """plait's runner, as the engine calls it. Its sequences share blocks of a common prefix."""

    def __init__(self, path: Path, num_threads: int, *, is_native: bool = True) -> None:
        config = EngineConfig(
            block_size=BLOCK,
            kv_cache_tokens=POOL_TOKENS,
            num_threads=num_threads,
            is_native=is_native,
        )
        self.runner: Runner = load_model(path, config).runner

    def fill(self, texts: Sequence[Sequence[int]], num_shared: int = 0) -> None:
        """Compute the texts, a common prefix once."""
        assert num_shared % BLOCK == 0
        free = iter(range(POOL_TOKENS // BLOCK))
        trunk = [next(free) for _ in range(num_shared // BLOCK)]
        self._lengths = [len(text) for text in texts]
        room = [-(-(n + 256) // BLOCK) - len(trunk) for n in self._lengths]
        width = max(room) + len(trunk)
        self._tables = np.zeros((len(texts), width), np.int32)
        for row, num in enumerate(room):
            own = [next(free) for _ in range(num)]
            self._tables[row, : len(trunk) + num] = trunk + own
        self._paths = [((1, num_shared),) if num_shared else () for _ in texts]
        for i, text in enumerate(texts):
            start = num_shared if i else 0
            self.runner.run(self._batch([i], [list(text[start:])], [start]))

    def step(self, tokens: Sequence[int]) -> None:
        """Compute one more token of each sequence."""
        self.runner.run(self._decode(tokens))

    def decodes(self, texts: Sequence[Sequence[int]], num_steps: int) -> list[Batch]:
        """Compute the texts; give the batches of the next steps, to be run in order."""
        assert num_steps <= 256, "no more room was made"
        self.fill(texts)
        return [self._decode([100 + i for i in range(len(texts))]) for _ in range(num_steps)]

    def _decode(self, tokens: Sequence[int]) -> Batch:
        ids = list(range(len(tokens)))
        batch = self._batch(ids, [[token] for token in tokens], self._lengths)
        self._lengths = [length + 1 for length in self._lengths]
        return batch

    def _batch(self, ids: list[int], news: list[list[int]], starts: list[int]) -> Batch:
        counts = [len(new) for new in news]
        at = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, counts, strict=True)])
        rows = np.repeat(np.arange(len(ids)), counts)
        tables = self._tables[ids]
        slots = tables[rows, at // BLOCK].astype(np.int64) * BLOCK + at % BLOCK
        ends = np.cumsum(counts)
        return Batch(
            token_ids=np.array([token for new in news for token in new], np.int32),
            positions=at.astype(np.int32),
            slot_mapping=slots,
            cu_seqlens=np.concatenate(([0], ends)).astype(np.int32),
            seq_lens=np.array([s + n for s, n in zip(starts, counts, strict=True)], np.int32),
            block_tables=tables,
            copy_from=NONE,
            copy_to=NONE,
            logit_rows=(ends - 1).astype(np.int64),
            paths=tuple(self._paths[i] for i in ids),
        )


class LlamaCpp:
    """llama.cpp, through the functions of its C API, with room for `pool_tokens` of KV."""

    def __init__(self, path: Path, num_threads: int, pool_tokens: int = POOL_TOKENS) -> None:
        self._api: Any = import_module("llama_cpp")  # only where somebody runs this
        api = self._api
        self._log = api.llama_log_callback(lambda *_: None)  # the library keeps a bare pointer
        api.llama_log_set(self._log, None)
        api.llama_backend_init()
        model_params = api.llama_model_default_params()
        self._model = api.llama_model_load_from_file(str(path).encode(), model_params)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = pool_tokens, 2048, 512
        params.n_threads = params.n_threads_batch = num_threads
        params.n_seq_max = 64
        params.kv_unified = True
        self._context = api.llama_init_from_model(self._model, params)
        assert self._context, "llama.cpp gives no context"
        self._memory = api.llama_get_memory(self._context)

    def fill(self, texts: Sequence[Sequence[int]], num_shared: int = 0) -> None:
        """Compute the texts, a common prefix once."""
        self._api.llama_memory_clear(self._memory, True)
        for i, text in enumerate(texts):
            start = num_shared if i else 0
            if start:
                self._api.llama_memory_seq_cp(self._memory, 0, i, 0, num_shared)
            for begin in range(start, len(text), 2048):
                part = text[begin : begin + 2048]
                self._decode([(t, begin + j, i) for j, t in enumerate(part)], len(part) - 1)
        self._lengths = [len(text) for text in texts]

    def step(self, tokens: Sequence[int]) -> None:
        """Compute one more token of each sequence."""
        self._decode([(token, self._lengths[i], i) for i, token in enumerate(tokens)], None)
        self._lengths = [length + 1 for length in self._lengths]

    def _decode(self, tokens: list[tuple[int, int, int]], wanted: int | None) -> None:
        """Compute (token, position, sequence)s, with the logits of one, or of all."""
        batch = self._api.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, (token, position, seq_id) in enumerate(tokens):
            batch.token[i], batch.pos[i] = token, position
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, seq_id
            batch.logits[i] = wanted is None or i == wanted
        code = self._api.llama_decode(self._context, batch)
        self._api.llama_batch_free(batch)
        assert code == 0, f"llama_decode gives {code}"


def converted(file: Path, format: str, folder: Path) -> Path:
    """Give a GGUF file with its weights in another format, made by llama.cpp once.

    They are rounded twice: good for a speed, not for an answer.
    """
    api: Any = import_module("llama_cpp")
    made = folder / f"{file.stem}-{format}-{file.stat().st_size}.gguf"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        params = api.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = getattr(api, f"LLAMA_FTYPE_MOSTLY_{format}"), True
        unfinished = made.with_suffix(".part")
        code = api.llama_model_quantize(str(file).encode(), str(unfinished).encode(), params)
        assert code == 0, f"llama_model_quantize gives {code}"
        unfinished.rename(made)
    return made


class Transformers:
    """transformers on the weights of the same file, in fp32: its plain forward pass."""

    def __init__(self, path: Path, num_threads: int) -> None:
        import torch  # not above: plait's own process has none
        from transformers import LlamaConfig, LlamaForCausalLM

        self._torch = torch
        torch.set_num_threads(num_threads)
        with opened(path) as weights:
            keys: dict[str, Any] = dict(weights.config)
            config = LlamaConfig(**keys)
            self._model: Any = LlamaForCausalLM(config).eval()
            tensors = {name: torch.from_numpy(weights.tensor(name)) for name in weights.names()}
            self._model.load_state_dict(tensors, strict=False)  # the head may be the embedding
            self._model.tie_weights()

    def fill(self, texts: Sequence[Sequence[int]], num_shared: int = 0) -> None:
        """Compute the texts; nothing is shared."""
        self._run([list(text) for text in texts], logits_to_keep=1)

    def step(self, tokens: Sequence[int]) -> None:
        """Compute one more token of each sequence."""
        self._run([[token] for token in tokens], past_key_values=self._past)

    def _run(self, ids: list[list[int]], **options: Any) -> None:
        with self._torch.inference_mode():
            found = self._model(self._torch.tensor(ids), use_cache=True, **options)
        self._past = found.past_key_values
