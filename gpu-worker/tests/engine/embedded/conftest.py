from dataclasses import replace

import pytest

from tests.engine.embedded.tiny import open_engine, tiny_base


@pytest.fixture(scope="session")
def base():
    return tiny_base()


@pytest.fixture(scope="session")
def bfloat16(base):
    return replace(base, tensors={name: tensor.bfloat16() for name, tensor in base.tensors.items()})


@pytest.fixture(scope="module")
def engine(base):
    engine = open_engine(base)
    yield engine
    engine.close()
