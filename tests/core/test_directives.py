"""Which corrections hold beside a new one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.directives import superseded

CONFLICTING = [
    # held back for a while, then wanted
    ("don't run the tests yet", "run the tests now"),
    ("do not test yet", "test everything"),
    ("do not touch the config yet", "you may edit the config file"),
    ("wait with the migration", "go ahead and migrate"),
    ("hold off on the refactoring until I say so", "please refactor the parser"),
    ("leave the README alone for now", "update the README with the new flags"),
    ("no deployments until Friday", "deploy to staging"),
    ("postpone the database upgrade", "upgrade the database to 16"),
    ("don’t commit yet", "commit what you have"),
    ("skip the integration tests for now", "run the integration tests as well"),
    ("don't start on the API before I have reviewed the schema", "the schema is fine, build the API"),
    # held back, then allowed
    ("keep the old signature", "change the signature after all"),
    ("never use mocks", "mocks are fine"),
    ("do not add dependencies", "you may add dependencies"),
    ("avoid recursion", "use recursion"),
    ("don't wait for the review", "wait for the review"),
    ("no type hints", "add type hints"),
    ("leave src/auth.py alone", "fix the bug in src/auth.py"),
    ("do not change `parse_line`", "rename parse_line to read_line"),
    ("stop logging", "log at debug level"),
    ("stay off the payment module until Monday", "the payment module may be changed"),
    ("ignore the flaky test", "fix the flaky test"),
    # wanted, then held back
    ("use tabs", "don't use tabs"),
    ("add caching", "no caching please"),
    ("write docstrings", "stop writing docstrings"),
    ("delete the legacy tests", "keep the legacy tests"),
    ("rename the module", "do not rename the module"),
    ("split the class into two", "leave the class as it is"),
    # replaced
    ("use tabs for indentation", "use spaces for indentation instead"),
    ("return XML from the API", "actually, return JSON from the API"),
    ("use tabs", "use spaces instead of tabs"),
    ("use urllib", "use requests rather than urllib"),
    ("put the helper in a new module", "scrap the helper"),
    ("name the option --force", "from now on name the option --yes"),
    ("the limit is 10 requests", "the limit is 20 requests now"),
    ("rewrite the scheduler", "forget the scheduler"),
    ("write the report in German", "I changed my mind: the report in English"),
    ("don't rewrite the scheduler yet", "forget the scheduler"),
    # the same words
    ("Use tabs in a.py", "use  tabs in A.PY"),
]  # fmt: skip

COMPATIBLE = [
    ("use tabs in a.py", "use tabs in b.py"),
    ("don't run the tests yet", "run the linter"),
    ("do not touch the config", "fix the login form"),
    ("never use mocks", "name the tests after the issue"),
    ("keep the old signature", "write a docstring for it"),
    ("add caching", "add logging"),
    ("don't add dependencies", "don't rename modules"),
    ("don't use tabs", "don't use tabs in Makefiles either"),
    ("leave src/auth.py alone", "fix the bug in src/login.py"),
    ("wait with the migration", "fix the typo in the README"),
    ("wait with the migration", "do not run the migration on production at all"),
    ("use sqlite", "use WAL"),
    ("write the docs in English", "write the docs for beginners"),
    ("keep functions short", "keep names long"),
    ("no global state in the parser module", "write docs for the parser"),
    ("avoid mocks in the tests", "run the tests before each commit"),
    ("commit often", "push at the end"),
    ("run the tests", "now run the linter"),
    ("use port 80 for http", "use port 443 for https"),
    ("use tabs in a.py", "now do the same in b.py"),
    ("do not edit docs/old.md", "edit docs/new.md"),
    ("skip issue #12", "do issue #13"),
    ("don't forget the tests", "run the tests in parallel"),
    ("you no longer need to wait for the review", "merge after the review"),
    ("do not log passwords", "log every request with its id and its duration"),
    ("use dataclasses for the models", "validate the models at the border"),
    ("no emojis in commit messages", "commit after each item"),
    ("the API must stay compatible", "cover the API with tests"),
    ("use the British spelling", "explain the retry limit in the README"),
    ("never delete user data", "delete the temporary files"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), CONFLICTING)
def test_a_conflicting_directive_no_longer_holds(old: str, new: str) -> None:
    """F141: the newer word counts."""
    assert superseded(new, [old]) == (0,)


@pytest.mark.parametrize(("old", "new"), COMPATIBLE)
def test_directives_that_add_to_each_other_hold(old: str, new: str) -> None:
    """F141: nothing that a person said is lost without need."""
    assert superseded(new, [old]) == ()


def test_instead_supersedes_all() -> None:
    """F141: a person who says `--instead` means all that was said before."""
    assert superseded("use tabs", ["fix the login", "no mocks", ""], instead=True) == (0, 1, 2)
    assert superseded("use tabs", [], instead=True) == ()


def test_only_what_conflicts_goes() -> None:
    """F141: the other directives stay, whatever their order."""
    older = [
        "use tabs",
        "don't run the tests yet",
        "no new dependencies",
        "do not run the tests yet",
    ]
    assert superseded("run the tests", older) == (1, 3)
    assert superseded("write spaces instead of tabs", older) == (0,)
    assert superseded("name the issue in the commit", older) == ()


def test_a_conflict_has_no_direction() -> None:
    """F141: the last word counts, so a ban that comes back ends the permission."""
    said = ["do not touch the config yet", "you may edit the config", "do not touch the config"]
    assert superseded(said[1], said[:1]) == (0,)
    assert superseded(said[2], said[1:2]) == (0,)


VOCABULARY = (
    "use tabs do not don't dont never wait until yet keep leave alone instead actually now the tests"
    " run config src/a.py #12 no longer again forget skip"
)
WORDS = st.sampled_from(VOCABULARY.split())
SAID = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=9).map(" ".join))


@given(SAID, st.lists(SAID, max_size=6), st.booleans())
def test_any_words_give_indices(new: str, older: list[str], instead: bool) -> None:
    """F141: never raises; sorted, unique, in range; the same each time; each pair by itself."""
    found = superseded(new, older, instead=instead)
    assert list(found) == sorted(set(found))
    assert all(0 <= n < len(older) for n in found)
    assert superseded(new, tuple(older), instead=instead) == found
    if not instead:
        assert found == tuple(n for n, old in enumerate(older) if superseded(new, [old]))


@given(
    SAID, st.lists(SAID, max_size=3), st.sampled_from([str.upper, str.title, lambda t: f"  {t} "])
)
def test_the_same_words_supersede_their_older_copy(
    new: str, older: list[str], write: object
) -> None:
    """F141: in any case and spacing, so that nothing is said twice in a packet."""
    assert callable(write)
    assert (
        len(older) in superseded(new.casefold(), [*older, write(new.casefold())])
        or not new.isascii()
    )


@given(
    st.lists(st.sampled_from(["red", "blue", "pages", "forms"]), min_size=1, max_size=3).map(
        " ".join
    )
)
def test_words_without_a_shared_topic_never_conflict(topic: str) -> None:
    """F141: whatever they hold back or replace."""
    for old in ("do not deploy yet", "never deploy", "deploy instead", "wait with deploying"):
        assert superseded(f"actually, {topic} instead", [old]) == ()
        assert superseded(f"don't paint {topic}", [old]) == ()


@pytest.mark.parametrize(
    "piece", ["don't ", "a/", "keep going ", "n't", "leave ", "-", "no longer to ", "\u2019"]
)
def test_long_words_end(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    assert superseded(text, [text, "x"]) == (0,)
