"""A calibration as a cluster file, or as a part of one, and in comments how well each number is known.

Rule: what is written is what `read_cluster` reads back.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...simulate.formats.cluster import dump, dump_cluster
from .result import Calibration, cluster
from .switching import Switching
from .words import rows, switching_rows


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
    return _comments(about) + str(yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True))


def power_text(found: Switching) -> str:
    """Return what switching a node has shown, as the `power` of its type in a cluster file."""
    import yaml

    about = [
        f"Node {found.node} was switched off and on, {found.date}.",
        *(f"{row.key}: {row.value} {_aside(row.known, row.rests_on)}" for row in switching_rows(found)),
    ]
    power = found.power()
    if power is None:
        about.append("What it draws is not known, as no command told it: there is nothing to write here.")
        data = ""
    else:
        about.append("idle is that of the whole node: beside per_socket, take that of its sockets off.")
        data = yaml.safe_dump({"power": dump(power)}, sort_keys=False)
    return _comments(about) + data


def _comments(lines: Iterable[str]) -> str:
    return "".join(f"# {' '.join(_plain(line).split())}\n" for line in lines)


def _aside(*parts: str) -> str:
    return f"({', '.join(filter(None, parts))})" if any(parts) else ""


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
