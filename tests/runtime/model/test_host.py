"""Cores and memory are read from the system's own files."""

from __future__ import annotations

import os
from pathlib import Path

from plait.runtime.model.host import free_memory_bytes, physical_cores


def siblings(root: Path, cores: dict[int, str]) -> Path:
    for cpu, core in cores.items():
        folder = root / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{core}\n")
    return root


def test_threads_of_one_core_count_once(tmp_path: Path) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    cpus = siblings(tmp_path / "cpu", dict.fromkeys(allowed, "0-63"))
    assert physical_cores(cpus, tmp_path) == 1


def test_without_a_topology_each_allowed_processor_is_a_core(tmp_path: Path) -> None:
    assert physical_cores(tmp_path, tmp_path) == len(os.sched_getaffinity(0))


def test_a_containers_quota_limits_the_cores(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert physical_cores(tmp_path, tmp_path) == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert physical_cores(tmp_path, tmp_path) == len(os.sched_getaffinity(0))


def test_free_memory_is_what_is_available(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 900 kB\nMemAvailable:     300 kB\n")
    assert free_memory_bytes(tmp_path / "meminfo", tmp_path) == 300 * 1024


def test_a_containers_limit_lowers_it(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemAvailable: 300 kB\n")
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert free_memory_bytes(tmp_path / "meminfo", tmp_path) == 4000


def test_a_system_that_does_not_say_gives_none(tmp_path: Path) -> None:
    assert free_memory_bytes(tmp_path / "meminfo", tmp_path) is None
