import sys

import pytest

from temper_gpu.engine.vllm.engine import VllmEngine
from temper_gpu.model.models import POCKET_FOLDER
from tests.engine.vllm.stand_in import serve
from tests.engine.vllm.stood import pocket_base, settings

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def pocket():
    return pocket_base()


@pytest.fixture(scope="session")
def fault_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("fault") / "fault"
    file.write_text("")
    return file


@pytest.fixture
def fault(fault_file):
    """What goes wrong in the server, by its name; nothing after the test."""
    yield fault_file
    fault_file.write_text("")


@pytest.fixture(scope="session")
def engine(pocket, fault_file):
    behind = serve(pocket, fault_file)
    engine = VllmEngine(pocket, str(POCKET_FOLDER), settings(fault_file))
    yield engine
    engine.close()
    behind.shutdown()
    behind.server_close()
