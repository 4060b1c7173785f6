"""A hub of one's own: what huggingface_hub asks for, answered from folders. `python -m tests.model.hub_server FOLDER`
prints its address."""

import hashlib
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_these_tests"
FILE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
INFO = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?")
TREE = re.compile(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)")


@dataclass
class Repository:
    """Revisions by name: `main`, tags, and each by its commit."""

    folder: Path
    # To be read with the token alone: files (`gated`) or all (`private`).
    access: str = "public"
    revisions: dict[str, Path] = field(default_factory=dict)

    def commit(self, folder: Path, *names: str) -> str:
        """Under its names, and under the hash of all its bytes."""
        digest = hashlib.sha1(b"".join(file.read_bytes() for file in sorted(folder.iterdir())))
        commit = digest.hexdigest()
        self.revisions.update(dict.fromkeys([*names, commit], folder))
        self.commits[folder] = commit
        return commit

    commits: dict[Path, str] = field(default_factory=dict)


class HubServer(ThreadingHTTPServer):
    def __init__(self, repositories: dict[str, Repository]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories = repositories
        # Paths, in the order in which they were asked for.
        self.asked: list[str] = []
        # Of a file: the connection ends after as many bytes, once.
        self.cut_after: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serve(repositories: dict[str, Repository]) -> Iterator[HubServer]:
    server = HubServer(repositories)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(path)
        for pattern, answer in ((FILE, self._file), (TREE, self._tree), (INFO, self._info)):
            match = pattern.fullmatch(path)
            if match is None:
                continue
            name, revision, *rest = match.groups()
            repository = self.server.repositories.get(name)
            may_read = self.headers["Authorization"] == f"Bearer {TOKEN}"
            if repository is None or (repository.access == "private" and not may_read):
                return self._refuse(401, "RepoNotFound")
            folder = repository.revisions.get(revision or "main")
            if folder is None:
                return self._refuse(404, "RevisionNotFound")
            if answer == self._file and repository.access == "gated" and not may_read:
                return self._refuse(403, "GatedRepo")
            return answer(repository, folder, *rest)
        return self._refuse(404, "EntryNotFound")

    def _info(self, repository: Repository, folder: Path) -> None:
        self._json({"id": "owner/name", "sha": repository.commits[folder], "siblings": []})

    def _tree(self, repository: Repository, folder: Path) -> None:
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        entries = [
            {
                "type": "file",
                "path": file.relative_to(folder).as_posix(),
                "size": file.stat().st_size,
                "oid": _oid(file),
            }
            for file in files
        ]
        self._json(entries)

    def _file(self, repository: Repository, folder: Path, name: str) -> None:
        file = folder / name
        if not file.is_file():
            return self._refuse(404, "EntryNotFound")
        data = file.read_bytes()
        start = int(re.sub(r"\D", "", self.headers["Range"] or "") or 0)
        body = data[start:]
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{_oid(file)}"')
        self.send_header("X-Repo-Commit", repository.commits[folder])
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "HEAD":
            return None
        cut, is_weights = self.server.cut_after, name.endswith(".safetensors")
        if cut is not None and is_weights:
            self.server.cut_after = None
            self.wfile.write(body[:cut])
            self.close_connection = True
            return None
        self.wfile.write(body)
        return None

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _oid(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()


def main() -> None:
    """One repository, owner/model, from a folder; ends with its stdin."""
    repository = Repository(Path(sys.argv[1]))
    repository.commit(repository.folder, "main")
    with serve({"owner/model": repository}) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
