"""How tests wait for what servers, jobs and processes do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def look_until(look: Callable[[], Found], most_s: float) -> Found | None:
    """Look until there is something, and return that; None: there was nothing within so many seconds.

    A look that takes long, as a command does, is repeated less often, and so is one that has been in vain for long:
    what is waited for needs the processor, too.
    """
    begun = time.monotonic()
    while (now := time.monotonic()) < begun + most_s:
        if found := look():
            return found
        time.sleep(min(1.0, 0.02 + (now - begun) / 8 + 3 * (time.monotonic() - now)))
    return None


def without_cluster(text: str) -> str:
    """Return the text of metrics without the label `cluster`, which all of them have."""
    return re.sub(r'cluster="[^"]*",?', "", text).replace("{}", "")
