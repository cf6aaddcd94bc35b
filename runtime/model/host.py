"""What the machine offers: processor cores and memory."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def physical_cores(cpus: Path = _CPUS, cgroup: Path = _CGROUP) -> int:
    """Count the physical cores that this process may use; a container's quota counts too."""
    allowed = os.sched_getaffinity(0)
    cores = set()
    for cpu in allowed:
        siblings = cpus / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        cores.add(_read(siblings) or str(cpu))
    quota, _, period = _read(cgroup / "cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit():
        return max(1, min(len(cores), int(quota) // int(period)))
    return len(cores)


def free_memory_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Give the memory that may be taken without swapping, None where the system does not say."""
    free = None
    for line in _read(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit, used = _read(cgroup / "memory.max"), _read(cgroup / "memory.current")
    if limit.isdigit() and used.isdigit():
        left = max(0, int(limit) - int(used))
        return left if free is None else min(free, left)
    return free


def return_freed_memory() -> None:
    """Give the system back what the C library keeps of freed memory, where it knows how to."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
        if trim is not None:
            trim(0)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""
