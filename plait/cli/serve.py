"""Serve a model over ZeroMQ to programs in other processes."""

from __future__ import annotations

import argparse

from ..runtime.config import BLOCK_SIZES

EXAMPLE = """examples:
  plait serve                                  a private ipc socket, printed at the start
  plait serve --listen tcp://127.0.0.1:5757    for `plait run --connect tcp://127.0.0.1:5757`"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `plait serve`."""
    parser.add_argument("--listen", metavar="ENDPOINT", help="ipc://PATH or tcp://HOST:PORT")
    parser.add_argument("--model", help="a pulled model's name, a GGUF file or a model folder")
    parser.add_argument("--block-size", type=int, choices=BLOCK_SIZES, default=16)
    parser.add_argument("--token-budget", type=int, default=512, help="new tokens in a step")
    parser.add_argument("--max-running", type=int, default=64, help="sequences in the batch")
    parser.add_argument("--kv-cache-tokens", type=int, help="size of the KV pool")
    parser.add_argument("--max-context", type=int, help="shorten the model's context")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="threads of the forward pass")
    parser.add_argument("--keys", metavar="FOLDER", help="CURVE keys, needed beyond loopback")
    parser.add_argument("--no-prefix-cache", action="store_true", help="for measurements")
    parser.add_argument("--watch-parent", action="store_true", help="stop when stdin closes")
    parser.add_argument(
        "--scripted", metavar="FILE.py:function", help="serve a scripted stand-in model"
    )


def execute(args: argparse.Namespace) -> int:
    """Serve until told to stop; give the exit code."""
    from ..runtime.config import EngineConfig
    from ..serving import serve

    config = EngineConfig(
        block_size=args.block_size,
        token_budget=args.token_budget,
        max_running=args.max_running,
        kv_cache_tokens=args.kv_cache_tokens,
        max_context=args.max_context,
        is_prefix_caching=not args.no_prefix_cache,
        dtype=args.dtype,
        device=args.device,
        num_threads=args.threads,
    )
    return serve(
        args.listen,
        args.model,
        config,
        watch_parent=args.watch_parent,
        scripted=args.scripted,
        keys=args.keys,
    )
