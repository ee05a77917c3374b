"""Versions of slurmrestd's interface: which are offered, and what the one in use can do.

Rule: detected from its own description, never pinned: the newest readable version is used. A field is written only if
the version accepts it whole.
Source: OpenAPI 3 as served on /openapi/v3; behaviour of v0.0.36 to v0.0.38 observed in Slurm 22.05, v0.0.39 (23.02) to
v0.0.44 (25.11) from their documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....formats.hostlist import expand
from ...base import ParseError
from ..handed_over.job_update import EPOCH
from .errors import NotDone

READABLE = range(36, 45)
#: From this version on jobs are structures, and an update uses the same names as a job.
STRUCTURED = 39
#: Nodes of v0.0.36 show neither partitions nor whether they are drained.
NODES_SINCE = 37
_PATH = re.compile(r"/slurm/v0\.0\.(\d+)/(jobs|nodes|diag|job/\{job_id\})/?")
_NEEDED = frozenset(("jobs", "nodes", "diag", "job/{job_id}"))


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the interface: its number, its paths by name, and the keys that an update of a job accepts."""

    number: int
    paths: Mapping[str, str]
    takes: frozenset[str] = field(default=frozenset())

    def __str__(self) -> str:
        return f"v0.0.{self.number}"

    def job(self, number: int) -> str:
        """Return the path of a job."""
        return self.paths["job/{job_id}"].replace("{job_id}", str(number))

    def body(self, fields: Mapping[str, str], now: float) -> dict[str, object]:
        """Return the body of a request that writes these fields of a job, all at once. Raises NotDone, `unsupported`.

        Args:
            fields: As `scontrol update` names them: ReqNodeList, StartTime (`now`, `utsEPOCH`), TimeMin (minutes; only
                structured versions, because Slurm before 23.02 takes it for a hard limit).
            now: Controller's clock, epoch seconds.
        """
        structured = self.number >= STRUCTURED
        body: dict[str, object] = {}
        for name, value in fields.items():
            if name == "ReqNodeList":
                if structured and not value:
                    raise self._cannot("clear ReqNodeList")
                body |= {"required_nodes": list(expand(value))} if structured else {"nodelist": value}
            elif name == "StartTime" and (value == "now" or value.startswith(EPOCH)):
                number = int(now if value == "now" else value.removeprefix(EPOCH))
                body["begin_time"] = {"set": True, "infinite": False, "number": number} if structured else value
            elif name == "TimeMin" and structured:
                body["time_minimum"] = {"set": True, "infinite": False, "number": int(value)}
            else:
                raise self._cannot(f"write {name}={value}")
        for key in body.keys() - self.takes - ({"nodelist"} if not structured else set()):
            raise self._cannot(f"write {key}")
        return body

    def cannot_write(self) -> list[str]:
        """Return the fields of a pin that it does not accept."""
        cannot = []
        for name in ("ReqNodeList", "StartTime"):
            try:
                self.body({name: "now"}, 0.0)
            except NotDone:
                cannot.append(name)
        return cannot

    def _cannot(self, action: str) -> NotDone:
        return NotDone(f"slurmrestd {self} cannot {action} of a job")


def choose(document: Mapping[str, Any], where: str = "slurmrestd") -> Version:
    """Return the newest version that is offered completely and that we can read. Raises ParseError, NotDone."""
    paths = document.get("paths")
    if not isinstance(paths, dict):
        raise ParseError(f"{where}: its description is not an OpenAPI document")
    offered: dict[int, dict[str, str]] = {}
    for path in paths:
        if match := _PATH.fullmatch(path):
            offered.setdefault(int(match[1]), {})[match[2]] = path
    usable = [number for number, names in offered.items() if number in READABLE and names.keys() >= _NEEDED]
    if not usable:
        names_offered = ", ".join(f"v0.0.{number}" for number in sorted(offered)) or "none"
        readable = f"v0.0.{READABLE.start} to v0.0.{READABLE[-1]}"
        message = f"{where}: none of the versions that it offers ({names_offered}) can be read here ({readable})"
        raise NotDone(message, kind="absent")
    number = max(usable)
    names = offered[number]
    return Version(number, names, _keys_of_update(document, names["job/{job_id}"]))


def _keys_of_update(document: Mapping[str, Any], path: str) -> frozenset[str]:
    """Return the keys that the body of an update may have, by the document."""
    try:
        content = document["paths"][path]["post"]["requestBody"]["content"]
        schema = content["application/json"]["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return frozenset(schema["properties"])
    except (KeyError, TypeError, AttributeError, IndexError):
        return frozenset()
