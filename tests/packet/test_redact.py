"""Redaction: the corpus, known values, honest text, and linear time on hostile text."""

from __future__ import annotations

import base64
import json
import random
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rage_plugin.packet.redact import LEAST_KNOWN, known_values, redact

from .secret_corpus import Row, rows, token

ROWS = [row for seed in range(5) for row in rows(seed)]


@pytest.mark.parametrize("row", [r for r in ROWS if not r.keep], ids=lambda row: row.kind)
def test_every_secret_goes(row: Row) -> None:
    """F116: the body of each secret is gone, not only its prefix; no eight characters are left."""
    out = redact(row.text, row.known)
    assert "[redacted:" in out
    for body in row.bodies:
        pieces = [body[i : i + 8] for i in range(0, max(len(body) - 7, 1), 4)] + [body[-8:]]
        assert [p for p in pieces if p in out] == []


@pytest.mark.parametrize("row", [r for r in ROWS if r.keep], ids=lambda row: row.kind)
def test_what_is_no_secret_stays(row: Row) -> None:
    """F116: digests, public keys, references and words that look alike are untouched."""
    assert redact(row.text, row.known) == row.text


@pytest.mark.parametrize(
    "honest",
    [
        "The tokenizer drops token: 'identifier' when secret = None and password=''",
        "assert parse('http://user:pass@host/') == ('user', 'pass')",
        "see https://example.org:8080/a/b@c and mail me@example.org",
        "git clone git@github.com:owner/project.git",
        "header '-----BEGIN RSA PRIVATE KEY-----' is rejected by load_key()",
        "Authorization: Bearer <token>, or `Bearer $TOKEN`, is refused",
        "token = get_token_from_store_v2(user1, key2)",
        "api_key: ${API_KEY_2}  password: {{ vault.password1 }}",
        "auth: tests/test_auth_tokens2.py::test_refresh",
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad fixes sk-12 and AKIA",
        "password: at least 8 characters, secret: yes",
        "self.token = settings.OAUTH2_ACCESS_TOKEN",
    ],
)
def test_honest_lines_stay(honest: str) -> None:
    """F116: zero false redactions in what an issue about such things says."""
    assert redact(honest) == honest


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ('{"password": "@"}', '{"password": "[redacted:password]"}'),
        ("PASSWORD=@ next", "PASSWORD=[redacted:password] next"),
        (
            "curl -H 'Authorization: Bearer @'",
            "curl -H 'Authorization: Bearer [redacted:authorization]'",
        ),
        (
            "//registry.npmjs.org/:_authToken=@",
            "//registry.npmjs.org/:_authToken=[redacted:secret]",
        ),
        ("redis://:@@cache:6379", "redis://:[redacted:url-password]@cache:6379"),
    ],
)
def test_names_give_a_value_away(line: str, left: str) -> None:
    """F116: what a name or a place makes a secret goes, and the words around it stay."""
    value = token(random.Random(4), "AN", 24)
    assert redact(line.replace("@", value, 1)) == left


def test_known_values_in_every_spelling() -> None:
    """F116: a value from the environment goes raw, coded, escaped, reversed, split and wrapped."""
    value = token(random.Random(7), "AN", 20) + '/+"ü' + token(random.Random(8), "AN", 12)
    data = value.encode()
    spellings = [
        value,
        value[::-1],
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode(),
        data.hex(),
        quote(value, safe=""),
        json.dumps(value),
        value[:9] + "\u200b" + value[9:],
        value[:9] + "\n    " + value[9:],
        *(base64.b64encode(b"user:"[:n] + data + b" tail").decode() for n in range(4)),
    ]
    for text in spellings:
        out = redact(f"before {text} after", [value])
        assert "[redacted:known]" in out
        assert out.startswith("before ")
        assert out.endswith(" after")
        assert value[:8] not in out
        assert text[6:-6] not in out
    assert (
        redact(f"before {spellings[2]} after", ["another value"]) == f"before {spellings[2]} after"
    )


def test_short_known_values_are_ordinary_words() -> None:
    """F116: a value such as `true` or `root` in the environment does not blank honest text."""
    assert redact("true root 1 example", ["true", "root", "", "1"]) == "true root 1 example"
    assert LEAST_KNOWN == 8


def test_known_values_come_from_names_that_hold_secrets() -> None:
    """F116: of an environment the values of secrets are taken, and no path or flag."""
    secret = token(random.Random(9), "AN", 20)
    found = known_values(
        {
            "GITHUB_TOKEN": secret,
            "MY_API_KEY": secret[::-1],
            "DB_PASSWORD": "short",
            "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
            "HOME": "/home/someone",
            "TOKENIZERS_PARALLELISM": "false",
        }
    )
    assert found == (secret, secret[::-1])


def test_two_secrets_side_by_side_and_text_between() -> None:
    """F116: everything that is not a secret is unchanged, to the byte."""
    draw = random.Random(3)
    one, two = "ghp_" + token(draw, "AN", 36), "npm_" + token(draw, "AN", 36)
    text = f"ä\u200b{one};{two}\n{{% x %}}😀\u200d👩 {one} end\u00ad"
    assert redact(text) == (
        "ä\u200b[redacted:github-token];[redacted:npm-token]\n"
        "{% x %}😀\u200d👩 [redacted:github-token] end\u00ad"
    )


def test_a_secret_inside_a_longer_one_leaves_no_tail() -> None:
    """F116: overlapping finds are one; nothing behind the shorter of them is let through."""
    draw = random.Random(5)
    inner = "ghp_" + token(draw, "AN", 36)
    tail = token(draw, "AN", 20)
    assert redact(f"token: 'a1b2c3.{inner}.{tail}'") == "token: '[redacted:secret]'"


@given(st.text(), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_taken_and_redacting_twice_changes_nothing(text: str, known: list[str]) -> None:
    """F116: never raises, and a placeholder is no secret."""
    once = redact(text)
    assert redact(once) == once
    redact(text, known)


@pytest.mark.parametrize(
    "unit",
    [
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nProc-Type:",
        "-----BEGIN PRIVATE KEY-----\\nProc-Type:\\n",
        "-----BEGIN PRIVATE KEY-----\nabcdabcdabcdabcdabcd\n",
        "-----BEGIN PRIVATE KEY-----                    ",
        "ghp_",
        "ghp_\n",
        "eyJ",
        "eyJabcdef.",
        "://",
        "://a:",
        "://a:@",
        "token=",
        "token='a1",
        "passwd:a1",
        "otpauth://",
        "?sig=",
        "authorization: bearer ",
        "SG.",
        "abc8Q~",
        "\u200bsk-",
        "word key: value\n",
    ],
    ids=ascii,
)
def test_time_is_linear(unit: str) -> None:
    """F116: eight times the text costs far less than the 64 times of a quadratic rule."""

    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            redact(text, ["a known value"])
            best = min(best, time.process_time() - start)
        return best

    assert cost(320_000) < 24 * cost(40_000) + 0.02
