"""Secrets out of text before a model, a log or a report sees it.

One table of kinds, written so that the time is linear in the text: after a literal prefix nothing
unbounded is followed by something required. A rule runs only where one of its hints occurs.
Tokens are found through invisible characters and, up to their least length, across a line wrap.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from .invisible import visible

LEAST_KNOWN = 8
"""Known values shorter than this many characters are too ordinary to look for."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret. A group `s` is the secret where a match holds more than it.

    A group `guess` or `bare` is one only if it looks random, `word` and `bareword` only with a
    letter and a digit: there the name before it gives it away and not its form.
    """

    kind: str
    hints: tuple[str, ...]
    """In lower case; the rule is tried only if one of them occurs in the text."""
    pattern: re.Pattern[str]


def _run(chars: str, least: int, most: int | None = None) -> str:
    """`least` or more of a class; inside the first `least` a line may be wrapped."""
    more = f"[{chars}]*" if most is None else f"[{chars}]{{0,{most - least}}}"
    return rf"(?:[{chars}](?:\r?\n[ \t]{{0,8}})?){{{least - 1}}}[{chars}]{more}"


AN, B64, B64U, HEX = "A-Za-z0-9", "A-Za-z0-9+/", "A-Za-z0-9_-", "0-9a-fA-F"
_NAME = (
    r"(?:api[_-]?key|access[_-]?key|account[_-]?key|secret|secret[_-]?key|token|auth|credentials?"
    r"|private[_-]?key(?:[_-]?id)?|shared[_-]?key)"
)
_IS = r"[\"']?\]?[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}"
_PEM = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_GAP = r"(?:\\[rn]|\s)"


def _rule(kind: str, hints: str, pattern: str, flags: int = 0) -> Rule:
    return Rule(kind, tuple(hints.split()), re.compile(pattern, flags))


RULES: tuple[Rule, ...] = (
    # A whole key, else (its end was cut off) the lines after the header that look like one.
    _rule("private-key", "private", rf"{_PEM}(?:[^-]|-(?!----)){{0,20000}}{_PEM_END}"),
    _rule(
        "private-key",
        "private",
        rf"{_PEM}(?:{_PEM_GAP}+(?:Proc-Type|DEK-Info):[^\n\\]{{0,200}}){{0,4}}+"
        rf"(?:{_PEM_GAP}+[{B64}]{{16,}}={{0,2}})+(?:{_PEM_GAP}+[{B64}=]{{1,15}}\s*\Z)?",
    ),
    _rule("age-key", "age-secret-key-1", rf"AGE-SECRET-KEY-1{_run('0-9A-Z', 58)}"),
    _rule("aws-key", "akia asia", rf"A[KS]IA{_run('0-9A-Z', 16, 16)}"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{_run(AN, 36)}"),
    _rule("github-token", "github_pat_", rf"github_pat_{_run('A-Za-z0-9_', 60)}"),
    _rule("gitlab-token", "glpat-", rf"glpat-{_run(B64U, 20)}"),
    _rule("anthropic-key", "sk-ant-", rf"sk-ant-{_run(B64U, 40)}"),
    _rule("openrouter-key", "sk-or-v1-", rf"sk-or-v1-{_run(HEX, 40)}"),
    _rule(
        "openai-key",
        "sk-proj- sk-svcacct- sk-admin-",
        rf"sk-(?:proj|svcacct|admin)-{_run(B64U, 40)}",
    ),
    _rule("openai-key", "sk-", rf"sk-{_run(AN, 32)}"),
    _rule("stripe-key", "k_live_ k_test_ whsec_", rf"(?:[sr]k_(?:live|test)|whsec)_{_run(AN, 16)}"),
    _rule("google-key", "aiza", rf"AIza{_run(B64U, 35, 35)}"),
    _rule("google-secret", "gocspx-", rf"GOCSPX-{_run(B64U, 28)}"),
    _rule("google-token", "ya29.", rf"ya29\.{_run(B64U, 30)}"),
    _rule("slack-token", "xox", rf"xox[abeoprs]-{_run('A-Za-z0-9-', 20)}"),
    _rule("sendgrid-key", "sg.", rf"SG\.{_run(B64U, 22, 22)}\.{_run(B64U, 43, 43)}"),
    _rule("twilio-id", "sk ac", r"(?<![A-Za-z0-9])(?:SK|AC)[0-9a-f]{32}(?![0-9a-zA-Z])"),
    _rule("npm-token", "npm_", rf"npm_{_run(AN, 36)}"),
    _rule("pypi-token", "pypi-age", rf"pypi-AgE{_run(B64U, 50)}"),
    _rule("replicate-token", "r8_", rf"r8_{_run(AN, 37)}"),
    _rule("huggingface-token", "hf_", rf"hf_{_run(AN, 32)}"),
    _rule("xai-key", "xai-", rf"xai-{_run(AN, 60)}"),
    _rule("groq-key", "gsk_", rf"gsk_{_run(AN, 40)}"),
    _rule("digitalocean-token", "_v1_", rf"do[opr]_v1_{_run(HEX, 64)}"),
    _rule("vault-token", "hvs. hvb.", rf"hv[sb]\.{_run(B64U, 24)}"),
    _rule("databricks-token", "dapi", rf"dapi{_run('0-9a-f', 32)}"),
    _rule("linear-key", "lin_api_", rf"lin_api_{_run(AN, 40)}"),
    _rule("atlassian-token", "atatt3", rf"ATATT3{_run(B64U, 60)}(?:=[0-9A-Fa-f]{{8}})?"),
    _rule("postman-key", "pmak-", rf"PMAK-{_run(HEX, 24, 24)}-{_run(HEX, 34, 34)}"),
    _rule(
        "jwt",
        "eyj",
        rf"(?<![{B64U}])eyJ[{B64U}]{{6,}}+\.[{B64U}]{{6,}}+(?:\.[{B64U}]{{6,}}+)?",
    ),
    _rule("bcrypt-hash", "$2", r"\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}"),
    _rule("azure-secret", "8q~", r"(?<![A-Za-z0-9])[A-Za-z0-9]{3}8Q~[A-Za-z0-9~._-]{31,}"),
    _rule("signature", "sig=", rf"[?&]sig=(?P<s>[{AN}%+/=_-]{{20,}})", re.IGNORECASE),
    _rule("totp-seed", "otpauth://", r"otpauth://\S{0,300}?secret=(?P<s>[A-Za-z2-7]{16,})"),
    # The last "@" before the host ends a password; a reference ($X, {x}, <x>) is not one.
    _rule(
        "url-password",
        "://",
        r"://[^\s/:@'\"<>]{0,100}:(?!(?:pass(?:word|wd)?|pwd?|secret|token|x+|\*+)@)(?P<s>[^\s/'\"<>$({][^\s/'\"<>]{0,500})@",
    ),
    _rule("url-token", "://", rf"://(?P<guess>[{B64U}]{{20,200}})@"),
    _rule(
        "authorization",
        "authorization bearer",
        rf"(?:authorization{_IS}[\"']?(?:basic|token|digest|bearer)|\bbearer)[ ]{{1,4}}"
        rf"(?P<guess>[{AN}._~+/-]{{16,}}=*)",
        re.IGNORECASE,
    ),
    _rule(
        "secret",
        "key secret token auth credential",
        rf"{_NAME}{_IS}(?:[\"'](?P<guess>[^\"'\s]{{16,}}+)[\"']|(?P<bare>[{AN}_+/~-][{AN}_+/=~-]{{15,}}+)(?![.(\[]))",
        re.IGNORECASE,
    ),
    _rule(
        "password",
        "passw passphrase pwd",
        rf"(?:passw(?:or)?d|passphrase|pwd){_IS}"
        r"(?:[\"'](?P<word>[^\"'\s]{8,}+)[\"']|(?P<bareword>[^\s\"'`,;&<>()\[\]{}$]{8,}+)(?![(\[]))",
        re.IGNORECASE,
    ),
)


def redact(text: str, known: Sequence[str] = ()) -> str:
    """The text with every secret as `[redacted:kind]`; everything else is unchanged.

    `known` are values that are secrets wherever they stand (from the environment, say), also in
    base64, in hexadecimal, percent-encoded, JSON-escaped, reversed or wrapped.
    """
    view, places = visible(text)
    found = [*_by_rule(view)]
    if pattern := _known_pattern(tuple(known)):
        joined, kept = _unwrapped(view)
        found += [
            (kept[m.start()], kept[m.end() - 1] + 1, "known") for m in pattern.finditer(joined)
        ]
    if not found:
        return text
    if places:
        found = [(places[a], places[b - 1] + 1, kind) for a, b, kind in found]
    out, end = [], 0
    for first, last, kind in sorted(found, key=lambda span: (span[0], -span[1])):
        if first >= end:
            out += [text[end:first], f"[redacted:{kind}]"]
        end = max(end, last)
    return "".join([*out, text[end:]])


def _by_rule(view: str) -> Iterator[tuple[int, int, str]]:
    lower = view.lower()
    for rule in RULES:
        if not any(hint in lower for hint in rule.hints):
            continue
        for match in rule.pattern.finditer(view):
            group = match.lastgroup
            if group is None:
                yield match.start(), match.end(), rule.kind
            elif _CONVINCES[group](match[group]):
                yield match.start(group), match.end(group), rule.kind


def _has_both(value: str) -> bool:
    """A letter and a digit, and nothing that only code, a reference or a placeholder has."""
    if _CODE.search(value) or "://" in value:
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _looks_random(value: str) -> bool:
    """Base64 padding, or letters and digits mixed as no word or path has them."""
    if value.endswith("=") and not _CODE.search(value):
        return True
    mixed = value != value.lower() and value != value.upper()
    return _has_both(value) and (mixed or len(_TURN.findall(value)) >= 2)


_CODE = re.compile(r"[${}<>()\[\]]")
_TURN = re.compile(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")
_CONVINCES = {
    "s": lambda value: True,
    "guess": _looks_random,
    "bare": _looks_random,
    "word": _has_both,
    "bareword": _has_both,
}


def _unwrapped(view: str) -> tuple[str, Sequence[int]]:
    """The text with line breaks and the indents behind them left out, and where each was."""
    if "\n" not in view:
        return view, range(len(view))
    places: list[int] = []
    at = 0
    for gap in _WRAP.finditer(view):
        places += range(at, gap.start())
        at = gap.end()
    places += range(at, len(view))
    return _WRAP.sub("", view), places


_WRAP = re.compile(r"\r?\n[ \t]*")


@lru_cache(maxsize=8)
def _known_pattern(known: tuple[str, ...]) -> re.Pattern[str] | None:
    forms = {form for value in known if len(value) >= LEAST_KNOWN for form in _forms(value)}
    if not forms:
        return None
    return re.compile("|".join(re.escape(f) for f in sorted(forms, key=lambda f: (-len(f), f))))


def _forms(value: str) -> Iterator[str]:
    """The spellings that a known value is looked for in."""
    value = _WRAP.sub("", value.strip())
    data = value.encode("utf-8", "surrogatepass")
    yield from (value, value[::-1], data.hex(), data.hex().upper())
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield from (quote(data, safe=""), quote(data))
    yield from (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode())
    for shift in range(3):
        # What base64 makes of the value behind 0, 1 or 2 other bytes, without the characters that
        # depend on its neighbours.
        coded = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        inner = coded[(shift * 8 + 5) // 6 : len(coded) - (1 if (shift + len(data)) % 3 else 0)]
        yield from (inner, inner.translate(_URLSAFE))


_URLSAFE = str.maketrans("+/", "-_")


_NAMES = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|(?:API|ACCESS|PRIVATE)_?KEY)"
    r"(?:_|$)",
    re.IGNORECASE,
)


def known_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of an environment whose names say that they are secrets, for `known`."""
    return tuple(
        value
        for name, value in sorted(environment.items())
        if _NAMES.search(name) and len(value) >= LEAST_KNOWN
    )
