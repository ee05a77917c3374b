"""Makes the oracle and the strategies of random instances importable for the tests of this room."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("instances", "oracle_rates", "fluid_oracle")
