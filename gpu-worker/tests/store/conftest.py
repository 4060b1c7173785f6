"""Stores to test: in a folder, and in a bucket of a real S3 server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.loaders import create_loader

from tests.store.places import Place, file_place, s3_place
from tests.store.s3_server import S3Server, Wire, point_aws_at


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session", autouse=True)
def descriptions() -> Iterator[None]:
    """What botocore knows of S3 is read and parsed once, not for each client."""
    loader = create_loader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", lambda *_: loader)
        yield


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, s3_server: S3Server) -> pytest.MonkeyPatch:
    """AWS's environment points at the server, and nowhere else."""
    point_aws_at(s3_server.url, monkeypatch, s3_server.folder)
    return monkeypatch


@pytest.fixture
def wire(aws: pytest.MonkeyPatch, s3_server: S3Server) -> Iterator[Wire]:
    """Between the stores of this test and the server, which lives again when the test is over."""
    wire = Wire(s3_server.port)
    aws.setenv("AWS_ENDPOINT_URL", wire.url)
    yield wire
    wire.close()


@pytest.fixture(params=["file", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "file":
        return file_place(tmp_path)
    request.getfixturevalue("aws")
    return s3_place(request.getfixturevalue("s3_server"))
