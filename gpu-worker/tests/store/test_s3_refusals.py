"""What a server may say that the one in the tests never does: answers as AWS and others document them."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from botocore import exceptions as boto

from temper_gpu.store.s3_client import S3Settings
from temper_gpu.store.s3_failures import s3_failure
from temper_gpu.store.s3_store import S3Store
from tests.store.test_stores import failure_of

REPOSITORY = Path(__file__).parents[3]
ONE_TRY = S3Settings(max_attempts=1)


class ScriptedServer(ThreadingHTTPServer):
    """Says what it was told to say, in order; afterwards keeps objects, and overwrites them whatever is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.script: list[tuple[int, str]] = []
        self.objects: dict[str, bytes] = {}


class Answers(BaseHTTPRequestHandler):
    server: ScriptedServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self._refuse():
            found = self.server.objects.get(self.path)
            self._answer(200, found) if found is not None else self._error(404, "NoSuchKey")

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        if not self._refuse():
            self.server.objects[self.path] = data
            self._answer(200, b"")

    def _refuse(self) -> bool:
        if self.server.script:
            self._error(*self.server.script.pop(0))
            return True
        return False

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>quoting a secret</Message></Error>".encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), "etag": '"1"', "connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(aws: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        aws.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()


def test_a_server_that_overwrites_what_is_written_once_is_refused(server: ScriptedServer):
    failure = failure_of(S3Store("bucket").check)
    assert failure.type == "BadConfig"
    assert "If-None-Match" in failure.message


def test_a_write_that_meets_another_one_is_made_again(server: ScriptedServer):
    server.script = [(409, "ConditionalRequestConflict")] * 2
    published = S3Store("bucket", settings=ONE_TRY).publish("a", b"x")
    assert (published.created, server.objects) == (True, {"/bucket/a": b"x"})


def test_a_winner_that_is_gone_when_it_is_read_leaves_its_place_free(server: ScriptedServer):
    server.script = [(412, "PreconditionFailed")]
    assert S3Store("bucket", settings=ONE_TRY).publish("a", b"x").created


def test_a_server_that_is_busy_for_a_moment_is_asked_again(server: ScriptedServer):
    server.script = [(503, "SlowDown"), (500, "InternalError")]
    assert S3Store("bucket").publish("a", b"x").created


@pytest.mark.parametrize(
    ("status", "code", "type_", "told"),
    [
        (503, "SlowDown", "StoreUnavailable", "SlowDown"),
        (500, "InternalError", "StoreUnavailable", "500"),
        (507, "InsufficientStorage", "StoreUnavailable", "507"),
        (400, "RequestTimeout", "StoreUnavailable", "RequestTimeout"),
        (400, "ExpiredToken", "StoreUnavailable", "AWS_SESSION_TOKEN"),
        (403, "RequestTimeTooSkewed", "BadConfig", "clock"),
        (403, "AccessDenied", "BadConfig", "s3:PutObject"),
        (403, "InvalidAccessKeyId", "BadConfig", "AWS_ACCESS_KEY_ID"),
        (404, "NoSuchBucket", "BadConfig", "create it"),
        (501, "NotImplemented", "BadConfig", "If-None-Match"),
        (400, "SomethingElse", "BadConfig", "400 SomethingElse"),
    ],
)
def test_a_refusal_is_told_in_our_own_words(server: ScriptedServer, status: int, code: str, type_: str, told: str):
    server.script = [(status, code)]
    failure = failure_of(lambda: S3Store("bucket", settings=ONE_TRY).publish("runs/a", b"x"))
    assert failure.type == type_
    assert "s3://bucket/runs/a" in failure.message
    assert told in failure.message
    assert "quoting a secret" not in failure.message


CODES: dict[str, list[str]] = json.loads((REPOSITORY / "test/store/s3-failures.json").read_text())["codes"]


@pytest.mark.parametrize(("code", "types"), CODES.items(), ids=CODES)
def test_a_code_ends_a_run_where_no_repetition_mends_it_as_in_typescript(
    server: ScriptedServer, code: str, types: list[str]
):
    store, found = S3Store("bucket", settings=ONE_TRY), []
    for name in ("first", "second"):
        server.script = [(503 if code == "SlowDown" else 403, code)]
        found.append(failure_of(lambda name=name: store.publish(name, b"x")).type)
        server.script = []
        assert store.publish(name, b"x").created
    assert found == types


@pytest.mark.parametrize(
    "error",
    [
        boto.NoCredentialsError(),
        boto.UnauthorizedSSOTokenError(),
        boto.TokenRetrievalError(provider="sso", error_msg="expired"),
    ],
)
def test_credentials_that_were_there_once_may_come_back(error: boto.BotoCoreError):
    types = [s3_failure(error, "read", "key", has_answered).type for has_answered in (False, True)]
    assert types == ["BadConfig", "StoreUnavailable"]
