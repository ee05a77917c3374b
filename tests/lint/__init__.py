"""Checks of the source tree that ruff and mypy do not make: words, file names, file sizes, import circles."""
