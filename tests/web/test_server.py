"""The pages over HTTP, asked as a browser does: what is served, to whom, and what keeps other pages away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotfish.daemon.report.board import JOB_COLUMNS
from pilotfish.daemon.socket.ipc import DaemonError, NoDaemonError
from pilotfish.web import follower, server

pytestmark = pytest.mark.real  # the server asks from threads
testclient = pytest.importorskip("starlette.testclient")


class World:
    """A service with a job of the user 7, and one of the user 8."""

    def __init__(self) -> None:
        self.cycle, self.for_everybody, self.down, self.asked = 1, False, "", list[tuple[str, dict]]()
        self.odd = dict[str, object]()

    def row(self, key: str, uid: int) -> list:
        blank = dict.fromkeys(JOB_COLUMNS) | {"key": key, "uid": uid, "state": "running", "start_time": self.cycle}
        return list(blank.values())

    def ask(self, do: str, **arguments) -> dict:
        self.asked.append((do, arguments))
        if self.down:
            raise NoDaemonError(self.down)
        if do == "rights":
            users = {"ada": (7, False), "eve": (9, True)}
            if arguments["as_user"] not in users:
                raise DaemonError("no user of that name exists")
            uid, administers = users[arguments["as_user"]]
            return {"uid": uid, "administers": administers}
        if do == "explain":
            if arguments["job"] != "rjms/1":
                raise DaemonError(f"no job {arguments['job']!r} exists")
            return {"job": {"key": "rjms/1"}, "as": arguments["as_user"]}
        if do == "accuracy":
            return {"jobs": [], "starts": []}
        if do == "card":
            return {"card": None, "why_not": "it is made tomorrow"}
        rows = [self.row("rjms/1", 7), self.row("rjms/2", 8)]
        about = {
            "time": 100.0,
            "mark": f"{self.cycle}-{self.for_everybody}",
            "for_everybody": self.for_everybody,
            "mode": "live",
        }
        return about | {"jobs": rows, "columns": JOB_COLUMNS, "nodes": {}, "users": {"7": "ada", "8": "bob"}} | self.odd


@pytest.fixture
def world(monkeypatch) -> World:
    monkeypatch.setattr(follower, "LOOKED_AT_S", 0.0)
    return World()


@pytest.fixture
def browser(world) -> Iterator:
    app = server.application(world.ask, ["pages.example"], "X-Remote-User")
    with testclient.TestClient(app, base_url="http://pages.example") as client:
        yield client


def keys(answer) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {row[0] for row in answer.json()["jobs"]}


@pytest.mark.parametrize(
    ("user", "shown"), [("ada", {"rjms/1"}), ("eve", {"rjms/1", "rjms/2"}), ("mallory", set()), (None, set())]
)
def test_a_user_sees_their_own(browser, user, shown) -> None:
    headers = {} if user is None else {"x-remote-user": user}
    assert keys(browser.get("/api/v1/board", headers=headers)) == shown


@pytest.mark.parametrize(("user", "code"), [("ada", 403), ("eve", 200), ("mallory", 403), (None, 403)])
def test_who_may_not_see_all_jobs_sees_no_number_about_them(browser, user, code) -> None:
    answer = browser.get("/api/v1/quality", headers={} if user is None else {"x-remote-user": user})
    assert answer.status_code == code
    if code == 200:
        assert [table["title"] for table in answer.json()["tables"]][-1] == "The card"
        assert "it is made tomorrow" in answer.json()["tables"][-1]["text"]


def test_all_see_all_where_the_service_lets_them(browser, world) -> None:
    world.for_everybody = True
    assert keys(browser.get("/api/v1/board")) == {"rjms/1", "rjms/2"}


def test_without_a_proxy_a_header_names_no_user(world) -> None:
    app = server.application(world.ask, ["pages.example"])
    with testclient.TestClient(app, base_url="http://pages.example") as client:
        assert keys(client.get("/api/v1/board", headers={"x-remote-user": "eve"})) == set()
        assert client.get("/api/v1/jobs/rjms/1", headers={"x-remote-user": "eve"}).json()["as"] == ""


@pytest.mark.parametrize(
    "path", ["/", "/jobs/rjms/1", "/static/main.js", "/api/v1/board", "/api/v1/openapi.json", "/nope"]
)
def test_every_answer_keeps_other_pages_away(browser, path) -> None:
    headers = browser.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"] and headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in headers["content-security-policy"] and "server" not in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/api/v1/board", "/api/v1/jobs/rjms/1", "/api/v1/events"])
def test_nothing_can_be_changed(browser, method, path) -> None:
    assert browser.request(method, path).status_code == 405


@pytest.mark.parametrize("host", ["evil.example", "pages.example.evil.example", ""])
def test_another_host_is_refused(browser, host) -> None:
    assert browser.get("/api/v1/board", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static//etc/passwd"]
)
def test_only_its_own_files_are_served(browser, path) -> None:
    assert browser.get(path).status_code == 404


def test_a_job_is_asked_for_as_its_viewer(browser, world) -> None:
    assert browser.get("/api/v1/jobs/rjms/1", headers={"x-remote-user": "ada"}).json()["as"] == "ada"
    missing = browser.get("/api/v1/jobs/rjms/9")
    assert missing.status_code == 404 and "rjms/9" in missing.json()["error"]
    assert browser.get("/api/v1/jobs/" + "x" * 600).status_code == 404


def test_a_service_that_is_away_is_said_and_its_last_board_stays(browser, world) -> None:
    world.for_everybody = True
    assert keys(browser.get("/api/v1/board")) == {"rjms/1", "rjms/2"}
    world.down = "no daemon listens"
    answer = browser.get("/api/v1/board").json()
    assert answer["trouble"] == "no daemon listens" and len(answer["jobs"]) == 2
    health = browser.get("/healthz")
    assert (health.status_code, health.json()["trouble"]) == (503, "no daemon listens")


@pytest.mark.parametrize("odd", [{"jobs": [1]}, {"jobs": [[]]}, {"nodes": 1, "columns": []}, {"columns": None}])
def test_an_answer_that_is_not_understood_is_said_and_the_next_one_is_shown(browser, world, odd) -> None:
    world.for_everybody = True
    assert keys(browser.get("/api/v1/board")) == {"rjms/1", "rjms/2"}
    world.cycle, world.odd = 2, odd
    assert "is not understood" in browser.get("/healthz").json()["trouble"]
    world.odd = {}
    answer = browser.get("/api/v1/board")
    assert keys(answer) == {"rjms/1", "rjms/2"} and answer.json()["trouble"] == ""
    start_time = JOB_COLUMNS.index("start_time")
    assert {row[start_time] for row in answer.json()["jobs"]} == {2}


def test_a_service_that_never_answered_is_an_error(world) -> None:
    world.down = "no daemon listens"
    with testclient.TestClient(server.application(world.ask, ["testserver"])) as client:
        answer = client.get("/api/v1/board")
        assert (answer.status_code, answer.json()) == (503, {"error": "no daemon listens"})
        assert client.get("/").status_code == 200


def test_the_description_names_every_path_of_the_data(browser) -> None:
    document = browser.get("/api/v1/openapi.json").json()
    assert set(document["paths"]) == {
        "/api/v1/board",
        "/api/v1/jobs/{key}",
        "/api/v1/openapi.json",
        "/api/v1/quality",
        "/healthz",
    }
    required = document["paths"]["/api/v1/board"]["get"]["responses"]["200"]["content"]["application/json"]["schema"][
        "required"
    ]
    assert set(required) == set(browser.get("/api/v1/board").json())
