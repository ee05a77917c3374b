"""Sphinx configuration of the documentation: `make docs` builds it, without the network."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

project = "pilotfish"
author = "the pilotfish authors"
copyright = author
version = release = re.search(r'__version__ = "([^"]+)"', (ROOT / "__init__.py").read_text()).group(1)  # type: ignore[union-attr]

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
exclude_patterns = ["slurm/*"]
nitpicky = True
highlight_language = "none"
html_theme = "furo"
html_title = f"pilotfish {release}"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
