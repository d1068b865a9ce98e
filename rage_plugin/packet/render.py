"""The two templates: values go in as data, never as template text.

Apart from the rooms' rules so that a reader finds what the model sees in `templates/` alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import jinja2

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("rage_plugin.packet"),
    # The output is plain text for a model; escaping HTML would change what an issue says.
    autoescape=False,  # noqa: S701
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
)
_PACKET = _ENVIRONMENT.get_template("packet.j2")
_BRIEF = _ENVIRONMENT.get_template("brief.j2")


def packet(fields: Mapping[str, str]) -> str:
    """The packet's text; every field of the template must be there, empty ones leave no line."""
    return _PACKET.render(fields)


def brief(fields: Mapping[str, str]) -> str:
    """The brief's text."""
    return _BRIEF.render(fields)
