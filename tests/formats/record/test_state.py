"""The state at the begin of a record comes back as it was, and a damaged one is one error."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pilotfish.formats.record.state import read_state, write_state
from pilotfish.simulate.errors import ConfigError

FILES = {"journal.sqlite": b"abc" * 5000 + np.random.default_rng(1).bytes(3000), "profiles.sqlite": b"x" * 100}


def test_files_come_back_as_they_were(tmp_path: Path) -> None:
    write_state(tmp_path, 1.0, FILES)
    assert read_state(next(tmp_path.iterdir())) == FILES


def test_damage_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    """Wherever bytes change: in the names, the sizes, the compressed data, or at the end of the file."""
    write_state(tmp_path, 1.0, FILES)
    path = next(tmp_path.iterdir())
    content, draw, errors = path.read_bytes(), np.random.default_rng(2), set[str]()
    for _ in range(1000):
        damaged = bytearray(content)
        for place in draw.integers(len(content), size=draw.integers(1, 5)):
            damaged[place] = draw.integers(256)
        path.write_bytes(damaged if draw.random() < 0.8 else damaged[: draw.integers(len(content))])
        try:
            read_state(path)
        except ConfigError as error:
            assert str(path) in str(error)
            errors.add(str(error))
    assert any("while decompressing" in error for error in errors) and len(errors) > 3
