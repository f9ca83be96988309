"""A Hugging Face Hub on this machine: the answers of the real one, as far as fetching and checking ask, about repositories in folders.

A repository is a folder `{root}/{models or datasets}/{owner}/{name}/{revision}` of files, where `/` in a revision is `%2F`.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import yaml

TOKEN = "hf_test"


def commit_of(revision: str) -> str:
    """The commit of a revision, from its name alone."""
    return hashlib.sha1(revision.encode()).hexdigest()


def repository(root: Path, kind: str, name: str, revision: str = "main") -> Path:
    """The folder of a repository at a revision, which is made if it is not there."""
    folder = root / kind / name / quote(revision, safe="")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def serve(root: Path, gated: tuple[str, ...] = (), private: tuple[str, ...] = ()) -> Iterator[str]:
    """Serve the repositories below a folder; yields the address for HF_ENDPOINT."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = urlsplit(self.path).path.strip("/").split("/")
            api = path[0] == "api"
            path = path[1:] if api else path
            kind = path.pop(0) if path[0] in ("models", "datasets") else "models"
            name, rest = "/".join(path[:2]), path[2:]
            known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            if not (root / kind / name).is_dir() or (name in private and not known):
                self._refuse(401, "RepoNotFound")
            elif name in gated and not known and (not api or rest[:1] == ["auth-check"]):
                self._refuse(401, "GatedRepo")
            elif rest[:1] == ["refs"]:
                names = [unquote(folder.name) for folder in sorted((root / kind / name).iterdir())]
                refs = [{"name": ref, "ref": f"refs/heads/{ref}", "targetCommit": commit_of(ref)} for ref in names]
                self._json(
                    {
                        "branches": [ref for ref in refs if "/" not in ref["name"]],
                        "tags": [],
                        "converts": [ref | {"ref": ref["name"]} for ref in refs if "/" in ref["name"]],
                    }
                )
            elif rest[:1] == ["auth-check"]:
                self._json({})
            else:
                self._of_revision(kind, name, rest, api)

        def _of_revision(self, kind: str, name: str, rest: list[str], api: bool) -> None:
            what, revision, path = (*rest, "revision", "main", "")[:3] if not rest else (rest[0], unquote(rest[1]), "")
            path = "/".join(map(unquote, rest[2:]))
            folder = next(
                (
                    each
                    for each in (root / kind / name).iterdir()
                    if revision in (unquote(each.name), commit_of(unquote(each.name)))
                ),
                None,
            )
            if folder is None:
                self._refuse(404, "RevisionNotFound")
                return
            commit = commit_of(unquote(folder.name))
            files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*")) if file.is_file()}
            entries = [
                {"type": "file", "path": path, "size": file.stat().st_size, "oid": commit}
                for path, file in files.items()
            ]
            folders = {str(parent) for file in files for parent in Path(file).parents if str(parent) != "."}
            entries += [{"type": "directory", "path": each, "size": 0, "oid": commit} for each in sorted(folders)]
            if what == "revision":
                siblings = [{"rfilename": each} for each in files]
                text = files["README.md"].read_text() if "README.md" in files else ""
                card = yaml.safe_load(text.split("---")[1]) if text.startswith("---\n") else None
                about = {
                    "id": name,
                    "sha": commit,
                    "siblings": siblings,
                    "cardData": card,
                    "tags": [],
                    "private": name in private,
                }
                self._json(about | {"gated": "manual" if name in gated else False, "downloads": 0, "likes": 0})
            elif what == "tree":
                is_deep = parse_qs(urlsplit(self.path).query).get("recursive", [""])[0].lower() in ("true", "1")
                below = [each for each in entries if not path or each["path"].startswith(f"{path}/")]
                near = [each for each in below if "/" not in each["path"][len(path) :].strip("/")]
                if path and path not in folders:
                    self._refuse(404, "EntryNotFound")
                else:
                    self._json(below if is_deep else near)
            elif what == "paths-info":
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                wanted = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
                self._json([each for each in entries if each["path"] in wanted])
            elif path in files:
                self._file(files[path].read_bytes(), commit)
            else:
                self._refuse(404, "EntryNotFound", commit)

        def _file(self, content: bytes, commit: str) -> None:
            start, end = 0, len(content)
            if ranged := self.headers.get("Range"):
                first, last = ranged.removeprefix("bytes=").split("-")
                start, end = int(first), min(int(last) + 1, end) if last else end
            self.send_response(206 if ranged else 200)
            self.send_header("Content-Length", str(end - start))
            if ranged:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
            self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", commit)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[start:end])

        def _json(self, value: Any) -> None:
            content = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _refuse(self, status: int, code: str, commit: str = "") -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", code)
            self.send_header("Content-Length", "0")
            if commit:
                self.send_header("X-Repo-Commit", commit)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
