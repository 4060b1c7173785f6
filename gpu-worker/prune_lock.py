"""python prune_lock.py LOCK: leaves only hashes of wheels that a Linux machine with Python 3.11 to 3.13 may take.

vLLM needs Linux and some 150 packages; hashes of all wheels of each would be a tenth of Temper's package. Which file a
hash belongs to is asked of the lock's own resolution, in uv's other format.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

WANTED = re.compile(r"-(cp31[123]-|cp3\d+-abi3-|py2\.py3-|py3-).*?(none-any|linux.*_(x86_64|aarch64))\.whl$")


def main(lock: Path) -> None:
    pins = [line.partition(" \\")[0] for line in lock.read_text().splitlines() if "==" in line and line[0] not in " #"]
    command = [
        "uv",
        "pip",
        "compile",
        "--universal",
        "--python-version",
        "3.11",
        "--no-deps",
        "--format",
        "pylock.toml",
    ]
    done = subprocess.run([*command, "-"], input="\n".join(pins), capture_output=True, text=True, check=True)
    wheels = {
        wheel["hashes"]["sha256"]: wheel.get("name") or wheel["url"].rpartition("/")[2]
        for package in tomllib.loads(done.stdout)["packages"]
        for wheel in package.get("wheels", [])
    }
    lock.write_text("".join(f"{text}\n" for text in pruned(lock.read_text().split("\n\n")[0].splitlines(), wheels)))


def pruned(lines: list[str], wheels: dict[str, str]) -> list[str]:
    """Whole blocks: a pin, its hashes, and who asked for it."""
    blocks: list[list[str]] = []
    for line in lines:
        if line[:1] not in (" ", "#"):
            blocks.append([])
        blocks[-1].append(line)
    found = []
    for pin, *rest in blocks:
        hashes = [line.strip(" \\") for line in rest if "--hash=" in line]
        kept = [text for text in hashes if WANTED.search(wheels.get(text.rpartition(":")[2], ""))] or hashes
        found += [pin.rstrip(" \\") + " \\", *(f"    {text} \\" for text in kept[:-1]), f"    {kept[-1]}"]
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
