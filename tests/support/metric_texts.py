"""The text of a daemon's metrics, without the label that all of them have."""

from __future__ import annotations

import re


def without_cluster(text: str) -> str:
    """Return the text of metrics without the label `cluster`."""
    return re.sub(r'cluster="[^"]*",?', "", text).replace("{}", "")
