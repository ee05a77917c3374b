"""Makes the plain replay importable for the tests of this room."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("plain_replay", "plain_dependents", "plain_contended", "own_policies")
