"""Which versions of its interface a slurmrestd offers, and what the one that we speak can do.

Rule: found out from what it says of itself, never pinned: the newest that we can read is taken. A field is written
only if the version says that it takes it, and takes it whole.
Source: OpenAPI 3 as served on /openapi/v3; behaviour of v0.0.36 to v0.0.38 seen in Slurm 22.05, v0.0.39 (23.02) to
v0.0.44 (25.11) from their documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....simulate.formats.hostlist import expand
from ...base import ParseError
from ..update import ALLOWED
from .errors import NotDone

READABLE = range(36, 45)
#: from here on jobs are described as structures, and an update takes the same names that a job shows
STRUCTURED = 39
#: nodes of v0.0.36 show neither partitions nor whether they are drained
NODES_SINCE = 37
_PATH = re.compile(r"/slurm/v0\.0\.(\d+)/(jobs|nodes|diag|job/\{job_id\})/?")
_COMMENTS = {"AdminComment": "admin_comment", "Comment": "comment"}
_NEEDED = frozenset(("jobs", "nodes", "diag", "job/{job_id}"))


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the interface: its number, its paths by name, and the keys that an update of a job takes."""

    number: int
    paths: Mapping[str, str]
    takes: frozenset[str] = field(default=frozenset())

    def __str__(self) -> str:
        return f"v0.0.{self.number}"

    @property
    def tells_nodes(self) -> bool:
        """Whether its nodes show all that matters."""
        return self.number >= NODES_SINCE

    def job(self, number: int) -> str:
        """The path of a job."""
        return self.paths["job/{job_id}"].replace("{job_id}", str(number))

    def body(self, fields: Mapping[str, str], now: float) -> dict[str, object]:
        """What to send so that these fields of a job are written, all at once.

        Args:
            fields: as `scontrol update` names them: ReqNodeList, StartTime (`now`), AdminComment, Comment.
            now: epoch seconds, the controller's clock.

        Raises:
            NotDone: `unsupported`: one of them cannot be written this way.
        """
        structured = self.number >= STRUCTURED
        body: dict[str, object] = {}
        for name, value in fields.items():
            if name == "ReqNodeList":
                if structured and not value:
                    raise self._cannot("clear ReqNodeList")
                body |= {"required_nodes": list(expand(value))} if structured else {"nodelist": value}
            elif name == "StartTime" and value == "now":
                moment = {"set": True, "infinite": False, "number": int(now)}
                body["begin_time"] = moment if structured else "now"
            elif name in _COMMENTS:
                body[_COMMENTS[name]] = value
            else:
                raise self._cannot(f"write {name}={value}")
        for key in body.keys() - self.takes - ({"nodelist"} if not structured else set()):
            raise self._cannot(f"write {key}")
        return body

    def cannot_write(self) -> list[str]:
        """The fields of ours that it does not take."""
        cannot = []
        for name in sorted(ALLOWED):
            try:
                self.body({name: "now"}, 0.0)
            except NotDone:
                cannot.append(name)
        return cannot

    def _cannot(self, what: str) -> NotDone:
        return NotDone(f"slurmrestd {self} cannot {what} of a job")


def choose(document: Mapping[str, Any], where: str = "slurmrestd") -> Version:
    """The newest version that is offered whole and that we can read. Raises ParseError, NotDone."""
    paths = document.get("paths")
    if not isinstance(paths, dict):
        raise ParseError(f"{where}: what it says of itself is no OpenAPI document")
    offered: dict[int, dict[str, str]] = {}
    for path in paths:
        if found := _PATH.fullmatch(path):
            offered.setdefault(int(found[1]), {})[found[2]] = path
    usable = [number for number, names in offered.items() if number in READABLE and names.keys() >= _NEEDED]
    if not usable:
        said = ", ".join(f"v0.0.{number}" for number in sorted(offered)) or "none"
        known = f"v0.0.{READABLE.start} to v0.0.{READABLE[-1]}"
        message = f"{where}: of the versions that it offers ({said}) none can be read here ({known})"
        raise NotDone(message, kind="absent")
    number = max(usable)
    names = offered[number]
    return Version(number, names, _keys_of_update(document, names["job/{job_id}"]))


def _keys_of_update(document: Mapping[str, Any], path: str) -> frozenset[str]:
    """The keys that the body of an update may have, as the document says."""
    try:
        content = document["paths"][path]["post"]["requestBody"]["content"]
        schema = content["application/json"]["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return frozenset(schema["properties"])
    except (KeyError, TypeError, AttributeError, IndexError):
        return frozenset()
