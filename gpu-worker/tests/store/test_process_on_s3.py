"""The worker as a process on a bucket: what is wrong is told before anything heavy is loaded."""

import pytest

from tests.process.test_process import finish, settings
from tests.store.s3_server import BUCKET


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
    code, _, error = finish(*settings(store, port=0))
    messages = [line for line in error.splitlines() if not line.startswith("import time:")]
    assert (code, len(messages)) == (2, 1), messages
    assert told in messages[0]
    assert not any(line.endswith(" torch") for line in error.splitlines())
