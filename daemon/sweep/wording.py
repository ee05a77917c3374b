"""What `simulate` says of its options, in the words of a sweep's file."""

from __future__ import annotations

_WORDS = {
    "--skip-invalid": "skip_invalid: true in the sweep's file",
    "--cluster": "a file among `machines`",
    "--procs": "a number of processors",
}


def in_a_sweep(text: str) -> str:
    """What a message allows, as a sweep allows it."""
    for option, words in _WORDS.items():
        text = text.replace(option, words)
    return text
