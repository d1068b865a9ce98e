"""What a backlog is refused for: the message names the file, the line, and what to write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rage_plugin.core.errors import RageError, Refused, UsageError

from .conftest import MakeRoom, Tree, write_tree


def refusal(make_room: MakeRoom, tree: Tree, target: str = "backlog", *sources: str) -> str:
    with pytest.raises(RageError) as caught:
        make_room(tree, *sources).resolve(target)
    line = caught.value.line()
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"1.md": "Depends on #1"}, "An item depends on itself: #1 → #1"),
        ({"1.md": "Depends on #7"}, "There is no item 7: #1 → #7"),
        (
            {"1.md": "Depends on #2", "2.md": "Depends on #3", "3.md": "blocked by #2"},
            "The dependencies form a cycle: #2 → #3 → #2",
        ),
        ({"1.md": "- [ ] #9"}, "There is no item 9, which epic 1 lists: #1 → #9"),
        ({"1.md": "Parent: #2", "2.md": "Parent: #1"}, "is a part of itself: #1 → #2 → #1"),
        (
            {"1.md": "Parent: #2\nDepends on #2", "2.md": ""},
            "an epic that it is a part of: #1 → #2",
        ),
        ({"1.md": "Parent: #2\n\nparent: #3"}, "backlog/1.md:3: a second parent, #3 beside #2"),
        ({"1.md": "", "01-a.md": ""}, "#1 is backlog/01-a.md:1 and backlog/1.md:1"),
        ({"ü ß.md": "---\nid: x\n---", "x.md": ""}, "#x is backlog/x.md:1 and backlog/ü ß.md:1"),
        ({"---.md": ""}, "backlog/---.md:1: the file's name gives no id: write `id: 5`"),
    ],
)
def test_structure(make_room: MakeRoom, tree: Tree, expected: str) -> None:
    """F033, F080: cycles, missing ids, self-edges and colliding ids with their path."""
    assert expected in refusal(make_room, {f"backlog/{k}": v for k, v in tree.items()})


def test_a_missing_id_has_the_whole_path(make_room: MakeRoom) -> None:
    """F033: the path from the target to who names the missing id."""
    tree = {"backlog/1.md": "Depends on #2", "backlog/2.md": "Depends on #3"}
    assert "There is no item 3: #1 → #2 → #3" in refusal(make_room, tree, "#1")


def test_what_lies_outside_the_target_does_not_matter(make_room: MakeRoom) -> None:
    tree = {"backlog/1.md": "", "backlog/2.md": "Depends on #99"}
    assert [s.id for s in make_room(tree).resolve("1")] == ["1"]


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("id: [1]", ":2: id must be one id"),
        ("title: {a: 1}", ":2: title must be text"),
        ("title: a\nstatus: opne", ":3: status must be a word like open"),
        ("status: opne", "did you mean open?"),
        ("depends_on: {a: 1}", ":2: depends_on must be ids, e.g. `[4, 7]`"),
        ("depends_on:\n  - 4\n  - {a: b}", ":4: depends_on must be ids"),
        ("depends_on: after the parser", ":2: depends_on must be ids"),
        ("depends_on: #login", ":2: what follows `#` is a comment in YAML"),
        ("depends_on: [#login]", ":2: not YAML"),
        ("parent: [1, 2]", ":2: parent must be one id"),
        ("priority: soon", ":2: priority must be a whole number or one of critical, urgent"),
        ("priority: true", ":2: priority must be"),
        ("priority: 1.5", ":2: priority must be"),
        ("labels: {a: b}", ":2: labels must be words"),
        ("gates: [[a]]", ":2: gates must be a list of text"),
        ("gates:\n- a\n- 5", ":4: gates must be a list of text"),
        ("gates: --co", "not beginning with `-`"),
        ("gates: ['@file']", "not beginning with `@`"),
        ("gates: [../x.py]", "not outside it"),
        ("gates: [/etc/x.py]", "not outside it"),
        ('gates: ["a\\nb"]', "without control characters"),
        ("unseal: ['']", "not empty"),
        ("estimate: 20k", ":2: estimate must be keys of its own, e.g. `{tokens: 20k, files: 3}`"),
        ("estimate: [20k]", ":2: estimate must be keys of its own"),
        ("estimate:\n  token: 20k", ":3: estimate.token is not a key; did you mean tokens?"),
        ("estimate: {cost: 5}", "estimate.cost is not a key; known are tokens, files, lines"),
        ("estimate:\n  files: 3\n  lines: 0", ":4: estimate.lines must be a whole number above 0"),
        ("estimate: {tokens: 1.5}", "estimate.tokens must be a whole number above 0, e.g. `20k`"),
        ("estimate: {tokens: -20k}", "estimate.tokens must be"),
        ("estimate: {tokens: 20g}", "estimate.tokens must be"),
        ("estimate: {tokens: 1.5k}", "estimate.tokens must be"),
        ("estimate: {tokens: #5}", "estimate.tokens must be"),
        ("estimate: {tokens: none}", "leave it out where it is not known"),
        ("estimate: {tokens: }", "estimate.tokens must be"),
        ("estimate: {tokens: true}", "estimate.tokens must be"),
        ("estimate: {tokens: [5]}", "estimate.tokens must be"),
        ("estimate: {tokens: 0k}", "estimate.tokens must be"),
        ("estimate: {tokens: 99999999999999999}", "estimate.tokens must be"),
        ("estimate: {files: 3k}", "estimate.files must be a whole number above 0, e.g. `3`"),
        ("estimate: {files: three}", "estimate.files must be"),
        ("estimate: {files: 1, files: 2}", ":2: the key `files` stands twice"),
        ("id: &a 1\nparent: *a", ":2: anchors and aliases are not allowed"),
        ("id: !!int 5", ":2: the tag"),
        ("id: 1\nid: 2", ":3: the key `id` stands twice, first on line 2"),
        ("id: 1\n\ttitle: x", ":3: a tab cannot indent"),
        ("title: a: b", ":2: a value that holds `: ` must be quoted"),
        ("just words", ":2: front matter must be `key: value` lines"),
        ("- a", ":2: front matter must be `key: value` lines"),
        ("id: [", ": not YAML"),
        ("? [a]\n: b", ": a key must be a word"),
        ("a: " + "[" * 40, ":2: nested deeper than 20 levels"),
    ],
)
def test_front_matter(make_room: MakeRoom, front: str, expected: str) -> None:
    """F096: wrong types, duplicates, anchors and tags, each with file and line."""
    message = refusal(make_room, {"backlog/3 x.md": f"---\n{front}\n---\n"})
    assert message.startswith("backlog/3 x.md:")
    assert expected in message


def test_front_matter_that_does_not_end(make_room: MakeRoom) -> None:
    tree = {"backlog/1.md": "---\nid: 5\n# Title\n"}
    assert "backlog/1.md:1: the front matter does not end" in refusal(make_room, tree)


def test_a_rule_at_the_top_is_no_front_matter(make_room: MakeRoom) -> None:
    bodies = {
        "1": "---\n",
        "2": "---\n\ntext",
        "3": "--- x\na: 1\n---\n",
        "4": "\n---\nid: 9\n---\n",
    }
    specs = make_room({f"backlog/{k}.md": v for k, v in bodies.items()}).resolve("backlog")
    assert {s.id: s.body for s in specs} == bodies


def test_every_unreadable_file_is_named(make_room: MakeRoom, workspace: Path) -> None:
    """F032: one unreadable source refuses the run, with the whole list."""
    write_tree(
        workspace,
        {
            "backlog/1-ok.md": "",
            "backlog/2-latin.md": "a\nb\nGröße".encode("latin-1"),
            "backlog/3-bin.md": b"a\0b",
            "backlog/4-utf16.md": "x".encode("utf-16"),
            "backlog/5-huge.md": b"x" * ((1 << 20) + 1),
            "backlog/6-folder.md/x.txt": "",
            "backlog/7-front.md": "---\nid: []\n---",
            "outside/secret.md": "",
        },
    )
    inside = workspace / "backlog"
    (inside / "8-dangling.md").symlink_to("nowhere.md")
    (workspace.parent / "out.md").write_text("")
    (inside / "9-out.md").symlink_to(workspace.parent / "out.md")
    (inside / "up").symlink_to(workspace.parent)
    os.mkfifo(inside / "fifo.md")
    message = refusal(make_room, {}, "#1")
    assert message.startswith("10 backlog files cannot be read: ")
    for part in (
        "backlog/2-latin.md:3: not UTF-8 (byte 0xf6)",
        "backlog/3-bin.md is binary",
        "backlog/4-utf16.md is binary or UTF-16",
        "backlog/5-huge.md is larger than 1 MiB",
        "backlog/6-folder.md is a folder with the name of a markdown file",
        "backlog/7-front.md:2: id must be one id",
        "backlog/8-dangling.md is a symlink to nothing",
        "backlog/9-out.md leads out of the workspace",
        "backlog/up leads out of the workspace",
        "backlog/fifo.md is neither a file nor a folder",
    ):
        assert part in message
    assert "1-ok" not in message


def test_names_that_are_not_utf8_or_hold_a_newline(make_room: MakeRoom, workspace: Path) -> None:
    write_tree(workspace, {"backlog/5-a\nb.md": "", "backlog/6-x.md": ""})
    assert [s.title for s in make_room({}).resolve("backlog")] == ["a b", "x"]
    (workspace / "backlog" / os.fsdecode(b"7-\xff.md")).write_bytes(b"")
    assert "has a name that is not UTF-8" in refusal(make_room, {})


def test_a_symlink_inside_is_followed_once(make_room: MakeRoom, workspace: Path) -> None:
    write_tree(workspace, {"backlog/sub/1.md": "", "elsewhere/2.md": ""})
    (workspace / "backlog" / "loop").symlink_to(workspace / "backlog")
    (workspace / "backlog" / "more").symlink_to(workspace / "elsewhere")
    assert [s.id for s in make_room({}).resolve("backlog")] == ["1", "2"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(make_room: MakeRoom, workspace: Path) -> None:
    write_tree(workspace, {"backlog/1.md": ""})
    (workspace / "backlog" / "1.md").chmod(0)
    assert "backlog/1.md cannot be read: Permission denied" in refusal(make_room, {})


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("#55", "There is no item 55: the backlog holds #1, #login. Next: rage plan backlog"),
        ("lgoin", "did you mean #login?"),
        ("epic:1", "Item 1 is not an epic"),
        ("nothing.md", "nothing.md does not exist"),
        ("../x.md", "../x.md lies outside the workspace"),
        ("/etc/passwd.md", "lies outside the workspace"),
        ("jira:ABC-1", "No backlog source here reads jira:ABC-1"),
        ("code.py", "There is no backlog that could hold code.py"),
    ],
)
def test_targets(make_room: MakeRoom, target: str, expected: str) -> None:
    tree = {"backlog/1.md": "", "backlog/login.md": "", "code.py": ""}
    assert expected in refusal(make_room, tree, target)


@pytest.mark.parametrize(
    "target", ["", "  ", "#", "epic:", "#5 #6", "#5,#6", "''", "a\0b", "x" * 600]
)
def test_not_a_target(make_room: MakeRoom, target: str) -> None:
    with pytest.raises(UsageError, match=r"target|id"):
        make_room({"backlog/1.md": ""}).resolve(target)


def test_no_backlog_at_all(make_room: MakeRoom) -> None:
    message = refusal(make_room, {"README.md": ""}, "#5")
    assert "There is no backlog that could hold #5. Next: write backlog/1-title.md" in message


def test_sources_must_exist_and_be_markdown(make_room: MakeRoom) -> None:
    message = refusal(make_room, {"a.txt": ""}, "backlog", "gone", "a.txt")
    assert "gone does not exist" in message
    assert "a.txt is not a markdown file" in message


def test_one_id_twice_in_a_list(make_room: MakeRoom) -> None:
    tree = {"BACKLOG.md": "- [ ] #1 A\n- [ ] same\n- [ ] #1 B\n- [ ] Same\n"}
    message = refusal(make_room, tree)
    assert "#1 is BACKLOG.md:1 and BACKLOG.md:3" in message
    assert "#same is BACKLOG.md:2 and BACKLOG.md:4" in message


def test_a_task_of_signs_alone_needs_an_id(make_room: MakeRoom) -> None:
    assert "BACKLOG.md:2: a task without an id" in refusal(
        make_room, {"BACKLOG.md": "\n- [ ] !?\n"}
    )


def test_nothing_is_written(make_room: MakeRoom, workspace: Path) -> None:
    """F158: reading leaves no trace."""
    room = make_room({"backlog/1.md": "# A"})
    before = sorted(workspace.rglob("*"))
    room.resolve("backlog")
    with pytest.raises(Refused):
        room.resolve("#9")
    assert sorted(workspace.rglob("*")) == before
