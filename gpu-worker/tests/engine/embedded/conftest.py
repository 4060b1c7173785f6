import pytest

from tests.engine.embedded.tiny import open_engine, tiny_base


@pytest.fixture(scope="session")
def base():
    return tiny_base()


@pytest.fixture(scope="module")
def engine(base):
    engine = open_engine(base)
    yield engine
    engine.close()
