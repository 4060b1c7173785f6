"""Plays pytest again and again, each time in a fork that has imported what no mutant changes: the libraries take half
of the time of most test files. A line of JSON, `{"cwd", "output", "arguments"}`, asks for a play; its exit code
answers."""

import json
import os
import sys

# Read when torch is imported, as in gpu-worker/tests/conftest.py.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import hypothesis  # noqa: F401
import pytest
import torch  # noqa: F401


def play(cwd: str, output: str, arguments: list[str]) -> int:
    # Processes that a test starts must not read the next line.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for descriptor in (1, 2):
        os.dup2(written, descriptor)
    os.chdir(cwd)
    return pytest.main(arguments)


for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = play(**asked)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
