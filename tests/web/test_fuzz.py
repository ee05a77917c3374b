"""The data of the pages, fuzzed by their own description: every answer is one that it describes, and none is a fault."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from pilotfish.daemon.report.board import JOB_COLUMNS
from pilotfish.daemon.socket.ipc import DaemonError
from pilotfish.web import server
from pilotfish.web.openapi import document

pytestmark = pytest.mark.real  # the server asks from threads
schemathesis = pytest.importorskip("schemathesis")
testclient = pytest.importorskip("starlette.testclient")


def ask(do: str, **arguments) -> dict:
    """The answers of a service that has one job."""
    if do == "explain":
        if arguments["job"] != "rjms/1":
            raise DaemonError(f"no job {arguments['job']!r} exists")
        return {"job": {"key": "rjms/1"}}
    if do in ("accuracy", "card"):
        return {"jobs": [], "starts": [], "card": None}
    row = list((dict.fromkeys(JOB_COLUMNS) | {"key": "rjms/1", "uid": 7}).values())
    about = {"time": 1.0, "mark": "1", "for_everybody": True}
    return about | {"jobs": [row], "columns": JOB_COLUMNS, "nodes": {}, "users": {"7": "ada"}}


@pytest.mark.parametrize("path", document()["paths"])
def test_every_answer_is_as_described(path: str) -> None:
    operation = schemathesis.openapi.from_dict(document())[path]["GET"]
    with testclient.TestClient(server.application(ask, ["testserver"]), follow_redirects=False) as client:

        @given(operation.as_strategy())
        @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
        def ask_for(case) -> None:
            arguments = case.as_transport_kwargs(base_url="http://testserver")
            answer = client.request(arguments["method"], arguments["url"], headers=dict(arguments["headers"]))
            case.validate_response(schemathesis.Response.from_httpx(answer, verify=False))

        ask_for()
