"""What the host says of processes, by their ids."""

import os
import time
from pathlib import Path


def expect_ended(pids: list[int]) -> None:
    end = time.monotonic() + 100
    while any(map(is_running, pids)):
        assert time.monotonic() < end, pids
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """One whose end nobody has asked about yet is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def listening(pid: int) -> set[str]:
    """Local addresses, as Linux writes them, of a process's sockets that take connections."""
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return {line[1].partition(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in links}
