"""The worker as a process on a bucket: what is wrong is told before anything heavy is loaded."""

import signal

import pytest

from tests.process.test_process import END_TIMEOUT_S, finish, start, wait_for_health
from tests.store.s3_server import BUCKET, free_port


@pytest.mark.parametrize(
    ("store", "changes", "told"),
    [
        ("s3://another-bucket/runs", {}, "create it"),
        (f"s3://{BUCKET}", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "AWS_SECRET_ACCESS_KEY"),
        ("s3://No_Bucket", {}, "3 to 63"),
    ],
)
def test_a_store_that_can_never_work_is_told_before_torch_is_loaded(aws, store: str, changes: dict[str, str], told):
    for name, value in changes.items():
        aws.setenv(name, value)
    aws.setenv("PYTHONPROFILEIMPORTTIME", "1")
    code, _, error = finish("--store", store, "--port", "0")
    messages = [line for line in error.splitlines() if not line.startswith("import time:")]
    assert (code, len(messages)) == (2, 1), messages
    assert told in messages[0]
    assert not any(line.endswith(" torch") for line in error.splitlines())


def test_it_starts_and_serves_while_the_server_is_away_until_a_signal_ends_it(aws):
    aws.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    port = free_port()
    process = start("--store", f"s3://{BUCKET}/runs", "--port", str(port), "--leash", "--no-temporal")
    wait_for_health(process, port)
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=END_TIMEOUT_S)
    assert process.returncode == 0, error
    assert "store not reached yet" in out
    assert f'"store":"s3://{BUCKET}/runs"' in out
