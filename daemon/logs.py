"""The daemon's log on stderr: one sentence a cycle, records with `cycle` and `job`, as plain text or JSON
lines.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time

_EXTRA = ("cycle", "job")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in _EXTRA if hasattr(record, name)}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up(level: str, style: str) -> None:
    """Log from `level` up to stderr; `style` is plain or json. The journal of systemd adds its own times."""
    handler = logging.StreamHandler(sys.stderr)
    moment = "" if "JOURNAL_STREAM" in os.environ else "%(asctime)s "
    handler.setFormatter(
        _Json() if style == "json" else logging.Formatter(f"{moment}%(levelname)s %(message)s")
    )
    logger = logging.getLogger("pilotfish")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())
