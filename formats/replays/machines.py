"""Read machines to replay on, in any known format.

Rule: XML is a SimGrid platform, JSON with a `platform` key is an IRMaSim platform, everything else is a cluster file.
"""

from __future__ import annotations

from pathlib import Path

from ...simulate.model.cluster import Cluster
from ..cluster import parse_cluster
from ..documents.files import decode, is_xml, parse_document, read_bytes
from . import irmasim


def read_machine(path: str | Path) -> Cluster:
    """Return the cluster that a file describes. O(bytes). Raises ConfigError."""
    data, source = read_bytes(path), str(path)
    if is_xml(data):
        from ..simgrid.cluster import cluster_of
        from ..simgrid.platform import parse_platform

        return cluster_of(parse_platform(data, source))
    document = parse_document(decode(data, source), source)
    if irmasim.is_irmasim_platform(document):
        return irmasim.parse_platform(document, source)
    return parse_cluster(document, source)
