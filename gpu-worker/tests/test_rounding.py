"""The other roundings that `TEMPER_ROUNDING` plays: numbers that differ in their last bits alone, again and again."""

import os
import subprocess
import sys

import pytest
from safetensors.torch import load_file
from torch import Tensor

from tests.rounding import VARIABLE

# Each seed has a process of its own, forked before anything is computed: importing PyTorch takes seconds.
PROGRAM = """
import os, sys, torch
from safetensors.torch import save_file
from tests.rounding import VARIABLE, perturb_rounding

def compute(path):
    perturb_rounding()
    torch.manual_seed(0)
    a, b = torch.randn(3, 9, 60, requires_grad=True), torch.randn(3, 60, 8)
    line = torch.nn.Linear(60, 5)
    found = [a @ b, a[0] @ b[0], line(a), torch.baddbmm(torch.ones(3, 9, 8), a, b, beta=2, alpha=3)]
    found += [a.sum((0, 2)), a.sum(), a.mean(-1)]
    found += torch.autograd.grad(sum(each.square().sum() for each in found), [a])
    save_file({str(place): each.detach() for place, each in enumerate(found)}, path)

folder, *seeds = sys.argv[1:]
for seed in seeds:
    child = os.fork()
    if child == 0:
        if seed != "plain":
            os.environ[VARIABLE] = seed.removesuffix(" again")
        compute(os.path.join(folder, seed))
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(seed)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Tensor]]:
    folder, seeds = tmp_path_factory.mktemp("found"), ("plain", "1", "2", "1 again", "2 again")
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    subprocess.run([sys.executable, "-c", PROGRAM, str(folder), *seeds], env=environment, check=True)
    return {seed: load_file(folder / seed) for seed in seeds}


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_seed_changes_last_bits_alone_and_always_the_same(found: dict[str, dict[str, Tensor]], seed: str):
    for place, as_ever in found["plain"].items():
        perturbed = found[seed][place]
        assert perturbed.equal(found[f"{seed} again"][place])
        assert not perturbed.equal(as_ever), place
        assert (perturbed - as_ever).norm() <= 1e-6 * as_ever.norm()
