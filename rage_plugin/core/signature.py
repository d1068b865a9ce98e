"""Deterministic identity of an action and of an error: same input, same digits, in any process.

Separate from `recovery.py`, which decides what follows when an identity comes again. An error is
the same error when it differs only in what differs from run to run: folders, line numbers,
addresses, times, durations, temporary names, ids, counts. What says *which* error it is stays:
words, exception names, file names, error codes, exit codes, HTTP statuses.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

READ = 128 * 1024
"""Characters of an error that are read: all of it, or the first half and the last half of this."""
_DEEPEST = 100
"""Levels of nesting that are read; below, a value is its type. JSON from a model ends before."""
_PASSES = 6
"""Normalising a normalised text must change nothing; one pass does it for all but odd texts."""
_SCALARS = (str, bytes, bytearray, bool, int, float, type(None))

ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\)")
"""Colours and cursor movements (CSI), and terminated titles and links (OSC)."""
_CONTROLS = {n: None for n in (*range(32), *range(127, 160)) if not chr(n).isspace()}

# ── paths: the folder goes, the file's name stays ──
_QUOTED = re.compile(
    r"(?P<mark>[\"'`])(?P<path>(?:/|~/|\.{1,2}/|[A-Za-z]:[\\/]|\\\\|file:///?)[^\"'`]{1,1000})(?P=mark)"
)
_WORDS = re.compile(
    r"(?P<url>(?<![\w#])(?!file:)[A-Za-z][\w+.-]*://[^\s\"'<>`)\]]*)"
    r"|(?:(?<![\w#])file://)?(?:[A-Za-z]:(?=[\\/]))?[\w.@+%~#$\\/-]+"
)
_ABSOLUTE = re.compile(r"(?:-[A-Za-z])?(?:/|~[\w-]*/|\.{1,2}[\\/]|[A-Za-z]:[\\/]|\\\\|file:)")
_SUFFIX = re.compile(r"\.[A-Za-z][\w#]*$")
# A folder that says where the tests ran, not what failed: its own name goes too.
_ROOT = re.compile(r"(?<=\brootdir: )[^\s,]+")
_SEPARATOR = re.compile(r"[\\/]+")
_TEMPORARY_FOLDER = re.compile(r"(?:tmp|temp|T|shm)$", re.IGNORECASE)

# ── everything with a digit: what is kept comes first, then the long forms, then plain numbers ──
_DAY = r"(?-i:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?\ "
_MONTH = (
    r"(?-i:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_CLOCK = r"[0-9]{1,2}[:_][0-9]{2}(?:[:_][0-9]{2}(?:[.,_][0-9]{1,9})?)?(?:\ ?[ap]m(?!\w))?"
_SECONDS = r"(?<![\w:])[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:\ ?[ap]m(?!\w))?"
_ZONE = r"(?:\ ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})(?!\w))?"
_UNIT = (
    r"(?:ns|us|[µμ]s|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|days?|milliseconds?"
    r"|[kKMGT]i?B|[Bb]ytes?)"
)
_SPAN = rf"[0-9]+(?:\.[0-9]+)?\ ?{_UNIT}(?:,?\ ?[0-9]+(?:\.[0-9]+)?\ ?{_UNIT})*(?!\w)"
_DIGITS = re.compile(
    rf"""(?P<kept>
        (?<![\w#])
        (?: (?:exit|error|return|status|response)?[ _]?(?:code|status)(?:Code)?
          | exit|exited|exited\ with|returned|responded\ with|signal|errno|winerror|os\ error
          | HTTP|HTTP/[0-9](?:\.[0-9])?|HTTP\ error )
        [ :=(]{{1,3}} -?[0-9]{{1,3}} (?!\w|[.:][0-9])
      | (?<![\w#]) error\ [0-9]{{1,5}} (?!\w|[.:][0-9])
      | (?<![\w#]) [45][0-9]{{2}}\ (?=(?:Not|Forbidden|Unauthorized|Bad|Internal|Service|Gateway
          |Too|Conflict|Unprocessable|Method|Request|Gone|Client|Server)\b)
      )
    | (?<!\w) (?-i:tmp[a-z0-9_]{{8}}) (?!\w)  # `tempfile` of Python: one in twelve has no digit
    | (?<!\w) [0-9A-F]{{8}}-(?:[0-9A-F]{{4}}-){{3}}[0-9A-F]{{12}} (?!\w)
    | (?<!\w) (?:{_DAY})?
        (?: [0-9]{{4}}[-/.][0-9]{{2}}[-/.][0-9]{{2}} (?:[T\ _]{_CLOCK}{_ZONE})?
          | {_MONTH}\ [0-9]{{1,2}}(?:,?\ [0-9]{{4}})?(?:,?\ {_CLOCK}{_ZONE})?(?:\ [0-9]{{4}})?
          | [0-9]{{1,2}}[ /-]{_MONTH}[ /-][0-9]{{4}}(?:[ :]{_CLOCK}{_ZONE})?
          | {_SECONDS}{_ZONE} ) (?!\w)
    | (?P<aside>\ \({_SPAN}\)(?=\ |$))
    | (?<!\w) [+-]?{_SPAN}
    | (?<!\w) [+-]?[0-9]+(?:\.[0-9]+)*(?:e[+-]?[0-9]+)?(?!\w)
    | (?P<word>(?<!\w)[^\W0-9]*[0-9]\w*)""",
    re.VERBOSE | re.IGNORECASE,
)

# ── words with digits: codes and names stay, ids go ──
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+|(?=[0-9]*[a-fA-F])[0-9a-fA-F]{7,}")
_CODE = re.compile(r"[A-Z]{1,8}[0-9]{1,5}")
_TEMPORARY = re.compile(r"tmp[a-z0-9_]{5,12}")
_RUNS = re.compile(r"[0-9]+")
_WORKER = re.compile(r"\[gw[0-9]+\]")
_ID = re.compile(r"[A-Za-z0-9]+")
_LONG_RUN = re.compile(r"[0-9]{5}")
_LETTERS = re.compile(r"[A-Za-z]{4}")
_VOWEL = re.compile(r"[aeiouAEIOU]")

_FILL = re.compile(r"([^\w\s]|_)\1{3,}")
_CARETS = re.compile(r"\^{2,}|~{2,}\^~*|\^~+")
_PLURAL = re.compile(r"(# (?:[a-z]+ )??[A-Za-z]{2,}[A-Za-rt-z])s\b")


def action_signature(tool: str, args: Mapping[str, object]) -> str:
    """Identity of a tool call, 32 hexadecimal digits: the name and the arguments as they are.

    Only the order of keys is without meaning. 1, 1.0 and True differ, as they do in JSON; white
    space counts. What JSON does not know is read by its `repr` without addresses.
    """
    return _digest(_canonical(tool, 0), _canonical(args, 0))


def error_signature(text: str, failing: Sequence[str] = ()) -> str:
    """Identity of an error, 32 hexadecimal digits: its normalised text and the failing test ids."""
    tests = sorted(set(failing))
    return _digest(_canonical(normalise_error(text), 0), _canonical(tests, 0))


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def _canonical(value: object, depth: int) -> bytes:
    """Bytes that say what a value is; no two different values of JSON share them."""
    if isinstance(value, _SCALARS):
        return _scalar(value)
    if depth > _DEEPEST:
        return _tagged("deep", type(value).__name__)
    below = depth + 1
    if isinstance(value, Mapping):
        pairs = [_canonical(k, below) + _canonical(v, below) for k, v in value.items()]
        return b"{" + b"".join(sorted(pairs)) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b"".join(_canonical(v, below) for v in value) + b"]"
    if isinstance(value, (set, frozenset)):
        return b"<" + b"".join(sorted(_canonical(v, below) for v in value)) + b">"
    try:
        shown = re.sub(r"0x[0-9a-fA-F]+", "0x", repr(value))
    except Exception:  # noqa: BLE001 - a foreign __repr__ may raise anything
        shown = ""
    return _tagged(f"{type(value).__module__}.{type(value).__qualname__}", shown)


def _scalar(value: object) -> bytes:
    if isinstance(value, str):
        return _tagged("s", str.__str__(value))
    if isinstance(value, (bytes, bytearray)):
        return _tagged("y", value.hex())
    if isinstance(value, int) and not isinstance(value, bool):
        return _tagged("i", format(int(value), "x"))  # decimal digits have a limit
    if isinstance(value, float):
        return _tagged("f", float.__repr__(value))
    return _tagged("c", str(value))


def _tagged(kind: str, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return f"{kind}{len(data)}:".encode() + data


def normalise_error(text: str) -> str:
    """The text on one line without what differs from run to run; never longer than it was.

    Numbers, times, durations, addresses, ids and temporary names become `#`; paths lose their
    folder. Of more than `READ` characters the first and the last half of it are read. Linear time.
    """
    if len(text) > READ:
        half = READ // 2 - 1
        text = f"{text[:half]} {text[-half:]}"
    for _ in range(_PASSES):
        before, text = text, _once(text)
        if text == before:
            break
    return text


def _once(text: str) -> str:
    text = " ".join(ANSI.sub("", text).translate(_CONTROLS).split())
    text = _CARETS.sub("^", _FILL.sub(r"\1\1\1", text))
    text = _ROOT.sub("#", text)
    if "/" in text or "\\" in text:
        text = _WORDS.sub(_unquoted, _QUOTED.sub(_quoted, text))
    text = _DIGITS.sub(_number, _WORKER.sub("[#]", text))
    # `[ 50%]` and `[100%]`; `1 test` and `2 tests`
    return _PLURAL.sub(r"\1", text.replace("[ ", "["))


def _quoted(match: re.Match[str]) -> str:
    return match["mark"] + _file_name(match["path"]) + match["mark"]


def _unquoted(match: re.Match[str]) -> str:
    word = match[0]
    if match["url"] is not None or not _SEPARATOR.search(word):
        return word
    # Without a suffix `a/b` may be a branch, a package, a media type or "and/or".
    if _ABSOLUTE.match(word) or _SUFFIX.search(word):
        return _file_name(word)
    return word


def _file_name(path: str) -> str:
    """The last part of a path, `#` for a temporary one; the path itself if it has no part."""
    parts = [part for part in _SEPARATOR.split(path) if part.strip()]
    if not parts:
        return path
    name = parts[-1]
    if len(parts) > 1 and _TEMPORARY_FOLDER.match(parts[-2]):
        stem, dot, suffix = name.partition(".")
        if _RUNS.search(stem) or (stem != stem.lower() and stem[1:] != stem[1:].lower()):
            return f"#{dot}{suffix}"
    return name


def _number(match: re.Match[str]) -> str:
    if match["kept"] is not None:
        return match[0]
    if match["aside"] is not None:
        return ""
    return "#" if match["word"] is None else _word(match["word"])


def _word(word: str) -> str:
    """What stays of a word: all of a code or a name, nothing of an id, and no long number."""
    first = _RUNS.search(word)
    if first is None or _CODE.fullmatch(word):
        return word
    if _HEXADECIMAL.fullmatch(word) or _TEMPORARY.fullmatch(word) or _is_id(word):
        return "#"
    if first.start() == 0:
        return "#" + _word(word[first.end() :])
    return f"{word[: first.start()]}#" if _LONG_RUN.search(word) else word


def _is_id(word: str) -> bool:
    """Whether letters and digits alternate as they do in a random id, e.g. `x7k2m9qp`.

    `sha256ToBase64` is none: its letters make words.
    """
    runs = list(_RUNS.finditer(word))
    if not _ID.fullmatch(word) or not any(a.end() < b.start() for a, b in pairwise(runs)):
        return False
    if len(word) >= 8:
        return len(runs) >= 3 or not _LETTERS.search(word)
    return len(word) >= 5 and not _VOWEL.search(word)
