"""A calibration as a cluster file: this one node, its type, and in comments how well each number is known.

Rule: what is written is what `read_cluster` reads back.
"""

from __future__ import annotations

from ...simulate.formats.cluster import dump_cluster
from .result import Calibration, cluster
from .words import rows


def cluster_text(found: Calibration, name: str) -> str:
    """Return the file's text.

    Args:
        name: of the node type, and of the node.
    """
    import yaml

    about = [
        f"Calibrated on {found.date}: {found.model or 'a processor without a name'}, host {found.host}.",
        "Bandwidth as STREAM counts it (triad). Speed is in steps/s of a reference loop: it means something beside",
        "the speed of other calibrated types only.",
        *(f"{row.key.strip()}: {row.value} {_aside(row.known, row.rests_on)}" for row in rows(found)),
    ]
    if found.power is not None:
        about.append("Power is that of the processors; what the rest of the node draws is not in it (idle: 0).")
    if found.remote is not None:
        about.append("remote_access_penalty holds for jobs that are not bound to their memory; 1 where all are.")
    about += [f"Note: {note}." for note in found.notes]
    data = dump_cluster(cluster(found, name))
    comments = "".join(f"# {' '.join(_plain(line).split())}\n" for line in about)
    return comments + str(yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True))


def _aside(*parts: str) -> str:
    return f"({', '.join(filter(None, parts))})" if any(parts) else ""


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
