"""Symptoms that people report of other tools of this kind, each as a test of this one.

`docs/bug-classes.md` says which kinds there are and which test, here or elsewhere, covers each.
"""
