"""Checks on another tree, and what they leave behind: nothing."""
