"""The other roundings that `TEMPER_ROUNDING` plays: numbers that differ in their last bits alone, again and again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from tests.rounding import VARIABLE

PROGRAM = """
import sys, torch
from safetensors.torch import save_file
from tests.rounding import perturb_rounding
perturb_rounding()
torch.manual_seed(0)
a, b = torch.randn(3, 9, 60, requires_grad=True), torch.randn(3, 60, 8)
line = torch.nn.Linear(60, 5)
found = [a @ b, a[0] @ b[0], line(a), torch.baddbmm(torch.ones(3, 9, 8), a, b, beta=2, alpha=3)]
found += [a.sum((0, 2)), a.sum(), a.mean(-1)]
found += torch.autograd.grad(sum(each.square().sum() for each in found), [a])
save_file({str(place): each.detach() for place, each in enumerate(found)}, sys.argv[1])
"""


def numbers(path: Path, seed: str | None) -> dict[str, Tensor]:
    others = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment = others if seed is None else {**others, VARIABLE: seed}
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], env=environment, check=True)
    return load_file(path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    return numbers(tmp_path_factory.mktemp("plain") / "numbers", None)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_seed_changes_last_bits_alone_and_always_the_same(tmp_path: Path, plain: dict[str, Tensor], seed: str):
    found, again = (numbers(tmp_path / name, seed) for name in ("found", "again"))
    for place, as_ever in plain.items():
        assert found[place].equal(again[place])
        assert not found[place].equal(as_ever), place
        assert (found[place] - as_ever).norm() <= 1e-6 * as_ever.norm()
