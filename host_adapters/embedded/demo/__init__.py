"""The demo: a small real package with a failing suite, and a rehearsal that also makes mistakes.

Everything but the model's replies is real: chat, tools, git, checks, SQLite, loop.
"""
