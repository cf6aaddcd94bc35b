"""A kernel's configuration is the most special row of the table."""

from __future__ import annotations

import pytest
import torch

from plait.kernels.tuning import Config, choose, configs, shape_class
from plait.kernels.tuning.table import TABLE

CPU = torch.device("cpu")


def test_every_kernel_has_a_default_row() -> None:
    for kernel in ("decode", "extend", "prefix", "linear4", "linear8"):
        assert choose(kernel, "no such shape", CPU).num_warps > 0


def test_a_row_for_the_device_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        ("decode", "any", "any"): (1, 1, 1, 1),
        ("decode", "64x2", "any"): (2, 2, 2, 2),
        ("decode", "64x2", "9.0"): (3, 3, 3, 3),
    }
    monkeypatch.setattr(configs, "TABLE", table)
    assert choose("decode", "128x2", CPU) == Config(1, 1, 1, 1)
    assert choose("decode", "64x2", CPU) == Config(2, 2, 2, 2)
    monkeypatch.setattr(configs, "capability_of", lambda device: "9.0")
    assert choose("decode", "64x2", CPU) == Config(3, 3, 3, 3)


def test_blocks_are_powers_of_two_that_a_product_takes() -> None:
    for (kernel, _, _), row in TABLE.items():
        config = Config(*row)
        for size in (config.block_m, config.block_n):
            assert size >= 16, kernel
            assert size & (size - 1) == 0, kernel


def test_shapes_are_classed_by_the_next_power_of_two() -> None:
    assert shape_class(48, torch.bfloat16) == "64x2"
    assert shape_class(64, torch.float32) == "64x4"
    assert shape_class(1, torch.float32) == "1x4"
