"""Adapters: one module or folder a host. They import the public API of `rage_plugin` only."""
