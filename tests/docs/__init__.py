"""Tests that hold the pages under docs/ to the code."""
