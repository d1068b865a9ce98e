"""`python -m rage_plugin` is the `rage` command."""

from .cli import main

main()
