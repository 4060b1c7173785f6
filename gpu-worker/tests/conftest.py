"""For every test: the kernels that the worker's process uses (training/platform.py), and a store in a folder."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tier import TIER

# An example may take its time on a busy machine, and whether a test passes is no matter of luck.
for tier, max_examples in (("landing", 25), ("nightly", 100)):
    settings.register_profile(tier, deadline=None, derandomize=True, max_examples=max_examples)
settings.load_profile(TIER)
# As in the worker: half a million objects are made by imports, and stay.
gc.disable()
# Read when torch is imported. A second thread that spins until the first is done costs ten times what it computes.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from temper_gpu.store import FileStore  # noqa: E402
from temper_gpu.training.platform import fix_kernels  # noqa: E402
from tests.rounding import perturb_rounding  # noqa: E402

fix_kernels()
perturb_rounding()


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store")
