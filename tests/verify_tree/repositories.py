"""Real repositories for tests, apart from any configuration of the person who runs them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path


def git(cwd: Path, *args: str, check: bool = True, **extra: str) -> str:
    """stdout of git with an identity and without anybody's configuration."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | extra
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"]
    quiet = ["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", *identity, *quiet, *args], cwd=cwd, env=env, capture_output=True, check=check
    )
    return os.fsdecode(done.stdout).strip()


def make(root: Path, files: dict[str, str | bytes]) -> Path:
    """A repository with one commit that holds `files`."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "base")
    return root


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Write files, with the folders above them."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def what_git_would_add(root: Path, scratch: Path) -> str:
    """The tree of `git add -A` in the work tree, through an index that is thrown away."""
    index = scratch / "oracle-index"
    source = Path(git(root, "rev-parse", "--path-format=absolute", "--git-path", "index"))
    if source.exists():
        index.write_bytes(source.read_bytes())
        # Older than every file, so that no cached stat is believed.
        os.utime(index, (1, 1))
    plain = ("-c", "core.splitIndex=false", "-c", "core.safecrlf=false")
    git(root, *plain, "add", "-A", GIT_INDEX_FILE=str(index))
    return git(root, "write-tree", GIT_INDEX_FILE=str(index))


def fingerprint(folder: Path, *, skip: str = "rage") -> dict[str, tuple[str, int, int]]:
    """Content, mode and mtime of every file below a folder.

    Without the mtimes of git's objects, which are content-addressed: git freshens one whenever it
    would have written it again, so that no prune takes it.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if skip in path.relative_to(folder).parts or (path.is_dir() and not path.is_symlink()):
            continue
        info = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        mtime = 0 if "objects" in path.parts else info.st_mtime_ns
        found[str(path.relative_to(folder))] = (digest, info.st_mode, mtime)
    return found
