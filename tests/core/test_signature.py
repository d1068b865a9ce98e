"""The identity of an action and of an error: what is the same, and what must not be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rage_plugin.core.signature import READ, action_signature, error_signature, normalise_error

HEX = set("0123456789abcdef")

# ── errors ──

TRACEBACK = """Traceback (most recent call last):
  File "{dir}/app/main.py", line {line}, in <module>
    run(config)
    {carets}
  File "{dir}/app/run.py", line {line}1, in run
    raise KeyError('{key}')
KeyError: '{key}'"""

PYTEST = """============================= test session starts ==============================
platform linux -- Python 3.11.{n}, pytest-8.2.{n}
rootdir: {dir}
collected {n} items

tests/test_cart.py F                                                     [{pad}{n}%]

=================================== FAILURES ===================================
__________________________________ test_total __________________________________
{dir}/tests/test_cart.py:{n}: in test_total
    assert total(cart) == {n}
E   assert 4{n} == {n}
E    +  where 4{n} = total(<cart.Cart object at 0x7f{n}2a4c0>)
FAILED tests/test_cart.py::test_total - assert 4{n} == {n}
{bar} {n} failed, 1{n} passed in {n}.2{n}s {bar}"""

SAME = [
    # Python
    (
        TRACEBACK.format(dir="/home/ann/work", line=12, key="port", carets="^^^^^^"),
        TRACEBACK.format(dir="/tmp/pytest-of-bob/pytest-3", line=7, key="port", carets="^^^"),
    ),
    ('File "/home/my user/a b.py", line 3, in f', 'File "/srv/other folder/x/a b.py", line 90, in f'),
    (r'File "C:\Users\Ann\proj\a.py", line 3', r'File "D:\ci\a.py", line 14'),
    (r"can't open file 'C:\\Program Files\\x\\a.py'", "can't open file '/opt/x/a.py'"),
    ("<Cart object at 0x7f3a2c1d> is not callable", "<Cart object at 0x55AA00FFEE> is not callable"),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/tmpab12cd34/out.json'",
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/tmpzz98yx76/out.json'",
    ),
    (
        "PermissionError: [Errno 13] Permission denied: '/tmp/tmpq1w2e3r4'",
        "PermissionError: [Errno 13] Permission denied: '/tmp/tmpa9s8d7f6'",
    ),
    (
        "subprocess.TimeoutExpired: Command '['sleep']' timed out after 0.5 seconds",
        "subprocess.TimeoutExpired: Command '['sleep']' timed out after 12.25 seconds",
    ),
    ("Process 4711 died", "Process 12 died"),
    ("cannot open tmpqwertzui", "cannot open tmpabc123"),
    ("ConnectionRefusedError: localhost:5432", "ConnectionRefusedError: localhost:38211"),
    ("KeyError: UUID('550e8400-e29b-41d4-a716-446655440000')", "KeyError: UUID('A50E8400-E29B-41D4-A716-4466554400FF')"),
    ("\x1b[31mERROR\x1b[0m: no \x1b[1;4msuch\x1b[m table", "ERROR: no such table"),
    ("ValueError:   bad\n\n  value", "ValueError: bad value"),
    ("RecursionError after 1000 calls", "RecursionError after 996 calls"),
    # pytest
    (
        PYTEST.format(dir="/home/ann/shop", n=5, pad="  ", bar="=" * 20),
        PYTEST.format(dir="/tmp/copy/shop", n=100, pad="", bar="=" * 17),
    ),
    ("E  assert 3 == 5", "E  assert 4 == 5"),
    ("E  assert -0.25 < 1e-07", "E  assert 3.5 < 12"),
    ("3 failed, 12 passed in 1.23s (0:00:03)", "4 failed, 1 passed in 71.02s (0:01:11)"),
    ("1 error in 0.10s", "2 errors in 0.20s"),
    ("[gw0] FAILED tests/a.py::test_x", "[gw3] FAILED tests/a.py::test_x"),
    (
        "/tmp/pytest-of-ann/pytest-12/test_a0/out.txt is empty",
        "/tmp/pytest-of-root/pytest-3/test_a0/out.txt is empty",
    ),
    # JavaScript
    (
        "    at Object.<anonymous> (/home/ann/app/src/sum.test.js:3:5)",
        "    at Object.<anonymous> (/builds/7/app/src/sum.test.js:14:22)",
    ),
    ("  ✕ multiplies (5 ms)", "  ✕ multiplies"),
    ("Tests: 1 failed, 3 passed, 4 total\nTime: 1.234 s", "Tests: 2 failed, 1 passed, 3 total\nTime: 10 s"),
    ("src/app.ts(12,5): error TS2304: Cannot find name 'x'.", "/w/src/app.ts(120,33): error TS2304: Cannot find name 'x'."),
    ("src/app.ts:12:34 - error TS2304: Cannot find name 'x'.", "src/app.ts:1:7 - error TS2304: Cannot find name 'x'."),
    (
        "npm ERR! A complete log: /home/ci/.npm/_logs/2024-01-01T10_00_00_123Z-debug-0.log",
        "npm ERR! A complete log: /home/a/.npm/_logs/2025-11-30T23_59_59_001Z-debug-0.log",
    ),
    ("Error: Cannot find module 'left-pad'\n at file:///a/b/x.mjs:1:1", "Error: Cannot find module 'left-pad'\n at file:///c/x.mjs:9:30"),
    # Go
    (
        "--- FAIL: TestAdd (0.00s)\n    add_test.go:12: got 3, want 4",
        "--- FAIL: TestAdd (1.37s)\n    add_test.go:90: got 5, want 4",
    ),
    (
        "goroutine 18 [running]:\nmain.f(0xc000012345, 0x3)\n\t/home/a/main.go:12 +0x1d",
        "goroutine 7 [running]:\nmain.f(0xc0000fffff, 0x9)\n\t/go/src/main.go:31 +0x2f",
    ),
    ("FAIL example.com/pkg 0.012s", "FAIL example.com/pkg 3.4s"),
    # Rust
    ("thread 'main' panicked at src/main.rs:4:5:", "thread 'main' panicked at src/main.rs:88:13:"),
    (
        "Running unittests (target/debug/deps/shop-1a2b3c4d5e6f7a8b)",
        "Running unittests (target/debug/deps/shop-ffeeddccbbaa0099)",
    ),
    ("error[E0425]: cannot find value `x`\n --> src/lib.rs:3:5\n   | ^^^", "error[E0425]: cannot find value `x`\n --> src/lib.rs:77:9\n   | ^"),
    # C
    ("/usr/src/a/main.c:12:5: error: expected ';'\n   ^~~~~", "main.c:3:17: error: expected ';'\n   ^~"),
    ("/usr/bin/ld: /tmp/ccfT3kLm.o: undefined reference to `f'", "/usr/bin/ld: /tmp/ccX9aaBc.o: undefined reference to `f'"),
    # git
    ("error: could not apply 3e4f5a6... Add port", "error: could not apply 83db48f0c2... Add port"),
    ("index 83db48f..2c9a1f1 100644\nerror: patch failed: src/a.py:12", "index 1111111..9c9a1f0 100644\nerror: patch failed: src/a.py:99"),
    ("fatal: Unable to create '/home/a/x/.git/index.lock': File exists.", "fatal: Unable to create '/srv/y z/.git/index.lock': File exists."),
    # docker, kubernetes, logs
    (
        "Bind for 0.0.0.0:8080 failed: port is already allocated",
        "Bind for 127.0.0.1:49153 failed: port is already allocated",
    ),
    (
        "No such container: 4c01db0b339cdeadbeef4c01db0b339c",
        "No such container: 0a1b2c3d4e5f",
    ),
    ("pod web-7d9f8b6c4-x2x9z: CrashLoopBackOff", "pod web-5b8c9d7f66-q4r7t: CrashLoopBackOff"),
    ("2024-01-01T10:00:00.123Z ERROR db down", "2025-12-31 23:59:59,001+02:00 ERROR db down"),
    ("Mon Jan 12 10:00:00 2024 ERROR queue full", "Tue Feb  3 22:11:09 2025 ERROR queue full"),
    ("[12/Jan/2024:10:00:00 +0000] upstream gone", "[03/Nov/2025:01:02:03 +0000] upstream gone"),
    ("request 01ARZ3NDEKTSV4RRFFQ69G5FAV failed", "request 01BX5ZZKBKACTAV9WEVGEMMVRZ failed"),
    ("job x7k2m9qp is stuck", "job a1b2c3d4 is stuck"),
    ("took 1m 20.5s", "took 3 hours"),
    ("gave up after 12 ms", "gave up after 1.5 s"),
]  # fmt: skip

DIFFERENT = [
    ("KeyError: 'port'", "ValueError: 'port'"),
    ("KeyError: 'port'", "KeyError: 'host'"),
    ("ModuleNotFoundError: No module named 'yaml'", "ModuleNotFoundError: No module named 'toml'"),
    ("ModuleNotFoundError: No module named 'yaml'", "ImportError: No module named 'yaml'"),
    ("cannot import name 'a' from 'x.py'", "cannot import name 'b' from 'x.py'"),
    ("/a/b/main.py:3: SyntaxError", "/a/b/other.py:3: SyntaxError"),
    ('File "/a/x y/one.py", line 3', 'File "/a/x y/two.py", line 3'),
    (r"C:\a\one.py(3): error", r"C:\a\two.py(3): error"),
    ("FAILED tests/test_a.py::test_add", "FAILED tests/test_a.py::test_sub"),
    ("FAILED tests/test_a.py::test_add[empty]", "FAILED tests/test_a.py::test_add[umlaut]"),
    ("FAILED tests/test_a.py::test_add_1", "FAILED tests/test_a.py::test_add_2"),
    ("AssertionError: left is None", "AssertionError: right is None"),
    ("assert 'red' == 'green'", "assert 'red' == 'blue'"),
    ("exit code 1", "exit code 2"),
    ("failed with exit status 1", "failed with exit status 127"),
    ("Process exited with code 1", "Process exited with code 137"),
    ("killed by signal 9", "killed by signal 15"),
    ("Command returned 1", "Command returned 2"),
    ("[Errno 2] x", "[Errno 13] x"),
    ("No such file (os error 2)", "No such file (os error 13)"),
    ("make: *** [all] Error 1", "make: *** [all] Error 2"),
    ("HTTP 404", "HTTP 500"),
    ("HTTP/1.1 401", "HTTP/1.1 403"),
    ("status: 502 from upstream", "status: 404 from upstream"),
    ("Request failed with status code 404", "Request failed with status code 500"),
    ("npm ERR! 404 Not Found", "npm ERR! 403 Forbidden"),
    ("error TS2304: x", "error TS2322: x"),
    ("error[E0425]: x", "error[E0382]: x"),
    ("a.py:1:1: F401 x", "a.py:1:1: F841 x"),
    ("use of sha256", "use of sha512"),
    ("convertBase64ToString is not a function", "decodeBase64ToBytes is not a function"),
    ("undefined reference to `f'", "undefined reference to `g'"),
    ("--- FAIL: TestAdd (0.00s)", "--- FAIL: TestSub (0.00s)"),
    ("  ✕ adds numbers (5 ms)", "  ✕ subtracts numbers (5 ms)"),
    ("Cannot find module '@babel/core'", "Cannot find module '@types/core'"),
    ("cannot find package github.com/a/x", "cannot find package github.com/b/x"),
    ("GET http://localhost:80/api/users", "GET http://localhost:80/api/orders"),
    ("fatal: not a git repository", "fatal: bad revision"),
    ("CONFLICT (content): Merge conflict in a.py", "CONFLICT (content): Merge conflict in b.py"),
    ("Dezimalstelle fehlt", "Dezimalzahl fehlt"),
    ("Marker 12 gone", "Market 12 gone"),
    ("text/html is refused", "image/html is refused"),
    ("port is already allocated", "name is already allocated"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_differs_from_run_to_run_is_no_other_error(one: str, other: str) -> None:
    """F015: paths, lines, addresses, times, durations, temporary names, ids, counts."""
    assert normalise_error(one) == normalise_error(other)
    assert error_signature(one) == error_signature(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_says_which_error_it_is_stays(one: str, other: str) -> None:
    """F015: a fix that leads to another error is not the same failure again."""
    assert error_signature(one) != error_signature(other)


def test_all_errors_of_the_tables_are_apart() -> None:
    """F015: no two rows of either table share an identity by accident."""
    rows = [one for one, _ in SAME] + sorted({text for pair in DIFFERENT for text in pair})
    assert len({error_signature(text) for text in rows}) == len(rows)


def test_normalised_text_can_be_read() -> None:
    text = 'File "/home/my user/a b.py", line 3, in f: KeyError in 1.2s at 0x7f [exit code 3]'
    assert normalise_error(text) == 'File "a b.py", line #, in f: KeyError in # at # [exit code 3]'


def test_failing_tests_belong_to_the_error_in_any_order() -> None:
    """F015: the ids are taken as they are, numbers and folders too."""
    one = error_signature("boom", ["b.py::test_2", "a.py::test_1"])
    assert one == error_signature("boom", ["a.py::test_1", "b.py::test_2", "a.py::test_1"])
    assert one != error_signature("boom", ["a.py::test_1", "b.py::test_3"])
    assert one != error_signature("boom", ["x/a.py::test_1", "b.py::test_2"])
    assert one != error_signature("boom")
    assert error_signature("boom", ["a"]) != error_signature("boom a")
    assert error_signature("boom", ["ab"]) != error_signature("boom", ["a", "b"])


PIECES = st.sampled_from(
    [
        *"/\\.,:;#-+~@%$'\"`()[]<>_ \n\t\x00\x1b^=|&",
        *(
            "a",
            "b.py",
            "1",
            "12",
            "2024-01-01",
            "T",
            "10:00:00",
            "Z",
            "0x1f",
            "deadbe1",
            "C:",
            "e5",
        ),
        *(
            "file://",
            "http://",
            "tmp",
            "tmpabc123",
            "/tmp/",
            "s",
            " ms",
            " tests",
            "12345",
            "é",
            "٣",
        ),
        *("exit code ", "status ", "404 Not Found", "[gw1]", "\x1b[31m", "~~~~", "Jan ", "\ud800"),
        *("x7k2m9qp", "(5 ms)", "error ", "µs", "550e8400-e29b-41d4-a716-446655440000"),
    ]
)
MESSY = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=14).map("".join))


@given(MESSY)
@example("/tmp/A1b tests tests")
@example("0x1fa+404 Not Found")
@example("12:5/a.py 1,2/b.c")
def test_a_normalised_text_is_normal(text: str) -> None:
    """F015: normalising twice is normalising once, and nothing grows."""
    once = normalise_error(text)
    assert normalise_error(once) == once
    assert len(once) <= len(text)
    assert "\n" not in once and "\x1b" not in once


@given(MESSY, st.lists(st.text(max_size=10), max_size=3))
def test_any_text_has_an_identity(text: str, failing: list[str]) -> None:
    """F015: never raises; the white space around it does not count."""
    found = error_signature(text, failing)
    assert len(found) == 32 and set(found) <= HEX
    assert found == error_signature(f"\n {text}\t", failing)


@given(st.text("abcxyz \n", max_size=40), st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_never_make_another_error(words: str, a: int, b: int) -> None:
    """F015: whatever the words are (none of these keeps a number)."""
    assert error_signature(f"{words} {a} {words}") == error_signature(f"{words} {b} {words}")


@pytest.mark.parametrize(
    "piece",
    [
        "/a", "a/", "a.", "1:", "1s", "'/", "a1", "0", "^~", "exit code ", "# aa ", "\x1b[", "\x1b]",
        "Jan ", "1 ", "_", "a", "a-", "file://", "a1b2", "x://", "1.", "1_", "(1 s", "C:\\", " (", "é",
    ],
)  # fmt: skip
def test_a_megabyte_of_anything_ends(piece: str) -> None:
    """F015: linear time; nothing here backtracks."""
    text = piece * (1_000_000 // len(piece))
    assert len(error_signature(text)) == 32
    assert len(normalise_error(text)) <= READ


def test_of_a_long_error_head_and_tail_are_read() -> None:
    middle = "x" * 10 + " "
    long = "begin " + middle * READ + "end"
    assert error_signature(long) != error_signature("Begin " + middle * READ + "end")
    assert error_signature(long) != error_signature("begin " + middle * READ + "End")
    once = normalise_error(long)
    assert normalise_error(once) == once


# ── actions ──

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)
ARGS = st.dictionaries(st.text(max_size=5), JSON, max_size=5)


def _shuffled(value: object) -> object:
    if isinstance(value, dict):
        return {k: _shuffled(v) for k, v in reversed(value.items())}
    if isinstance(value, list):
        return [_shuffled(v) for v in value]
    return value


@given(st.text(max_size=10), ARGS)
def test_the_order_of_keys_has_no_meaning(tool: str, args: dict[str, object]) -> None:
    """F013: the same call written in another order is the same call."""
    found = action_signature(tool, args)
    assert len(found) == 32 and set(found) <= HEX
    other = _shuffled(args)
    assert isinstance(other, dict)
    assert action_signature(tool, other) == found


@given(ARGS, ARGS)
def test_different_arguments_are_different_calls(
    one: dict[str, object], two: dict[str, object]
) -> None:
    """F013: as JSON tells them apart."""
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (action_signature("t", one) == action_signature("t", two)) == same


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"n": 1}, {"n": 1.0}),
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": "1"}),
        ({"n": 0.0}, {"n": -0.0}),
        ({"n": None}, {}),
        ({"n": None}, {"n": "None"}),
        ({"n": []}, {"n": {}}),
        ({"n": ""}, {"n": []}),
        ({"n": [["a"], "b"]}, {"n": [["a", "b"]]}),
        ({"n": "a"}, {"n": b"a"}),
        ({"a": "b"}, {"b": "a"}),
        ({"command": "ls  -l"}, {"command": "ls -l"}),
        ({"command": "ls -l\n"}, {"command": "ls -l"}),
        ({"command": "ls -L"}, {"command": "ls -l"}),
        ({"path": "a.py"}, {"path": "./a.py"}),
        ({"line": 12}, {"line": 13}),
        ({"n": "\ud800\udc00"}, {"n": "\U00010000"}),
    ],
)
def test_nothing_is_normalised_in_arguments(one: dict[str, object], two: dict[str, object]) -> None:
    """F013: only what is identical is the same call."""
    assert action_signature("t", one) != action_signature("t", two)


def test_the_tool_belongs_to_the_action() -> None:
    assert action_signature("read", {"p": 1}) != action_signature("write", {"p": 1})
    assert action_signature("a", {"s": "b"}) != action_signature("a{", {"s": "b"})


class Odd:
    """An object whose `repr` holds its address."""


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Table(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(("a", "b"))

    def __len__(self) -> int:
        return 2


def test_what_json_does_not_know_has_an_identity_too() -> None:
    """F013: never raises, and an address is no part of it."""
    for value in (
        float("nan"),
        float("inf"),
        b"\xff",
        bytearray(b"x"),
        Broken(),
        {1: 2},
        "\udcff",
        10**5000,
    ):
        assert action_signature("t", {"v": value}) == action_signature("t", {"v": value})
    assert action_signature("t", {"v": Odd()}) == action_signature("t", {"v": Odd()})
    assert action_signature("t", {"v": Odd()}) != action_signature("t", {"v": Broken()})
    assert action_signature("t", {"v": Path("a")}) != action_signature("t", {"v": Path("b")})
    assert action_signature("t", Table()) == action_signature("t", {"b": 1, "a": 1})
    assert action_signature("t", {"v": ("a", "b")}) == action_signature("t", {"v": ["a", "b"]})
    assert action_signature("t", {"v": {"x", "y"}}) == action_signature("t", {"v": {"y", "x"}})


def test_deep_nesting_and_cycles_end() -> None:
    """F013: a hundred levels are told apart, and no depth raises."""
    deep: object = "end"
    other: object = "END"
    for _ in range(95):
        deep, other = [deep], [other]
    assert action_signature("t", {"v": deep}) != action_signature("t", {"v": other})
    for _ in range(100_000):
        deep = [deep]
    assert len(action_signature("t", {"v": deep})) == 32
    cycle: dict[str, object] = {}
    cycle["v"] = cycle
    assert len(action_signature("t", cycle)) == 32


# ── any process ──

SCRIPT = """
import json, sys
from rage_plugin.core.signature import action_signature, error_signature, normalise_error
texts, tests, args = json.load(sys.stdin)
print(json.dumps([
    [normalise_error(t) for t in texts],
    [error_signature(t, set(tests)) for t in texts],
    [action_signature("bash", a) for a in args],
    action_signature("t", {"v": set(tests)}),
]))
"""


def _in_a_process(seed: str, given: object) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout


def test_every_process_finds_the_same_identity() -> None:
    """F013, F015: two interpreters with different hash seeds, and this one."""
    texts = [text for pair in SAME for text in pair]
    tests = [f"tests/test_{name}.py::test_{name}" for name in "abcdefgh"]
    args: list[dict[str, object]] = [
        {"command": text, "n": [1, 1.5, None, {"b": 1, "a": 2}]} for text in texts
    ]
    first = _in_a_process("1", [texts, tests, args])
    assert first == _in_a_process("4242", [texts, tests, args])
    normal, errors, actions, _ = json.loads(first)
    assert normal == [normalise_error(t) for t in texts]
    assert errors == [error_signature(t, tests) for t in texts]
    assert actions == [action_signature("bash", a) for a in args]


# ── real programs ──

FAILING = (
    "import json\n{blank}def test_port():\n    assert json.loads('[{number}]') == ['{word}']\n"
)


def _pytest_says(folder: Path, number: int, word: str = "x") -> str:
    folder.mkdir(parents=True)
    (folder / "test_real.py").write_text(
        FAILING.format(blank="\n" * number, number=number, word=word)
    )
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("NO_COLOR", None)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--color"]
    argv += ["yes" if number == 2 else "no", f"--rootdir={folder}", str(folder / "test_real.py")]
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, env=environment, cwd=folder
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_real_failure_is_the_same_wherever_and_whenever_it_happens(tmp_path: Path) -> None:
    """F015: pytest in two folders, with and without colour, other lines, other values."""
    one = _pytest_says(tmp_path / "one", 1)
    two = _pytest_says(tmp_path / "a-longer-name" / "two" / "ü", 2)
    other = _pytest_says(tmp_path / "three", 1, "y")
    assert one != two
    assert normalise_error(one) == normalise_error(two)
    assert error_signature(one) != error_signature(other)
