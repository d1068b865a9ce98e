"""The person's hooks and signing run without a terminal, and never decide what is committed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from rage_plugin.core.config import GitConfig
from rage_plugin.core.errors import RageError
from rage_plugin.deliver import DeliverRoom

from .conftest import RUN, Repo, an_item


def unchanged(repo: Repo, head: str) -> bool:
    return repo.room.head() == head and repo.git("diff", "--cached", "--name-only") == ""


def test_hooks_run_in_order_on_the_checked_content(repo: Repo) -> None:
    log = repo.path.parent / "log"
    for hook in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"):
        repo.hook(
            hook,
            f'echo "{hook} $# $(git show :a.py) $(git diff --cached --name-only)" >> "{log}"',
        )
    base, tree = repo.base(), repo.work({"a.py": "a = 2\n"})
    repo.write({"a.py": "a = 'later'\n"})
    repo.room.commit(RUN, an_item(), base, tree, "", "verified")
    assert log.read_text().splitlines() == [
        "pre-commit 0 a = 2 a.py",
        "prepare-commit-msg 2 a = 2 a.py",
        "commit-msg 1 a = 2 a.py",
        "post-commit 0 a = 2 ",
    ]


@pytest.mark.parametrize("hook", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_failing_hook_refuses_with_its_line(repo: Repo, hook: str) -> None:
    repo.hook(hook, "echo checking; printf '\\033[31mline 3 is too long\\033[0m\\n' >&2; exit 1")
    head = repo.room.head()
    with pytest.raises(RageError, match=f"The {hook} hook refused .*line 3 is too long") as caught:
        repo.deliver({"a.py": "a = 2\n"})
    assert "\033" not in caught.value.line() and "\n" not in caught.value.line()
    assert unchanged(repo, head)


@pytest.mark.parametrize("hook", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_hook_that_changes_content_pauses(repo: Repo, hook: str) -> None:
    repo.hook(hook, "echo formatted >> a.py; git add a.py")
    head = repo.room.head()
    with pytest.raises(RageError, match=f"The {hook} hook changes what was checked: a.py"):
        repo.deliver({"a.py": "a = 2\n"})
    assert unchanged(repo, head)


def test_hook_that_commits_by_itself_moves_nothing_further(repo: Repo) -> None:
    repo.hook(
        "pre-commit",
        'git update-ref HEAD "$(git commit-tree -p HEAD -m sneaked HEAD^{tree})"',
    )
    with pytest.raises(RageError, match="could not be moved"):
        repo.deliver({"a.py": "a = 2\n"})
    assert repo.git("log", "-1", "--format=%s") == "sneaked"


def test_reference_transaction_hook_can_refuse(repo: Repo) -> None:
    repo.hook("reference-transaction", "echo frozen >&2; exit 1")
    head = repo.room.head()
    with pytest.raises(RageError, match="could not be moved"):
        repo.deliver({"a.py": "a = 2\n"})
    assert unchanged(repo, head)


def test_commit_msg_hook_may_add_to_the_message(repo: Repo) -> None:
    repo.hook("commit-msg", 'git interpret-trailers --in-place --trailer "Change-Id: I1" "$1"')
    repo.hook("prepare-commit-msg", 'printf "PROJ-1 %s" "$(cat "$1")" > "$1"')
    commit = repo.deliver({"a.py": "a = 2\n"})
    assert repo.room.find(RUN, "5") == commit
    assert repo.git("log", "-1", "--format=%s") == "PROJ-1 Fix the parser (#5)"
    assert "Change-Id: I1" in repo.git("log", "-1", "--format=%b")


@pytest.mark.parametrize(
    "script",
    [
        'echo "only this" > "$1"',
        'sed -i s/verified/unverified/ "$1"',
        'echo "Rage-Item: 6" >> "$1"',
    ],
)
def test_hook_that_changes_the_trailers_is_refused(repo: Repo, script: str) -> None:
    repo.hook("commit-msg", script)
    head = repo.room.head()
    with pytest.raises(RageError, match="changed the trailers"):
        repo.deliver({"a.py": "a = 2\n"})
    assert unchanged(repo, head)


def test_failing_post_commit_hook_changes_nothing(repo: Repo) -> None:
    repo.hook("post-commit", "exit 1")
    assert repo.deliver({"a.py": "a = 2\n"}) == repo.room.head()


def test_hooks_path_in_the_work_tree_as_husky_has_it(repo: Repo) -> None:
    repo.commit_all({".husky/pre-commit": "#!/usr/bin/env sh\necho husky says no >&2\nexit 1\n"})
    (repo.path / ".husky/pre-commit").chmod(0o755)
    repo.git("config", "core.fileMode", "false")
    repo.git("config", "core.hooksPath", ".husky")
    with pytest.raises(RageError, match="husky says no"):
        repo.deliver({"a.py": "a = 2\n"})


def test_hook_finds_no_terminal_and_no_input(repo: Repo) -> None:
    log = repo.path.parent / "log"
    repo.hook(
        "pre-commit",
        f'(if read x; then echo input; else echo none; fi; echo "$GIT_TERMINAL_PROMPT";'
        f' (: > /dev/tty) 2>/dev/null && echo tty || echo no tty) > "{log}"',
    )
    session = repo.path.parent / "session"
    repo.hook("commit-msg", f'ps -o sess= -p $$ > "{session}"')
    repo.deliver({"a.py": "a = 2\n"})
    assert log.read_text().split("\n")[:3] == ["none", "0", "no tty"]
    # A session of its own has no controlling terminal even where the tests have one.
    assert int(session.read_text()) != os.getsid(0)


def test_hanging_hook_is_ended_with_all_it_started(repo: Repo) -> None:
    pid = repo.path.parent / "pid"
    repo.hook("pre-commit", f"setsid sh -c 'echo $$ > \"{pid}\"; exec sleep 300' & sleep 300")
    head, began = repo.room.head(), time.monotonic()
    repo.room = DeliverRoom(repo.path, repo.state, GitConfig(), limit_s=2)
    with pytest.raises(RageError, match="git hook run pre-commit did not end within 2 seconds"):
        repo.deliver({"a.py": "a = 2\n"})
    assert time.monotonic() - began < 20
    assert unchanged(repo, head)
    assert not _alive(int(pid.read_text()))


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_daemon_of_a_hook_holds_nobody_up(repo: Repo) -> None:
    pid = repo.path.parent / "pid"
    repo.hook("pre-commit", f'sleep 300 & echo $! > "{pid}"')
    began = time.monotonic()
    try:
        repo.deliver({"a.py": "a = 2\n"})
        assert time.monotonic() - began < 20
    finally:
        os.kill(int(pid.read_text()), 9)


def _signer(repo: Repo, script: str) -> Path:
    program = repo.path.parent / "signer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", str(program))
    return program


def test_commit_is_signed_where_the_person_signs(repo: Repo) -> None:
    _signer(
        repo,
        "cat > /dev/null; echo '[GNUPG:] SIG_CREATED D' >&2;"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'",
    )
    commit = repo.deliver({"a.py": "a = 2\n"})
    assert "gpgsig -----BEGIN PGP SIGNATURE-----" in repo.git("cat-file", "commit", commit)
    assert repo.room.find(RUN, "5") == commit


def test_signing_that_fails_is_no_commit(repo: Repo) -> None:
    _signer(repo, "echo 'gpg: no pinentry' >&2; exit 2")
    head = repo.room.head()
    with pytest.raises(RageError, match="The commit could not be signed"):
        repo.deliver({"a.py": "a = 2\n"})
    assert unchanged(repo, head)


def test_signing_that_waits_for_a_passphrase_is_ended(repo: Repo) -> None:
    _signer(repo, "sleep 300")
    head = repo.room.head()
    repo.room = DeliverRoom(repo.path, repo.state, GitConfig(), limit_s=2)
    with pytest.raises(RageError, match="did not end within 2 seconds"):
        repo.deliver({"a.py": "a = 2\n"})
    assert unchanged(repo, head)
