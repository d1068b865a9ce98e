"""The review room: looks at the workspace before an item begins, and changes nothing."""

from .survey import WorkspaceSurvey

__all__ = ["WorkspaceSurvey"]
