"""The data of the pages, fuzzed by their own description: every answer is one that it describes, and none is a fault."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from pilotfish.daemon.report.board import JOB_COLUMNS
from pilotfish.daemon.socket.ipc import DaemonError
from pilotfish.web import server

pytestmark = pytest.mark.real  # the server asks from threads
schemathesis = pytest.importorskip("schemathesis")


def ask(do: str, **arguments) -> dict:
    """The answers of a service that has one job."""
    if do == "explain":
        if arguments["job"] != "rjms/1":
            raise DaemonError(f"no job {arguments['job']!r} exists")
        return {"job": {"key": "rjms/1"}}
    row = list((dict.fromkeys(JOB_COLUMNS) | {"key": "rjms/1", "uid": 7}).values())
    about = {"time": 1.0, "mark": "1", "for_everybody": True}
    return about | {"jobs": [row], "columns": JOB_COLUMNS, "nodes": {}, "users": {"7": "ada"}}


schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", server.application(ask, ["*"]))


@schema.parametrize()  # type: ignore[untyped-decorator]
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_described(case) -> None:
    case.call_and_validate()
