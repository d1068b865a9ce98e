"""The profile: what may be written comes out as it was meant, anything else with its line."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rage_plugin.core.config import CheckCommand, Limits, ProjectConfig
from rage_plugin.core.errors import Refused
from rage_plugin.profile import NAMES, load_profile, parse_profile, profile_reference

FULL = """\
project: {id: demo-1, name: Größe, type: python_backend}
sources: [backlog, docs/plan.md]
verification:
  commands:
    - name: unit
      command: [pytest, -q, "{targets}"]
      timeout_s: 90
      cwd: packages/core
    - name: lint
      command: [ruff, check, .]
      required: false
    - {name: js, command: [npx, jest, "--outputFile={junit}", "{targets}"]}
  prepare: [make, build]
  tests: ["tests/**/*.py"]
  accept: given
  unseal: [tests/conftest.py]
  sealed: ["fixtures/**"]
  env_allow: [DATABASE_URL, LANG]
  output_limit: 5000
  isolation: scratch
limits:
  max_iterations: 3
  run_iterations: none
  item_tokens: none
  run_tokens: none
  wall_seconds: 1.5
  token_multiple: none
  scope_multiple: 1.5
  max_fix_attempts: 1
  noop_turns: 1
  provider_errors: 9
  same_action: 1
  alert_at: 1
  on_failed_item: pause
git: {commit: false, protected: [trunk]}
packet: {tokens: 150, brief_tokens: 900}
markers: {code_fences: false}
activation: {auto: true}
"""


def refusal(text: str, name: str = "rage.yaml") -> str:
    with pytest.raises(Refused) as caught:
        parse_profile(text, name)
    line = caught.value.line()
    assert "\n" not in line
    assert line.startswith(name)
    return line


def command(*argv: str, **more: object) -> str:
    keys = "".join(f", {k}: {v}" for k, v in more.items())
    return f"verification: {{commands: [{{name: a, command: {json.dumps(argv)}{keys}}}]}}"


def test_everything_that_may_be_written() -> None:
    """F096, F097, F105: each key arrives where the rest of RAGE looks for it."""
    config = parse_profile(FULL, "rage.yaml", "abc")
    assert (config.id, config.name, config.type) == ("demo-1", "Größe", "python_backend")
    assert config.sources == ("backlog", "docs/plan.md")
    verify = config.verification
    assert verify.commands == (
        CheckCommand("unit", ("pytest", "-q", "{targets}"), True, 90.0, "packages/core", "none"),
        CheckCommand("lint", ("ruff", "check", "."), required=False),
        CheckCommand("js", ("npx", "jest", "--outputFile={junit}", "{targets}"), report="junit"),
    )
    assert (verify.prepare, verify.tests) == (("make", "build"), ("tests/**/*.py",))
    assert (verify.accept, verify.isolation, verify.output_limit) == ("given", "scratch", 5000)
    assert (verify.unseal, verify.sealed) == (("tests/conftest.py",), ("fixtures/**",))
    assert verify.env_allow == ("DATABASE_URL", "LANG")
    assert config.limits == Limits(
        max_iterations=3,
        run_iterations=None,
        item_tokens=None,
        run_tokens=None,
        wall_seconds=1.5,
        max_fix_attempts=1,
        noop_turns=1,
        provider_errors=9,
        same_action=1,
        alert_at=1.0,
        token_multiple=None,
        scope_multiple=1.5,
        on_failed_item="pause",
    )
    assert config.scan_code_fences is False
    assert (config.git.commit, config.git.protected) == (False, ("trunk",))
    assert (config.packet.tokens, config.packet.brief_tokens) == (150, 900)
    assert (config.activation_auto, config.path, config.hash) == (True, "rage.yaml", "abc")


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "---\n", "project: {}\nlimits: {}\n"])
def test_what_is_not_written_is_the_default(text: str) -> None:
    assert parse_profile(text) == dataclasses.replace(ProjectConfig(), path="rage.yaml")


def test_json_is_a_profile_too() -> None:
    text = (
        '{\n\t"project": {"name": "a\\/b \\ud83d\\ude00 \\u00fc"},\n'
        '\t"limits":{"run_tokens":"none","wall_seconds":5},\n\t"activation":{"auto":true}\n}\n'
    )
    config = parse_profile(text, "rage.json")
    assert config.name == "a/b \U0001f600 ü"
    assert (config.limits.run_tokens, config.limits.wall_seconds) == (None, 5)
    assert refusal('{\n\t"limits": {\n\t\t"run_tokens": null}}', "rage.json").startswith(
        "rage.json:3: limits.run_tokens must be above 0"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1", ":1: a is not a key; known are project, sources, verification"),
        ("\nlimit: {}", ":2: limit is not a key; did you mean limits?"),
        ("git:\n  comit: true", ":2: git.comit is not a key; did you mean commit?"),
        (
            "verification:\n  commands:\n  - name: a\n    command: [x]\n    timout_s: 5",
            ":5: verification.commands[0].timout_s is not a key; did you mean timeout_s?",
        ),
        ("project: {id: 'a b'}", "project.id must be of letters"),
        ("project: {name: yes}", "project.name must be text: quote it"),
        ("project: {name: [a]}", "project.name must be text"),
        ("project: {type: rust}", "project.type must be one of 'generic'"),
        ("project: text", "project must hold keys of its own"),
        ("project:\nsources: []", ":1: project holds nothing"),
        ("sources: backlog", "sources must be a list, e.g. [backlog]"),
        ("sources: [/etc]", "sources[0] must be a path relative to the workspace"),
        ("sources: [a/../../b]", "sources[0] must not leave the workspace"),
        ("sources: [a, a]", "sources names a twice"),
        ("verification:\n  commands:\n    - command: [x]", ":3: verification.commands[0].name is"),
        ("verification:\n  commands:\n  - name: a", "verification.commands[0].command is missing"),
        ("verification: {commands: {a: b}}", "verification.commands must be a list"),
        ("verification: {commands: [pytest]}", "commands[0] must hold keys of its own"),
        ("verification: {accept: green}", "must be one of 'red_green', 'given' or 'suite'"),
        ("verification: {isolation: docker}", "must be one of 'auto', 'overlay', 'swap'"),
        ("verification: {output_limit: 5}", "must be at least 1000"),
        ("verification: {prepare: make}", "verification.prepare must be a list, e.g. [make]"),
        ("verification: {tests: [5]}", "verification.tests[0] must be text: quote it"),
        (command("x", timeout_s=0), "timeout_s must be above 0"),
        (command("x", timeout_s="none"), "timeout_s must be a number of seconds"),
        (command("x", timeout_s=".inf"), "timeout_s must be at most 86400"),
        (command("x", required="no way"), "required must be true or false"),
        (command("x", required=1), "required must be true or false"),
        (command("x", report="tap"), "report must be one of 'none', 'junit' or 'pytest'"),
        (command("x", report="junit"), "needs {junit} in the command"),
        (command("x", cwd="/tmp"), "cwd must be a path relative to the workspace"),
        (command("x", cwd="a/../.."), "cwd must not leave the workspace"),
        (command("x", required="false"), "has no required command"),
        (command(), "command must name a program"),
        (command(""), "command must name a program"),
        ("verification: {commands: [{name: '', command: [x]}]}", "name must not be empty"),
        (
            "verification: {commands: [{name: a, command: [x]}, {name: a, command: [y]}]}",
            "verification.commands names a twice",
        ),
        ("limits: {noop_turns: none}", "must be a whole number: this one is always finite"),
        ("limits: {max_fix_attempts: 0}", "must be at least 1"),
        ("limits: {run_tokens: 1.5}", "limits.run_tokens must be a whole number"),
        ("limits: {run_tokens: '5'}", "limits.run_tokens must be a whole number"),
        ("limits: {run_tokens: -1}", "limits.run_tokens must be at least 1"),
        ("limits: {run_tokens: true}", "limits.run_tokens must be a whole number"),
        ("limits: {wall_seconds: 8h}", "limits.wall_seconds must be a number of seconds"),
        ("limits: {wall_seconds: .nan}", "limits.wall_seconds must be"),
        ("limits: {same_action: 0}", "limits.same_action must be at least 1"),
        ("limits: {same_action: none}", "must be a whole number: this one is always finite"),
        ("limits: {alert_at: 0}", "limits.alert_at must be above 0"),
        ("limits: {alert_at: 80}", "limits.alert_at must be at most 1"),
        ("limits: {alert_at: 80%}", "limits.alert_at must be a number"),
        ("limits: {alert_at: none}", "limits.alert_at must be a number"),
        ("limits: {alert_at: }", "limits.alert_at must be a number"),
        ("limits: {alert_at: .nan}", "limits.alert_at must be"),
        ("limits: {alert_at: true}", "limits.alert_at must be a number"),
        ("limits: {token_multiple: 1}", "limits.token_multiple must be above 1"),
        ("limits: {token_multiple: 2x}", "limits.token_multiple must be a number"),
        ("limits: {scope_multiple: .inf}", "limits.scope_multiple must be a number"),
        ("limits: {scope_multiple: -2}", "limits.scope_multiple must be above 1"),
        ("markers: {code_fences: none}", "markers.code_fences must be true or false"),
        ("markers: {fences: true}", "markers.fences is not a key; did you mean code_fences?"),
        ("limits: {on_failed_item: skip}", "must be one of 'next' or 'pause'"),
        ("git: {protected: ['']}", "git.protected[0] must not be empty"),
        ("packet: {tokens: 201}", "packet.tokens must be at most 200"),
        ("packet: {brief_tokens: 1501}", "packet.brief_tokens must be at most 1500"),
        ("activation: {auto: 1}", "activation.auto must be true or false"),
        ("- a", ":1: the profile must be `key: value` lines"),
        ("just text", ":1: the profile must be `key: value` lines"),
        ("git: {}\ngit: {}", ":2: the key `git` stands twice, first on line 1"),
        ("a: &x {}\nb: *x", ":1: anchors and aliases are not allowed"),
        ("a: {}\nb: *x", ":2: anchors and aliases are not allowed"),
        ("git: !!python/object/apply:os.system [ls]", "is not allowed: write a plain value"),
        ("git: !!map {}", ":1: the tag"),
        ("git:\n\tcommit: true", ":2: a tab cannot indent"),
        ("git: {}\n---\ngit: {}", ":2: only one YAML document"),
        ("git: {commit: true", "not YAML"),
        ("project: {name: a\x07}", ":1: the character '\\x07' cannot stand in YAML"),
        ("a: " + "[" * 100_000, "nested deeper than 20 levels"),
        ('project: {name: "\\ud800"}', "half a character"),
    ],
)
def test_refused(text: str, expected: str) -> None:
    """F096, F101: unknown keys, wrong types, duplicates, contradictions: path and line."""
    assert expected in refusal(text)


@pytest.mark.parametrize("value", ["0", "null", "~", "", "0.0"])
@pytest.mark.parametrize(
    "key",
    [
        *("max_iterations", "run_iterations", "item_tokens", "run_tokens", "wall_seconds"),
        *("token_multiple", "scope_multiple"),
    ],
)
def test_no_limit_must_be_written_out(key: str, value: str) -> None:
    """F046, F117, F147: only `none` is unlimited."""
    message = refusal(f"limits:\n  {key}: {value}")
    assert f"rage.yaml:2: limits.{key} must be above 0; for no limit write `none`" in message
    assert getattr(parse_profile(f"limits: {{{key}: none}}").limits, key) is None


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("pytest -q tests", "[pytest, -q, tests]"),
        ("\"pytest -k 'a b' {targets}\"", '[pytest, -k, "a b", "{targets}"]'),
        ("make test TOKEN=abc", "[pytest, -q]"),
    ],
)
def test_a_shell_line_is_shown_as_a_list(line: str, written: str) -> None:
    """F101, F119: a command is an argv; what may be a secret is not repeated."""
    text = f"verification:\n  commands:\n    - name: t\n      command: {line}\n"
    expected = f"rage.yaml:4: verification.commands[0].command must be a list, e.g. {written}"
    assert refusal(text) == expected


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "pytest || true"),
        ("bash", "-lc", "pytest ||true"),
        ("sh", "-c", "pytest || :"),
        ("sh", "-c", "pytest || exit 0"),
        ("sh", "-c", "pytest; exit 0"),
        ("sh", "-c", "pytest\ntrue"),
        ("sh", "-c", "pytest; true"),
        ("timeout", "5", "sh", "-c", "exit 0"),
        ("sh", "-c", "set +e; pytest"),
        ("pytest", "||", "true"),
        ("pytest", "&&", "ruff"),
        ("pytest", ">", "out"),
        ("true",),
        ("/bin/true",),
        ("exit", "0"),
        ("pytest", "{target}"),
        ("pytest", "--only={targets}"),
        ("x", "--api-key=0"),
        ("env", "SERVICE_TOKEN=0", "x"),
    ],
)
def test_unsafe_commands(argv: tuple[str, ...]) -> None:
    """F101, F119: a command that cannot fail, needs a shell, or holds a secret."""
    assert "verification.commands[0].command " in refusal(command(*argv))


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "cd sub && pytest -q"),
        ("pytest", "-k", "not true"),
        ("python", "-c", "import sys; sys.exit(0 if ok else 1)"),
        ("make", "test", "TOKENS=5", "--max-tokens=5", "--token=$TOKEN"),
        ("awk", "{print}"),
        ("pytest", "{targets}", "--junitxml={junit}"),
    ],
)
def test_honest_commands(argv: tuple[str, ...]) -> None:
    text = command(*argv)
    assert parse_profile(text).verification.commands[0].command == argv


def test_secrets_do_not_belong_in_a_profile() -> None:
    """F119: and their text is not repeated in the message."""
    value = os.urandom(8).hex()
    for text in (
        f"api_token: {value}",
        f"git:\n  password: {value}",
        f"verification: {{env_allow: ['API_KEY={value}']}}",
        command("x", f"--password={value}"),
    ):
        assert value not in refusal(text)
    assert "name the variable that holds it" in refusal("api_token: x")


def test_several_findings_stand_in_order_of_their_lines() -> None:
    text = "activation: 5\ngit: 5\n" + "".join(f"k{n}: 1\n" for n in range(9))
    parts = refusal(text).split("; ")
    assert parts[0].startswith("rage.yaml:1: activation")
    assert parts[1].startswith("rage.yaml:2: git")
    assert parts[-1] == "and 6 more"


@pytest.mark.parametrize("name", NAMES)
def test_where_a_profile_may_stand(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b'\xef\xbb\xbf{"project": {"id": "x"}}\r\n')
    config = load_profile(tmp_path)
    assert (config.id, config.path, len(config.hash)) == ("x", name, 64)


def test_no_profile_is_the_defaults(tmp_path: Path) -> None:
    assert load_profile(tmp_path) == ProjectConfig()


def test_files_that_are_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "rage.yaml"

    def message() -> str:
        with pytest.raises(Refused) as caught:
            load_profile(tmp_path)
        return caught.value.line()

    path.write_bytes(b"a: 1\nb: \xe4\n")
    assert message() == "rage.yaml:2: not UTF-8. Next: save the file as UTF-8"
    path.write_bytes(b"#" * (256 * 1024 + 1))
    assert message() == "rage.yaml is larger than 256 KiB"
    path.unlink()
    path.mkdir()
    assert message().startswith("rage.yaml is not a file")
    path.rmdir()
    path.symlink_to("gone")
    assert message().startswith("rage.yaml is a symlink to nothing")
    (tmp_path / ".rage.yaml").touch()
    assert message() == "There are two profiles: rage.yaml and .rage.yaml. Next: keep one of them"


def test_an_alias_bomb_ends_at_once() -> None:
    """F096: anchors are refused before anything is expanded."""
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 99))
    began = time.process_time()
    assert "anchors and aliases" in refusal(bomb)
    assert time.process_time() - began < 2


def test_the_reference_has_every_key() -> None:
    """F096: the documentation is generated from the models, and the models cover the config."""
    rows = {r.key: r for r in profile_reference()}
    config = ProjectConfig()
    groups = {"verification": config.verification, "limits": config.limits}
    groups |= {"git": config.git, "packet": config.packet}
    wanted = {f"{g}.{f.name}" for g, v in groups.items() for f in dataclasses.fields(v)}
    wanted |= {f"verification.commands[].{f.name}" for f in dataclasses.fields(CheckCommand)}
    wanted |= {"project.id", "project.name", "project.type", "sources", "activation.auto"}
    wanted |= {"markers.code_fences"}
    assert set(rows) == wanted
    assert all(r.type and r.default and r.doc.endswith(".") for r in rows.values())
    assert rows["limits.max_iterations"][1:3] == ("whole number or `none`", "12")
    assert rows["limits.noop_turns"].type == "whole number"
    assert rows["verification.commands[].name"].default == "required"
    assert rows["git.protected"].default == "[main, master, release/*]"


def test_pydantic_is_loaded_with_a_profile_only(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from rage_plugin.profile import load_profile\n"
        "load_profile(pathlib.Path(sys.argv[1]))\n"
        "print('pydantic' in sys.modules)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "False\n"
    (tmp_path / "rage.yaml").touch()
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "True\n"


@given(st.text(st.sampled_from("abc:-[]{}#&*!|>'\"%@` \n\t,?0\\")) | st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_profile_or_refused_with_its_line(text: str) -> None:
    """Nothing that stands in a profile ends in a traceback."""
    try:
        parse_profile(text)
    except Refused as error:
        file, line, _ = error.what.split(":", 2)
        assert file == "rage.yaml"
        assert (
            1
            <= int(line)
            <= text.count("\n") + 2 + sum(text.count(c) for c in "\r\x85\u2028\u2029")
        )
