"""Checks of the source tree that ruff and mypy do not make: words, names, file sizes, imports."""
