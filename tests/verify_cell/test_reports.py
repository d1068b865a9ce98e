"""JUnit XML from a hostile process."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pluggy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.core.judgement import Outcome
from rage_plugin.hookspecs import PROJECT, ExtensionSpec
from rage_plugin.verify.reports import JUnitReports, Unreadable, parse

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9))
    + ']><testsuite><testcase name="&j;"/></testsuite>'
)


def written(folder: Path, text: str) -> Path:
    path = folder / "report.xml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_dialect_has_an_id_and_an_outcome(tmp_path: Path) -> None:
    report = written(
        tmp_path,
        """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="s">
        <testcase classname="pkg.Class" name="passes"><system-out>FAILED</system-out></testcase>
        <testcase classname="pkg.Class" name="fails"><failure message="x">y</failure></testcase>
        <testcase file="a.js" name="errs"><error/></testcase>
        <testcase name="skips"><skipped/></testcase>
        <testcase name="twice"/><testcase name="twice"><failure/></testcase><testcase name="twice"/>
        </testsuite></testsuites>""",
    )
    assert parse(report) == {
        "pkg.Class::passes": Outcome.PASS,
        "pkg.Class::fails": Outcome.FAIL,
        "a.js::errs": Outcome.ERROR,
        "skips": Outcome.SKIP,
        "twice": Outcome.FAIL,
    }


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE t SYSTEM "file:///etc/passwd"><testsuite/>',
        "<testsuite><testcase name='a'/>",
        "",
        "<html/>",
        "1 passed",
    ],
    ids=["bomb", "external", "cut", "empty", "other", "text"],
)
def test_what_is_not_a_whole_plain_report_is_unreadable(tmp_path: Path, text: str) -> None:
    """F017: a truncated or hostile report has no outcomes."""
    with pytest.raises(Unreadable):
        parse(written(tmp_path, text))


def test_a_flood_is_cut_and_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    with path.open("wb") as file:
        file.write(b"<testsuite><testcase name='a'><system-out>")
        for _ in range(65):
            file.write(b"x" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(Unreadable, match="longer"):
        parse(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_it_is_registered_like_a_third_partys(tmp_path: Path) -> None:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExtensionSpec)
    manager.register(JUnitReports())
    ask = manager.hook.rage_parse_report
    report = written(tmp_path, "<testsuite><testcase name='a'/></testsuite>")
    assert ask(kind="junit", path=str(report)) == {"a": "pass"}
    assert ask(kind="tap", path=str(report)) is None
    assert ask(kind="junit", path=str(tmp_path / "gone.xml")) is None


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1),
        st.sampled_from(Outcome),
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, cases: dict) -> None:  # type: ignore[type-arg]
    child = {Outcome.FAIL: "<failure/>", Outcome.ERROR: "<error/>", Outcome.SKIP: "<skipped/>"}
    body = "".join(
        f"<testcase name={quoteattr(name)}>{child.get(outcome, '')}</testcase>"
        for name, outcome in cases.items()
        if name == name.replace("\uffff", "").replace("\ufffe", "")
    )
    report = written(tmp_path_factory.mktemp("r"), f"<testsuite>{body}</testsuite>")
    assert parse(report) == {
        n: o for n, o in cases.items() if n == n.replace("\uffff", "").replace("\ufffe", "")
    }
