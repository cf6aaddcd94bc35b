"""Find and load the compiled kernels."""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_void_p
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from . import abi

CHOICE = "PLAIT_NATIVE"  # off, or a kind of processor: portable, avx2, avxvnni, avx512
_NAME = "_native"

_PROTOTYPES = {
    "plait_version": (c_int32, ()),
    "plait_isa": (c_char_p, ()),
    "plait_choose": (c_int32, (c_char_p,)),
    "plait_threads": (None, (c_int32,)),
    "plait_packed_bytes": (c_int64, (c_int32, c_int64, c_int64)),
    "plait_pack": (c_int32, (c_int32, c_void_p, c_int64, c_int64, c_int64, c_void_p)),
    "plait_make_buffers": (c_void_p, ()),
    "plait_drop_buffers": (None, (c_void_p,)),
    "plait_linear": (None, (POINTER(abi.Linear), c_void_p, c_int64, c_int32, c_void_p)),
    "plait_sample": (
        None,
        (c_void_p, c_int64, c_int64, POINTER(abi.DrawRow), c_int64, POINTER(c_int64)),
    ),
    "plait_logprobs": (
        None,
        (c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_int64, POINTER(c_double)),
    ),
    "plait_attention": (
        None,
        (POINTER(abi.Model), POINTER(abi.Cache), POINTER(abi.Batch), c_int32, c_void_p, c_void_p),
    ),
    "plait_step": (
        None,
        (
            *(POINTER(abi.Model), POINTER(abi.Cache), POINTER(abi.Batch), c_void_p),
            *(c_void_p, c_void_p),
        ),
    ),
}


class Library:
    """The compiled kernels. Calls release Python's lock; steps of one process take turns."""

    def __init__(self, path: Path) -> None:
        self.functions = ctypes.CDLL(str(path))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(self.functions, name)
            function.restype, function.argtypes = result, arguments

    @property
    def isa(self) -> str:
        """The kind of processor that they are for: avx512, avxvnni, avx2 or portable."""
        name: bytes = self.functions.plait_isa()
        return name.decode()

    def choose(self, isa: str) -> bool:
        """Take the kernels for another kind; False if this machine is not of that kind.

        Weights that were packed before are of no use then.
        """
        return bool(self.functions.plait_choose(isa.encode()))

    def set_threads(self, num_threads: int) -> None:
        """Set how many threads compute, for the whole process."""
        self.functions.plait_threads(num_threads)


def load_library() -> Library | None:
    """Load the kernels; None if they cannot be had, see `why_absent`.

    Raises: ValueError if PLAIT_NATIVE names a kind of processor that this machine is not.
    """
    found = _load()
    return found if isinstance(found, Library) else None


def why_absent() -> str:
    """Say why there are no kernels; nothing if there are."""
    found = _load()
    return "" if isinstance(found, Library) else found


@functools.cache
def _load() -> Library | str:
    wanted = os.environ.get(CHOICE, "")
    if wanted == "off":
        return f"{CHOICE}=off says so"
    path = _find()
    if path is None:
        return "plait was installed without a C++ compiler; install g++, then plait again"
    try:
        library = Library(path)
    except (OSError, AttributeError) as e:
        return f"{path.name} cannot be loaded ({e}); install plait again"
    if library.functions.plait_version() != abi.VERSION:
        return f"{path.name} is of another version; install plait again"
    if wanted and not library.choose(wanted):
        raise ValueError(f"{CHOICE}={wanted}: pass off, or what this machine is: {library.isa}")
    return library


def _find() -> Path | None:
    folder = Path(__file__).parent
    paths = (folder / f"{_NAME}{suffix}" for suffix in EXTENSION_SUFFIXES)
    return next((path for path in paths if path.exists()), None)
