"""What of the Hugging Face Hub's HTTP API push and pull use, with faults, on this machine."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Fault = Literal["503", "cut", "lost answer", "cut body", "wrong bytes", "too many bytes"]
FAULTS: tuple[Fault, ...] = (
    *("503", "cut", "lost answer"),
    *("cut body", "wrong bytes", "too many bytes"),
)
Plan = Callable[[str, str], Fault | None]
"""Function that returns the fault for a request (method, path), or None."""

_LARGE_FILES = (".zip", ".safetensors", ".mp4", ".png")  # by .gitattributes, as on the Hub
_LARGE_BYTES = 10_000_000
Files = dict[str, bytes]


def _is_large(path: str, nbytes: int) -> bool:
    """Whether the Hub keeps a file outside of Git, under its SHA-256."""
    return path.endswith(_LARGE_FILES) or nbytes > _LARGE_BYTES


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass
class HubServer:
    """A Hub on a port of this machine; a context manager.

    Attributes:
        repositories: the commits of each repository, the oldest first, as (id, files).
        requests: method and path of each request.
        tokens: what came with requests as a token, in the header that is for it.
        received: all else that came with requests.
        plan: chooses the fault of each request.
    """

    repositories: dict[str, list[tuple[str, Files]]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    received: list[bytes] = field(default_factory=list)
    needs_token: str | None = None
    plan: Plan = lambda _method, _path: None

    def __enter__(self) -> "HubServer":
        hub = self
        self._lock = threading.Lock()

        class Handler(_Handler):
            server_hub = hub

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def files(self, repository: str) -> Files:
        """The files of the newest commit."""
        return self.repositories[repository][-1][1]

    def add_commit(self, repository: str, files: Files) -> str:
        commits = self.repositories.setdefault(repository, [])
        name = f"{repository} {len(commits)} {sorted(files.items())!r}"
        commit = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
        commits.append((commit, files))
        return commit


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Print nothing when a client leaves."""


class _Answer(Exception):  # noqa: N818 - not an error
    def __init__(self, status: int, body: bytes = b"", **headers: str) -> None:
        super().__init__()
        self.status = status
        self.body = body
        self.headers = headers


def _json(value: object, status: int = 200) -> _Answer:
    return _Answer(status, json.dumps(value).encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: HubServer

    def _answer(self) -> None:
        hub = self.server_hub
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        path = self.path.partition("?")[0]
        with hub._lock:
            hub.requests.append((self.command, path))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            hub.tokens |= {token} - {""}
            del self.headers["Authorization"]
            hub.received += [self.path.encode(), self.headers.as_bytes(), body]
            fault = hub.plan(self.command, path)
            if fault == "503":
                answer = _Answer(503, b"planted", X_Error_Message="planted: 503")
            elif fault == "cut":
                self._cut()
                return
            else:
                try:
                    self._serve(path, body, token)
                except _Answer as found:
                    answer = found
            if fault == "lost answer":
                self._cut()
                return
        self._send(answer, fault)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _answer  # noqa: N815 - http.server's names

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _send(self, answer: _Answer, fault: Fault | None) -> None:
        body = answer.body
        if fault == "wrong bytes" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        if fault == "too many bytes":
            body += b"x" * 100_000
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "cut body":
            self.wfile.write(body[: len(body) // 2])
            self._cut()
            return
        self.wfile.write(body)

    def _serve(self, path: str, body: bytes, token: str) -> None:
        hub = self.server_hub
        if hub.needs_token is not None and token != hub.needs_token and "/lfs/" not in path:
            raise _Answer(401, b"", X_Error_Code="GatedRepo", X_Error_Message="log in")
        if path == "/api/validate-yaml":
            raise _json({"errors": [], "warnings": []})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if name in hub.repositories:
                raise _json({"error": "exists", "url": f"{hub.url}/{name}"}, 409)
            hub.add_commit(name, {".gitattributes": b"*.zip filter=lfs\n"})
            raise _json({"url": f"{hub.url}/{name}", "id": name, "name": name})
        if found := re.fullmatch(r"/lfs/([0-9a-f]{64})", path):
            if hashlib.sha256(body).hexdigest() != found[1]:
                raise _json({"error": "hash"}, 400)
            hub.blobs[found[1]] = body
            raise _json({})
        if found := re.fullmatch(r"/([\w.-]+/[\w.-]+)\.git/info/lfs/objects/batch", path):
            raise _json({"transfer": "basic", "objects": self._uploads(json.loads(body))})
        if found := re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)/preupload/main", path):
            raise _json({"files": self._modes(found[1], json.loads(body))})
        if found := re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)/commit/main", path):
            raise self._commit(found[1], body)
        if found := re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+?)(/revision/([\w.-]+))?", path):
            raise self._info(found[1], found[3] or "main")
        if found := re.fullmatch(r"/([\w.-]+/[\w.-]+)/resolve/([\w.-]+)/(.+)", path):
            content = self._at(found[1], found[2])[1].get(found[3])
            if content is None:
                raise _Answer(404, b"", X_Error_Code="EntryNotFound")
            if _is_large(found[3], len(content)):
                sha256 = hashlib.sha256(content).hexdigest()
                hub.blobs[sha256] = content
                raise _Answer(302, Location=f"{hub.url}/cdn/{sha256}")
            raise _Answer(200, content)
        if found := re.fullmatch(r"/cdn/([0-9a-f]{64})", path):
            raise _Answer(200, hub.blobs[found[1]])
        raise _Answer(404, b"no such path", X_Error_Message="no such path")

    def _at(self, name: str, revision: str) -> tuple[str, Files]:
        commits = self.server_hub.repositories.get(name)
        if commits is None:
            raise _Answer(404, b"", X_Error_Code="RepoNotFound", X_Error_Message="not found")
        if revision == "main":
            return commits[-1]
        for commit in commits:
            if commit[0] == revision:
                return commit
        raise _Answer(404, b"", X_Error_Code="RevisionNotFound", X_Error_Message="not found")

    def _info(self, name: str, revision: str) -> _Answer:
        commit, files = self._at(name, revision)
        siblings = []
        for path, content in files.items():
            entry: dict[str, Any] = {
                "rfilename": path,
                "size": len(content),
                "blobId": git_sha1(content),
            }
            if _is_large(path, len(content)):
                sha256 = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 130}
            siblings.append(entry)
        return _json({"id": name, "modelId": name, "sha": commit, "siblings": siblings})

    def _modes(self, name: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
        now = self._at(name, "main")[1]
        return [
            {
                "path": file["path"],
                "uploadMode": "lfs" if _is_large(file["path"], file["size"]) else "regular",
                "shouldIgnore": False,
                "oid": git_sha1(now[file["path"]]) if file["path"] in now else None,
            }
            for file in asked["files"]
        ]

    def _uploads(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        hub = self.server_hub
        found = []
        for each in asked["objects"]:
            answer: dict[str, Any] = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in hub.blobs:
                answer["actions"] = {"upload": {"href": f"{hub.url}/lfs/{each['oid']}"}}
            found.append(answer)
        return found

    def _commit(self, name: str, body: bytes) -> _Answer:
        hub = self.server_hub
        before, files = self._at(name, "main")
        files = dict(files)
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            match item["key"]:
                case "header":
                    if value.get("parentCommit") not in (None, before):
                        return _Answer(412, b"", X_Error_Message="main has changed")
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = hub.blobs[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        commit = hub.add_commit(name, files)
        return _json({"commitUrl": f"{hub.url}/{name}/commit/{commit}", "commitOid": commit})

    def log_message(self, *_: object) -> None:
        """Print nothing."""
