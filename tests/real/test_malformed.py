"""Whatever a person types or hands over: one clear line, the right exit code, and nothing begun or half written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from malformed_inputs import (
    CLUSTER,
    CLUSTERS,
    CONFIGS,
    DAEMON,
    FLOW,
    IMPORTS,
    PROFILES,
    TEXTS,
    TRACE,
    USAGES,
    WORKFLOWS,
    edited,
    named,
)  # fmt: skip
from real_world import CPUS, process

from pilotfish.cli.__main__ import main

Tree = dict[str, bytes | None]
#: How a file comes in: the command line, with FILE for the wrong one.
AS_WORKFLOW = {
    "plan": "plan FILE --cluster lab.yaml --policy slf",
    "run": "run FILE --cluster lab.yaml --policy slf --no-live",
    "submit": "submit FILE --socket absent",
}
AS_CLUSTER = {
    "plan cluster": "plan good.yaml --cluster FILE --policy slf",
    "run cluster": "run good.yaml --cluster FILE --policy slf --no-live",
}
AS_OTHER = {"daemon": "daemon --config FILE", "import": "profile import FILE", "sweep": "sweep FILE"}
ANYWHERE = AS_WORKFLOW | AS_CLUSTER | AS_OTHER


def tree(folder: Path) -> Tree:
    """Every file below a folder with its content, and every folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


class Arena:
    """A folder with good files, and the command line in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys, self.said = folder, capsys, ""
        site = edited(CLUSTER, "nodes.0.cpus", str(CPUS[0]))
        for name, document in (("good.yaml", FLOW), ("lab.yaml", site)):
            (folder / name).write_text(yaml.safe_dump(document))

    def pilotfish(self, words: list[str]) -> tuple[int, str]:
        """Run a command; returns its exit code and what it said on stderr."""
        self.capsys.readouterr()
        code = main(words)
        self.said, said = self.capsys.readouterr()
        assert "Traceback" not in said and "please report" not in said
        return code, said

    def profiles(self) -> set[str]:
        """Names of the profiles that are known."""
        assert self.pilotfish(["profile", "list", "--json"])[0] == 0
        return set(json.loads(self.said)["profiles"])

    def refuses(self, line: str, file: str = "") -> str:
        """The one error line of a command that fails and changes nothing."""
        before = tree(self.folder)
        code, said = self.pilotfish([file if word == "FILE" else word for word in line.split()])
        assert code == 1, said
        assert said.startswith("pilotfish: error: ") and said.count("\n") == 1 and said.endswith("\n")
        assert said.isprintable() or said[:-1].isprintable()
        assert tree(self.folder) == before
        return said


@pytest.fixture
def arena(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Arena:
    return Arena(tmp_path, capsys)


def write(arena: Arena, document: Any) -> str:
    (arena.folder / "wrong.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    return "wrong.yaml"


@pytest.mark.parametrize("way", ANYWHERE)
@pytest.mark.parametrize("text", TEXTS)
def test_a_file_of_another_kind(arena: Arena, text: str, way: str) -> None:
    (arena.folder / "wrong.yaml").write_bytes(TEXTS[text])
    assert "wrong.yaml" in arena.refuses(ANYWHERE[way], "wrong.yaml")


@pytest.mark.parametrize("way", AS_WORKFLOW)
@pytest.mark.parametrize(("where", "value"), [pytest.param(*case, id=named(*case)) for case in WORKFLOWS])
def test_a_wrong_workflow(arena: Arena, where: str, value: Any, way: str) -> None:
    said = arena.refuses(AS_WORKFLOW[way], write(arena, edited(FLOW, where, value)))
    if way == "submit" and "no pilotfish daemon listens" in said:
        assert value in (2, 64, "999999TiB"), "only what needs a look at the cluster is left to the daemon"
        return
    assert "wrong.yaml" in said


@pytest.mark.parametrize("way", AS_CLUSTER)
@pytest.mark.parametrize(("where", "value"), [pytest.param(*case, id=named(*case)) for case in CLUSTERS])
def test_a_wrong_cluster(arena: Arena, where: str, value: Any, way: str) -> None:
    assert "wrong.yaml" in arena.refuses(AS_CLUSTER[way], write(arena, edited(CLUSTER, where, value)))


@pytest.mark.parametrize(("where", "value"), [pytest.param(*case, id=named(*case)) for case in CONFIGS])
def test_a_wrong_configuration(arena: Arena, where: str, value: Any) -> None:
    assert "wrong.yaml" in arena.refuses("daemon --config FILE", write(arena, edited(DAEMON, where, value)))


@pytest.mark.parametrize(("where", "value"), [pytest.param(*case, id=named(*case)) for case in IMPORTS])
def test_wrong_profiles_are_not_taken_in_part(arena: Arena, where: str, value: Any) -> None:
    assert "wrong.yaml" in arena.refuses("profile import FILE", write(arena, edited(PROFILES, where, value)))


@pytest.mark.parametrize("way", ANYWHERE)
@pytest.mark.parametrize("path", ["missing.yaml", ".", "good.yaml/below", "x" * 300, "no/such/folder.yaml"])
def test_a_path_that_leads_nowhere(arena: Arena, path: str, way: str) -> None:
    arena.refuses(ANYWHERE[way], path)


@pytest.mark.parametrize("way", ANYWHERE)
def test_an_empty_path(arena: Arena, way: str) -> None:
    before = tree(arena.folder)
    code, message = arena.pilotfish(["" if word == "FILE" else word for word in ANYWHERE[way].split()])
    assert code == 64 and "an empty name (allowed: a file or" in message
    assert tree(arena.folder) == before


@pytest.mark.parametrize("line", USAGES)
def test_a_wrong_command_line(arena: Arena, line: str) -> None:
    before = tree(arena.folder)
    code, said = arena.pilotfish(line.split())
    assert code == 64
    assert "Error: " in said or line == "profile"
    assert tree(arena.folder) == before


@pytest.mark.parametrize(
    "line",
    ["status", "status x", "cancel x", "explain x", "submit good.yaml", "submit good.yaml --wait --key k"],
)
def test_no_daemon_to_ask(arena: Arena, line: str) -> None:
    assert "no pilotfish daemon listens" in arena.refuses(f"{line} --socket absent")
    assert "too long for a socket" in arena.refuses(f"{line} --socket {'s' * 120}")


@pytest.mark.parametrize("line", ["profile show absent", "demo good.yaml", "profile export no/such/folder/x.yaml"])
def test_what_cannot_be_done(arena: Arena, line: str) -> None:
    arena.refuses(line)


@pytest.mark.parametrize("name", ["plan", "run", "submit", "daemon", "import"])
def test_the_same_in_a_process_of_its_own(arena: Arena, name: str) -> None:
    """The interpreter's last words count, too."""
    (arena.folder / "wrong.yaml").write_bytes(TEXTS["a tag that runs"])
    before = tree(arena.folder)
    done = process(*["wrong.yaml" if word == "FILE" else word for word in ANYWHERE[name].split()])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pilotfish: error: wrong.yaml: ") and done.stderr.count("\n") == 1
    assert tree(arena.folder) == before


known = st.sampled_from(["first", "second", "t", "n1", "1GiB", "pilotfish/workflow/v1"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), known)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)


def places(document: Any) -> list[tuple[Any, ...]]:
    """The path of every value in a document, its root left out."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path for key, part in items for path in [(key,), *((key, *deep) for deep in places(part))]]


@st.composite
def spoilt(draw: Callable[..., Any], document: dict[str, Any]) -> str:
    """A document with something else in one or two places, as JSON."""
    made = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from(places(made) or [("schema",)]))
        inner = made
        for part in path:
            inner = inner[part]
        inner[last] = draw(values)
    return json.dumps(made)


def examples(count: int) -> Callable[..., Any]:
    return settings(max_examples=count, deadline=None)


def survives(arena: Arena, line: str, data: bytes, allowed: tuple[int, ...]) -> int:
    """Hand a file in and see that what comes of it is one of `allowed`, and one line where it is an error."""
    (arena.folder / "drawn.yaml").write_bytes(data)
    before = tree(arena.folder)
    code, said = arena.pilotfish(["drawn.yaml" if word == "FILE" else word for word in line.split()])
    assert code in allowed, said
    if code:
        lines = said.splitlines()  # all errors of a file at once, at most twenty and a count
        assert "pilotfish: error: " in said and len(lines) <= 25 and said.endswith("\n")
        assert all(line.startswith(("pilotfish: error: ", "pilotfish: warning: ")) for line in lines)
        assert tree(arena.folder) == before
    return code


@given(
    data=st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)), way=st.sampled_from(list(ANYWHERE))
)
@examples(100)
def test_any_bytes_are_refused(arena: Arena, data: bytes, way: str) -> None:
    survives(arena, ANYWHERE[way], data, (1,))


@given(text=spoilt(FLOW))
@examples(60)
def test_any_workflow_is_planned_or_refused(arena: Arena, text: str) -> None:
    survives(arena, AS_WORKFLOW["plan"], text.encode(), (0, 1))
    assert not (arena.folder / TRACE).exists()


@given(text=spoilt(CLUSTER))
@examples(60)
def test_any_cluster_is_planned_for_or_refused(arena: Arena, text: str) -> None:
    survives(arena, AS_CLUSTER["plan cluster"], text.encode(), (0, 1))


@given(text=spoilt(DAEMON))
@examples(40)
def test_any_configuration_without_a_cluster_is_refused(arena: Arena, text: str) -> None:
    survives(arena, AS_OTHER["daemon"], text.encode(), (1,))


@given(text=spoilt(PROFILES))
@examples(40)
def test_any_profiles_are_taken_whole_or_not_at_all(arena: Arena, text: str) -> None:
    shutil.rmtree(arena.folder / "state", ignore_errors=True)
    before = arena.profiles()
    taken = survives(arena, AS_OTHER["import"], text.encode(), (0, 1)) == 0
    assert arena.profiles() == before | (set(yaml.safe_load(text)["profiles"]) if taken else set())


WORDS = """\
plan submit status cancel explain profile show list import good.yaml lab.yaml missing.yaml --cluster -c --policy slf
--json --compare --all --seed 0 -1 --budget 1 --objective makespan energy --export slurm oar json --time-limit --socket
absent --key --help --version -- -x --plot p.jpeg"""


@given(line=st.lists(st.sampled_from(WORDS.split()), max_size=7))
@examples(80)
def test_any_words_are_answered(arena: Arena, line: list[str]) -> None:
    code, _ = arena.pilotfish(line)
    assert code in (0, 1, 64)
    assert not (arena.folder / TRACE).exists()


def test_an_unwritable_state_directory_is_one_line(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTFISH_STATE", str(arena.folder / "good.yaml"))
    (arena.folder / "profiles.yaml").write_text(yaml.safe_dump(PROFILES))
    arena.refuses("profile import profiles.yaml")
    arena.refuses("run good.yaml --cluster lab.yaml --policy slf --no-live")
    assert os.listdir(arena.folder) and not (arena.folder / TRACE).exists()
