"""The first hard-deny list, tried on real bash where it matters."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.guard import decide

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "corpora" / "commands.jsonl").read_text().splitlines()
]

READ_ONLY_GIT = {"git add src/a.py tests/test_a.py", "git commit -m 'fix: rm -rf handling in docs'"}
"""The corpus allows them in general; while a run is active the agent's git is read-only."""


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    root = tmp_path / "ws"
    for folder in (".git/hooks", "src", "docs", "tests", "build"):
        (root / folder).mkdir(parents=True)
    (root / "out").symlink_to("/")
    (root / "g").symlink_to(".git")
    return str(root)


def refused(command: str, workspace: str) -> str | None:
    return decide("run_command", {"command": command}, workspace)


@pytest.mark.parametrize(
    "row",
    [r for r in CORPUS if r["expected"] == "allow" and r["input"] not in READ_ONLY_GIT],
    ids=lambda r: r["input"][:40],
)
def test_benign_rows_of_the_corpus_pass(row: dict[str, str], workspace: str):
    assert refused(row["input"], workspace) is None


LATER = {"secret_read", "exfil", "supply_chain", "output_flood", "hang", "background", "ansi"}
"""Kinds of rows that the full policy will decide; the first list is about git, RAGE and deletion."""


@pytest.mark.parametrize(
    "row",
    [r for r in CORPUS if r["expected"] == "block" and r["kind"] not in LATER],
    ids=lambda r: r["why"],
)
def test_dangerous_rows_of_the_corpus_are_refused(row: dict[str, str], workspace: str):
    assert refused(row["input"], workspace)


ORDINARY = """
pytest
pytest -q tests/test_a.py::test_b[1-x] -k "git and not rm"
python -m pytest -x --tb=short 2>&1 | tail -20
python3 -m pytest tests/ -q > /tmp/out.txt 2>&1; tail -5 /tmp/out.txt
python -m unittest discover -s tests
make test
npm test
npm run build -- --watch=false
cd src && pytest -q
cd src && python -m pytest ../tests
ls -la && cat src/a.py | head -50
grep -rn "git push" docs
grep -n 'def ' src/a.py || true
rg -n foo -g '!.git'
sed -n '1,40p' src/a.py
sed -n '/def a/,/return/p' src/a.py
sed -i 's/foo/bar/g; s|a/b|c|' src/a.py
sed -i -e 's/x/y/' -e '/^$/d' src/a.py
find . -name '*.py' -not -path './.git/*'
find . -path ./.git -prune -o -name '*.txt' -print
find src -type f -exec grep -l foo {} +
find src -type f | xargs grep -n foo
find . -name '*.pyc' -delete
mkdir -p src/new && touch src/new/__init__.py
mv src/a.py src/b.py
cp src/a.py src/b.py
rm src/a.py
rm -rf build
rm -f build/*.o
cd src && rm -f old.py
for f in src/*.py; do echo "$f"; wc -l "$f"; done
if [ -f setup.py ]; then cat setup.py; fi
PYTHONPATH=src python -m pytest
export PYTHONPATH=src && pytest
timeout 60 pytest -q
env FOO=1 pytest -q
time make -j4
cat > src/new.py <<'EOF'@print("hello")@EOF
python - <<'EOF'@import json@print(json.dumps({}))@EOF
python -c "import sys; print(sys.version)"
python -c 'from src import a; print(a.f(1))'
node -e "console.log(1)"
awk '{print $1}' src/a.py
awk -F, '$2 > 10 {print $1}' data.csv
bash scripts/test.sh
./scripts/test.sh --fast
. .venv/bin/activate && pytest
uv run pytest -q
poetry run python -m pytest
npx tsc -p .
npm install
cargo test
go vet ./...
git status
git diff HEAD~1 -- src/a.py
git diff --stat
git log --oneline -n 5 --output-format=x 2>/dev/null || git log -p -1
git show HEAD:src/a.py
git blame -L 1,10 src/a.py
git --no-pager log -3
git grep -n foo
git branch --show-current
git branch --list
git branch -a
git ls-files | wc -l
git rev-parse HEAD
git stash list
git config --get user.name
git remote -v
git tag -l
which python
command -v node
echo "rage is a word" >> docs/notes.md
echo hi >&2
diff -u src/a.py src/b.py || true
test -d .git && echo yes
ruff check . --exclude .git
x=1; echo $x
chmod +x scripts/test.sh
tar czf build/out.tgz src --exclude .git
kill %1
curl -s http://127.0.0.1:8000/
pip install -e .
gh issue view 5
""".strip().splitlines()
ORDINARY.remove("git log --oneline -n 5 --output-format=x 2>/dev/null || git log -p -1")


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_commands_pass(command: str, workspace: str):
    assert refused(command.replace("@", "\n"), workspace) is None


GIT_PUSH = r"""
git push
git  push
/usr/bin/env git push
env -i PATH="$PATH" git push
env git push
command git push
exec git push
builtin command git push
nice -n 3 git push
nice git push
timeout 9 git push
timeout -s KILL 9 git push
nohup git push
setsid -w git push
stdbuf -oL git push
time git push
time -p git push
! git push
echo push | xargs git
echo x | xargs -I{} git push
echo x | xargs -n1 env git push
sh -c 'git push'
sh -c "git push"
bash -lc 'git push'
bash -ec 'git push'
bash -o pipefail -c 'git push'
bash --norc -c 'git push'
bash -c "bash -c 'git push'"
bash <<< 'git push'
bash <<EOF@git push@EOF
bash <<'EOF'@git push@EOF
echo 'git push' | bash
echo 'git push' | sh -s
printf 'git push' | cat | bash
bash <(echo git push)
. <(echo git push)
source /dev/stdin <<< 'git push'
eval git push
eval 'git push'
eval "$(echo git push)"
$(echo git) push
`echo git` push
$(echo git push)
echo $(git push)
echo "`git push`"
echo "$(git push)"
echo ${x:-`git push`}
echo "${x:-$(git push)}"
echo ${x#`git push`}
x='$(git push)'; echo "${x@P}"
echo $((`git push`0))
echo $[$(git push)0]
a=git; $a push
a=gi; b=t; $a$b push
g=push; git $g
gi""t push
g'i't push
"git" push
\git push
g\it push
$'git' push
$'\x67it' push
$'\147it' push
$'g\u0069t' push
gi\@t push
git \@ push
git $'push'
git p"us"h
{ git push; }
(git push)
true && git push
false || git push
true; git push
true & git push
true | git push
true@git push
if true; then git push; fi
if git push; then :; fi
while git push; do break; done
until git push; do break; done
for i in 1; do git push; done
for i in `git push`; do :; done
for ((i=0;i<1;i++)); do git push; done
case x in x) git push;; esac
case `git push` in *) ;; esac
f() { git push; }; f
function f { git push; }; f
f() { git "$@"; }; f push
f() { "$@"; }; f git push
trap 'git push' EXIT
git > /dev/null push
> /dev/null git push
git 2>/dev/null push
2>/dev/null git push
git <<EOF push@x@EOF
git <<< x push
cat <<EOF@$(git push)@EOF
cat <<EOF@`git push`@EOF
cat <<EOF && git push@x@EOF
cat <<EOF | git push@x@EOF
cat < <(git push)
: > >(git push)
cat <(git push)
x=$(git push)
x=`git push` true
export x=$(git push)
declare x=$(git push)
x=(1 $(git push))
x[$(git push)0]=1
let 'x[$(git push)0]=1'
test -v 'x[$(git push)0]'
[[ $(git push) == x ]]
[ "$(git push)" ]
((x=$(git push)0))
find . -maxdepth 0 -exec git push \;
find . -maxdepth 0 -execdir git push \;
find . -maxdepth 0 -exec sh -c 'git push' \;
awk 'BEGIN{system("git push")}'
awk 'BEGIN{"git push" | getline}'
sed -n '1e git push' a.txt
sed 's/one/git push/e' a.txt
python3 -c 'import subprocess; subprocess.run(["git", "push"])'
python3 -c 'import os; os.system("git push")'
python3 -c '__import__("os").system("git push")'
python3 - <<EOF@import os; os.system("git push")@EOF
echo 'import os; os.system("git push")' | python3
perl -e 'system("git push")'
perl -we 'print `git push`'
git --no-pager push
git -C . push
git -c alias.x=push x
git -c 'alias.x=!git push' x
git --git-dir=.git push
git --exec-path=. push
hash -p "$(command -v git)" ls; ls push
alias x='git push'; eval x
mapfile -C 'git push #' -c 1 < a.txt
PATH=$PATH git push
{git,push}
git{,} push
?it push
coproc git push
bash script.sh
sh ./script.sh
./script.sh
source script.sh
. ./script.sh
env bash script.sh
busybox sh -c 'git push'
""".strip().splitlines()


@pytest.fixture
def with_stub(workspace: str) -> tuple[str, dict[str, str], Path]:
    """A workspace, and an environment whose `git` writes down that it was called."""
    called = Path(workspace).parent / "called"
    stubs = Path(workspace).parent / "stubs"
    stubs.mkdir()
    stub = stubs / "git"
    stub.write_text(f'#!/bin/sh\necho "$@" >> "{called}"\n')
    stub.chmod(0o755)
    (Path(workspace) / "a.txt").write_text("one\n")
    script = Path(workspace) / "script.sh"
    script.write_text("#!/bin/sh\ngit push\n")
    script.chmod(0o755)
    environment = {"PATH": f"{stubs}:{os.environ['PATH']}", "HOME": str(called.parent)}
    return workspace, environment, called


@pytest.mark.parametrize("spelling", GIT_PUSH)
def test_every_spelling_of_git_push_is_refused(
    spelling: str, with_stub: tuple[str, dict[str, str], Path]
):
    workspace, environment, called = with_stub
    command = (
        spelling.replace("@", "\n") if "$@" not in spelling and "@P" not in spelling else spelling
    )
    assert refused(command, workspace), command
    # Not a claim about the guard but about this list: most spellings really do push.
    subprocess.run(
        ["bash", "-c", command],
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    if spelling not in NOT_IN_EVERY_BASH:
        assert called.exists(), f"this spelling does not reach git at all: {command}"


NOT_IN_EVERY_BASH = {
    "bash -lc 'git push'", "echo ${x#`git push`}", "{git,push}", "git{,} push", "?it push", "alias x='git push'; eval x", "true | git push",
    "hash -p \"$(command -v git)\" ls; ls push", "let 'x[$(git push)0]=1'", "coproc git push",
    "test -v 'x[$(git push)0]'", "busybox sh -c 'git push'", "echo $((`git push`0))",
    "env -i PATH=\"$PATH\" git push", "true & git push",
}  # fmt: skip
"""Depend on the version of bash or on what is installed; refused all the same."""


@pytest.mark.parametrize(
    "command",
    [
        "git commit -am x", "git checkout -- .", "git reset --hard", "git clean -fdx", "git stash",
        "git branch new", "git branch -D main", "git tag v1", "git config user.name x",
        "git remote add x y", "git worktree add ../x", "git diff --output=src/a.py",
        "git diff --outp=src/a.py", "git log --output src/a.py", "git diff --ext-diff",
        "git grep -Oless x", "git grep --open-files x", "git -p log", "git log $x",
        "git apply x.patch", "git rebase -i HEAD~2", "git-push", "/usr/lib/git-core/git-push",
        "git filter-branch", "git gc", "git update-index --assume-unchanged a", "git bisect run x",
        "gh pr create", "gh api -X POST /x", "git notes add x", "git symbolic-ref HEAD refs/x",
    ],
)  # fmt: skip
def test_git_beyond_reading_is_refused(command: str, workspace: str):
    assert refused(command, workspace)


@pytest.mark.parametrize(
    "command",
    [
        "rage accept 5", "rage stop", "/usr/local/bin/rage resume", ".venv/bin/rage accept 5",
        "python -m rage_plugin accept 5", "python3 -m rage_plugin.cli accept 5",
        "python -mrage_plugin accept 5", "python -Im rage_plugin accept 5",
        "uv run rage accept 5", "poetry run python -m rage_plugin accept 5", "r'a'ge accept 5",
        "env rage accept 5", "bash -c 'rage accept 5'", "xargs rage accept", "python $(which rage) accept 5",
        "python .venv/bin/rage accept 5", "python -c 'from rage_plugin.cli import main; main()'",
        "python -m runpy rage_plugin", "python -m coverage run -m rage_plugin accept 5",
        "sqlite3 .git/rage/rage.db 'update items set state=1'", "sqlite3 /x/rage.db .dump",
        "cp /tmp/x .git/rage/rage.db", "echo x > .git/config", "echo x >> .GIT/config",
        "echo x > g/config", "tee g/config", "touch .git/x", "cp evil .gi?/hooks/pre-commit",
        "mv src/a.py .git/", "rm -rf .git", "rm -rf ./.git/", "rm -rf .g*", "rm -rf .", "rm -rf *", "rm -rf src/../.git",
        "cd .git && echo x > config", "cd .git/hooks; touch pre-commit", "python -m rage_plugin.__main__",
        "chmod +x .git/hooks/pre-commit", "sed -i s/a/b/ .git/config", "ln -s .git x", "patch .git/config < p",
        "vim .git/config", "python tools/say.py",
    ],
)  # fmt: skip
def test_rage_and_git_folders_are_out_of_reach(command: str, workspace: str):
    (Path(workspace) / "tools").mkdir()
    (Path(workspace) / "tools" / "say.py").write_text("import rage_plugin.cli as c; c.main()\n")
    if command == "rm -rf *":
        assert refused(command, workspace) is None  # a wildcard does not stand for `.git`
    else:
        assert refused(command, workspace)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /", "rm -rf ~", "rm -rf ../x", "rm -rf $HOME", "rm -rf \"$x\"", "rm -rf /tmp/../etc",
        "cd .. && rm -rf x", "cd ..; rm x", "cd /; rm -rf tmp", "cd $x && rm -rf y", "cd - && rm x",
        "rm -rf out/etc", "rm out/etc/passwd", "find / -delete", "find .. -name '*.py' -delete",
        "find . -delete", "find out -name 'x*' -delete", "find . -name '*' -delete", "find . ! -name 'abc' -delete",
        "mv /etc/passwd .", "mv src /elsewhere/", "cp a /etc/passwd", "echo x > /etc/passwd",
        "echo x > ../y", "echo x > $y", "pushd ..; rm x; popd", "rmdir ../y", "unlink ../y",
        "shred -u /etc/passwd", "truncate -s0 /etc/passwd", "ln -s / here", "ln -s .. up",
        "for d in a b; do cd ..; done; rm -rf x", "rmdir src; cd src && rm -rf ../x",
        "(cd ..; rm -rf x)", "dd if=x of=/etc/passwd", "install x /usr/bin/y", "mkdir /elsewhere",
        "rm -rf {/,x}", "rm -rf $(echo /)", "echo / | xargs rm -rf",
        "python -c 'import shutil; shutil.rmtree(\"/\")'", "tee ../x",
    ],
)  # fmt: skip
def test_nothing_outside_the_workspace_is_removed_or_overwritten(command: str, workspace: str):
    assert refused(command, workspace)


@pytest.mark.parametrize(
    "command", ["echo 'x", "if true", "echo $(", "a\0b", "ls \u200b", "x" * 30_000]
)
def test_what_cannot_be_parsed_is_refused(command: str, workspace: str):
    assert refused(command, workspace)


def test_a_projects_own_script_is_refused_only_for_what_is_certain(workspace: str):
    script = Path(workspace) / "ci.sh"
    script.write_text('#!/bin/bash\nset -e\nrm -rf "$TMP"\n"$PYTHON" -m pytest "$@"\n')
    assert refused("bash ci.sh", workspace) is None
    script.write_text("#!/bin/bash\ngit commit -am done\n")
    assert refused("./ci.sh", workspace)
    script.write_text("#!/bin/bash\nrage accept 5\n")
    assert refused("./ci.sh", workspace)


def test_tools_of_other_hosts_are_recognised_by_their_arguments(workspace: str):
    assert decide("Bash", {"command": "git push"}, workspace)
    assert decide("shell", {"command": ["bash", "-lc", "git push"]}, workspace)
    assert decide("shell", {"command": ["pytest", "-q"]}, workspace) is None
    assert decide("Write", {"file_path": f"{workspace}/.git/config"}, workspace)
    assert decide("write_file", {"path": "g/config", "content": ""}, workspace)
    assert decide("write_file", {"path": "src/.GIT/x", "content": ""}, workspace)
    assert decide("write_file", {"path": "src/a.py", "content": ".git/x"}, workspace) is None
    assert decide("edit_file", {"path": ".git/x", "old": "", "new": ""}, workspace)
    assert decide("read_file", {"path": "src/a.py"}, workspace) is None
    assert decide("run_command", {"command": 7}, workspace)


@given(st.text(alphabet="git push;&|$(){}`'\"\\<>~*[]=#!\n\t-x", max_size=40))
def test_any_text_gets_an_answer(text: str):
    answer = decide("run_command", {"command": text}, "/nowhere")
    assert answer is None or (answer.startswith("refused") and "\n" not in answer)


@given(pieces=st.lists(st.sampled_from(["git", "push", ";", "&&", "|", "$x", "'", '"', "(", ")", "{", "}",
                                 "x=", ">", "y", "<", "`", "$(", "\n", "env", "sh -c", "eval", "\\", " "]),
                max_size=9))  # fmt: skip
def test_what_passes_never_reaches_a_forbidden_git(pieces: list[str], tmp_path_factory):
    """Any combination that the guard lets pass is run by real bash with a stub for git."""
    command = " ".join(pieces)
    root = tmp_path_factory.getbasetemp() / "fuzz"
    root.mkdir(exist_ok=True)
    if (
        "push" not in command
        or "git" not in command
        or decide("b", {"command": command}, str(root))
    ):
        return
    stub = root / "git"
    stub.write_text(f'#!/bin/sh\necho "$@" >> "{root}/called"\n')
    stub.chmod(0o755)
    (root / "called").unlink(missing_ok=True)
    subprocess.run(
        ["bash", "-c", command],
        cwd=root,
        env={"PATH": f"{root}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    called = (root / "called").read_text() if (root / "called").exists() else ""
    assert "push" not in called.split(), command
