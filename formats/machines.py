"""Machines to replay on, in whatever format a file has.

Rule: XML is a platform of SimGrid, JSON with a platform one of IRMaSim, all else a cluster file.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from ..platform import Cluster
from . import irmasim
from .cluster import parse_cluster
from .reading import decode, parse_document, read_bytes
from .simgrid import parse_platform
from .simgrid_cluster import cluster_of


def is_xml(data: bytes) -> bool:
    """Whether a file's bytes begin as XML does."""
    return data.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<")


def read_machine(path: str | Path) -> Cluster:
    """Return the cluster that a file describes. O(bytes). Raises ConfigError."""
    data, source = read_bytes(path), str(path)
    if is_xml(data):
        return cluster_of(parse_platform(data, source))
    document = parse_document(decode(data, source), source)
    if irmasim.is_irmasim(document):
        return irmasim.parse_platform(document, source)
    return parse_cluster(document, source)
