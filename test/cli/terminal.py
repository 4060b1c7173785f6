"""Answers questions of a command on a terminal: `terminal.py '[["question", "answer"], …]' COMMAND …`."""

import json
import os
import pty
import sys

questions = json.loads(sys.argv[1])
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])

said = b""
answered = 0
for question, answer in questions:
    while (at := said.find(question.encode(), answered)) < 0:
        said += os.read(terminal, 4096)
    answered = at + len(question.encode())
    os.write(terminal, answer.encode())
try:
    while more := os.read(terminal, 4096):
        said += more
except OSError:  # On Linux, the end.
    pass
sys.stdout.buffer.write(said)
sys.stdout.flush()
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
