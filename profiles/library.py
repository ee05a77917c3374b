"""The shipped profiles and node types, with their sources, read once from `library/*.yaml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..formats.cluster import parse_cluster
from ..formats.documents.document_errors import from_source
from ..formats.documents.files import check_schema, read_document
from ..formats.documents.schema import build, mapping
from ..simulate.model.cluster import NodeType
from ..simulate.model.job import Profile
from .profiles_file import read_profiles

LIBRARY = Path(__file__).with_name("library")


@cache
def profiles() -> MappingProxyType[str, Profile]:
    """Return the shipped profiles, name -> profile."""
    return MappingProxyType(read_profiles(LIBRARY / "npb.yaml"))


@cache
def node_types() -> MappingProxyType[str, NodeType]:
    """Return the shipped node types, name -> type."""
    return MappingProxyType(read_node_types(LIBRARY / "node_types.yaml"))


def read_node_types(path: str | Path) -> dict[str, NodeType]:
    """Return name -> type of a file (schema pilotfish/node-types/v1, as in a cluster file). Raises ConfigError."""
    source = str(path)
    data = check_schema(read_document(path), "node-types", source)
    types: dict[str, Any] = from_source(source, build, dict, {"node_types": mapping}, data, ("node_types",))
    one_of_each = [{"names": f"node{i}", "type": key} for i, key in enumerate(types["node_types"])]
    cluster = parse_cluster({"schema": "pilotfish/cluster/v1", **types, "nodes": one_of_each}, source)
    return {node.type.name: node.type for node in cluster.nodes}
