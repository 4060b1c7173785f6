"""The worker as a process on a bucket: what is wrong is told before anything heavy is loaded."""

import pytest

from tests.process.test_process import finish, settings
from tests.store.s3_server import BUCKET


def test_a_store_that_can_never_work_is_told_before_torch_is_loaded(aws: pytest.MonkeyPatch):
    aws.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    aws.setenv("PYTHONPROFILEIMPORTTIME", "1")
    code, _, error = finish(*settings(f"s3://{BUCKET}", port=0))
    messages = [line for line in error.splitlines() if not line.startswith("import time:")]
    assert (code, len(messages)) == (2, 1), messages
    assert "AWS_SECRET_ACCESS_KEY" in messages[0]
    assert not any(line.endswith(" torch") for line in error.splitlines())
