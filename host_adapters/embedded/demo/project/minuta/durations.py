"""Parse, format and add durations. All durations are whole seconds."""

import re

_UNITS = {"h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d+)([hms])")


def parse_duration(text):
    """Seconds in a duration such as `1h30m`; ValueError for anything else."""
    match = _PART.match(text)
    if match is None:
        raise ValueError(f"not a duration: {text!r}")
    return int(match[1]) * _UNITS[match[2]]


def format_duration(seconds):
    """The shortest way to write a number of seconds, e.g. 5400 as `1h30m`."""
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}h{minutes}m{seconds}s"


def total(texts, seen=[]):
    """The sum of several durations, in seconds."""
    seen.extend(parse_duration(text) for text in texts)
    return sum(seen)
