"""Every mistake that can be known before a kernel is compiled is reported before any is compiled or loaded."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters import registry
from pilotfish.cli.__main__ import main
from pilotfish.daemon import compilation, first_start
from pilotfish.formats.cluster import read_cluster
from pilotfish.simulate.kernels import object_cache

NODE = "cores: 4, memory: 16GiB, memory_bandwidth: 20GB/s"
POWER = "power: {idle: 40, per_core: 5}"
SWITCHED = (
    "power: {idle: 40, per_core: 5, off: 2, switch_on: {seconds: 3, watts: 50}, switch_off: {seconds: 1, watts: 9}}"
)
HEAD = "schema: pilotfish/cluster/v1\nname: lab\n"
CLUSTERS = {
    "plain": f"{HEAD}node_types: {{t: {{{NODE}}}}}\nnodes: [{{names: 'a[1-2]', type: t}}]\n",
    "power": f"{HEAD}node_types: {{t: {{{NODE}, {POWER}}}}}\nnodes: [{{names: 'a[1-2]', type: t}}]\n",
    "switched": f"{HEAD}node_types: {{t: {{{NODE}, {SWITCHED}}}}}\nnodes: [{{names: 'a[1-2]', type: t}}]\n",
    "unequal": (
        f"{HEAD}node_types:\n  t: {{{NODE}, {SWITCHED}}}\n  u: {{{NODE}, {POWER}}}\n"
        "nodes: [{names: a1, type: t}, {names: a2, type: u}]\n"
    ),
    "domain": f"{HEAD}node_types: {{t: {{{NODE}}}}}\nnodes: [{{names: 'a[1-2]', type: t, memory_domain: here}}]\n",
    "boundless": f"{HEAD}oversubscription: .inf\nnode_types: {{t: {{{NODE}}}}}\nnodes: [{{names: 'a[1-2]', type: t}}]\n",
}
DELAY: dict[str, Any] = {"type": "delay", "delay": 5}
WORKLOADS = {
    "endless": {"profile": DELAY},
    "limited": {"profile": DELAY, "walltime": 20},
    "communicating": {
        "profile": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6}, "walltime": 20,
    },
    "none": None,
}  # fmt: skip
POLICIES = (
    "easy", "easy:share=1.1", "conservative", "conservative:allocation=local", "strict", "easy+opportunistic:t_idle=10",
    "easy+powercap:cap=95%", "easy+powercap:cap=5%", "easy+energybud:budget=70%", "easy+proportional",
    "conservative+inertial", "pairs", "pairs:resource=low_power", "nodes", "nodes+powercap:cap=95%", "mom", "let",
    "mom+powercap:cap=95%", "mom+opportunistic", "lookahead", "lookahead+powercap:cap=95%", "no-such-policy",
)  # fmt: skip
#: Values of --cluster; the last are machines without a file.
MACHINES = (*CLUSTERS, "procs", "none", "missing")


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The kernels that are obtained, compiled or from the cache, in their order."""
    names: list[str] = []
    obtain = object_cache._obtain

    def recorded(kernel: str, say: Callable[[str], None]) -> Any:
        names.append(kernel)
        return obtain(kernel, say)

    monkeypatch.setattr(object_cache, "_obtain", recorded)
    monkeypatch.setattr(object_cache, "_loaded", {})
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for name, text in CLUSTERS.items():
        Path(f"{name}.yaml").write_text(text)
    job = "command: 'true', profile: {service_demand: 1}"
    for name, jobs in {
        "ok": f"a: {{{job}}}",
        "cycle": f"a: {{{job}, after: [b]}}\n  b: {{{job}, after: [a]}}",
        "too_large": f"a: {{{job}, memory: 999TiB}}",
        "wide": f"a: {{{job}, nodes: 2, walltime: 60}}\n  b: {{{job}, nodes: 3}}",
    }.items():
        Path(f"{name}.yaml").write_text(f"schema: pilotfish/workflow/v1\nname: w\njobs:\n  {jobs}\n")
    for name, about in WORKLOADS.items():
        jobs = [] if about is None else [{"id": str(i), "subtime": i, "res": 2, "profile": "p"} for i in range(3)]
        for job in jobs:
            job |= {"walltime": about["walltime"]} if about and "walltime" in about else {}
        profiles = {"p": about["profile"]} if about else {}
        Path(f"{name}.json").write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    return names


def simulated(draw: random.Random) -> list[str]:
    machine = draw.choice(MACHINES)
    argv = ["simulate", f"{draw.choice([*WORKLOADS])}.json", "-p", draw.choice(POLICIES)]
    argv += ["--procs", "8"] if machine == "procs" else [] if machine == "none" else ["--cluster", f"{machine}.yaml"]
    argv += draw.choice(([], [], ["--resource", "node"], ["--contention"]))
    return [
        *argv,
        *draw.choice(([], [], ["--runtimes", "actual"], ["--runtimes", "predicted"], ["--decision-time", "2"])),
    ]


def planned(draw: random.Random) -> list[str]:
    argv = ["plan", f"{draw.choice(('ok', 'wide', 'too_large'))}.yaml", "-p", draw.choice(POLICIES)]
    argv += ["--cluster", f"{draw.choice([*CLUSTERS])}.yaml"]
    return [*argv, *draw.choice(([], [], ["--objective", "energy"], ["--replicates", "2"]))]


#: Explicit ones, of each kind; `late` by other orders of reading, compiling and checking.
KNOWN = (
    "simulate endless.json --cluster plain.yaml --resource node -p easy+opportunistic:t_idle=10",
    "simulate endless.json --cluster plain.yaml -p conservative",
    "simulate endless.json --cluster plain.yaml -p let",
    "simulate endless.json --cluster plain.yaml --contention --runtimes predicted",
    "simulate limited.json --cluster boundless.yaml --contention",
    "simulate limited.json --cluster plain.yaml -p pairs:resource=low_power",
    "simulate limited.json --cluster domain.yaml -p pairs",
    "simulate communicating.json --cluster plain.yaml --contention --runtimes actual",
    "simulate communicating.json --procs 8",
    "simulate none.json --cluster plain.yaml",
    "simulate limited.json --cluster plain.yaml -p lookahead+powercap:cap=95%",
    "plan too_large.yaml --cluster plain.yaml",
    "plan ok.yaml --cluster plain.yaml --objective energy",
    "plan ok.yaml --cluster plain.yaml --policy easy+powercap:cap=50%",
    "plan ok.yaml --cluster plain.yaml --policy no-such-policy",
    "plan cycle.yaml --cluster plain.yaml --compare",
    "plan too_large.yaml --cluster plain.yaml --replicates 3",
    "run too_large.yaml",
    "run ok.yaml --cluster plain.yaml",
    "run ok.yaml --state-dir plain.yaml",
    "run ok.yaml --plot missing/run.svg",
    "run ok.yaml --plot plain.yaml/run.svg",
    "plan ok.yaml --cluster plain.yaml --plot missing/plan.html",
    "simulate limited.json --procs 8 --out plain.yaml",
    "simulate limited.json --procs 8 --out plain.yaml/results",
    "sweep study.yaml --out plain.yaml",
)


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the error of a command that fails, or ""."""
    code, printed = main(argv), capsys.readouterr().err
    assert code in (0, 1, 64) and "unexpected" not in printed, (argv, printed)
    return printed if code else ""


@pytest.mark.real
@pytest.mark.parametrize("line", KNOWN)
def test_a_mistake_is_reported_before_anything_is_compiled(
    line: str, loads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(line.split(), capsys)
    assert loads == []


@pytest.fixture
def busy(real: None, loads: list[str], tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What another process uses: a port, sockets, and folders of state; and what is no socket."""
    with ExitStack() as stack:
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        for name, kind in (("requests", socket.SOCK_STREAM), ("events", socket.SOCK_DGRAM)):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            listener.bind(str(tmp_path / name))
            if kind == socket.SOCK_STREAM:
                listener.listen()
        cpu = min(os.sched_getaffinity(0))
        Path("machine.yaml").write_text(
            f"{HEAD}node_types: {{t: {{{NODE.replace('4', '1', 1)}}}}}\nnodes: [{{names: a, type: t, cpus: '{cpu}'}}]\n"
        )
        stack.enter_context(
            closing(registry.create("local", read_cluster("machine.yaml"), state_dir=tmp_path / "used"))
        )
        yield {"port": port, "here": tmp_path}


def test_a_run_whose_port_or_folder_is_in_use_plans_nothing(
    loads: list[str], busy: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (f"--metrics-port {busy['port']}", "--state-dir used"):
        assert refused(f"run ok.yaml {option}".split(), capsys)
        assert loads == [], option
    assert not (busy["here"] / "state" / "runs").exists()


#: What keeps a service from starting, as keys of its configuration.
WRONG = {
    "the port is in use": "metrics: {{port: {port}}}",
    "another daemon listens": "socket: {{path: '{here}/requests'}}",
    "it is no socket": "socket: {{path: '{here}/plain.yaml'}}",
    "its folder is a file": "socket: {{path: '{here}/plain.yaml/s'}}",
    "there is no such group": "socket: {{path: '{here}/s', group: no-such-group}}",
    "there is no such user": "events: {{users: [no-such-user]}}",
    "another daemon gets the events": "events: {{users: [root], path: '{here}/events'}}",
    "events go to no socket": "events: {{users: [root], path: '{here}/plain.yaml'}}",
    "the state is in use": "adapter: {{name: local, options: {{cgroups: false, state_dir: used}}}}",
    "there is no such adapter": "adapter: {{name: no-such-adapter}}",
    "there is no such policy": "policy: no-such-policy",
    "its state is a file": "state_dir: plain.yaml",
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("warm", [True, False])
def test_a_service_that_cannot_start_compiles_nothing(
    warm: bool, wrong: str, loads: list[str], busy: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    keys: dict[str, str] = {
        "cluster": "machine.yaml", "access": "{root: true}", "state_dir": "state", "profiles": "profiles.sqlite",
        "metrics": "{enabled: false}", "socket": f"{{path: '{busy['here']}/s'}}",
        "adapter": "{name: local, options: {cgroups: false}}",
    }  # fmt: skip
    name, _, value = WRONG[wrong].format(**busy).partition(": ")
    text = "".join(f"{key}: {text}\n" for key, text in (keys | {name: value}).items())
    Path("pilotfish.yaml").write_text(f"schema: pilotfish/daemon/v1\n{text}")

    def recorded(kernels: Sequence[str], *arguments: Any) -> Any:
        loads.extend(kernels)
        return compile_kernels(kernels, *arguments)

    compile_kernels = compilation.compile_kernels
    monkeypatch.setattr(first_start, "compile_kernels", recorded)
    monkeypatch.setattr(first_start, "is_warm", lambda kernel: warm)
    assert refused(["daemon", "--config", "pilotfish.yaml"], capsys)
    assert loads == []


@pytest.mark.real
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_refused_after_kernels_are_loaded(
    seed: int, loads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    draw, errors = random.Random(seed), 0
    for _ in range(25):
        loads.clear()
        object_cache._loaded.clear()
        argv = simulated(draw) if draw.random() < 0.7 else planned(draw)
        if error := refused(argv, capsys):
            errors += 1
            assert loads == [], (" ".join(argv), error, loads)
    assert errors > 5


JOB_LINE = "1 0 0 10 4 -1 -1 4 20 -1 1 1 1 -1 -1 -1 -1 -1\n"
WRITERS = (
    "train linear t.swf -o {}.pfmodel.json", "train linear t.swf -o m.pfmodel.json --plot {}.svg",
    "train linear t.swf -o m.pfmodel.json --resume {}", "train squared t.swf -o {}.pfmodel.json",
    "train rules -c plain.yaml --workload t.swf -o {}.pfmodel.json", "evaluate {}.pfmodel.json t.swf --save",
    "simulate t.swf -o {}", "sweep s.yaml -o {}", "convert t.swf {}.json", "plan ok.yaml -c plain.yaml --plot {}.svg",
    "generate lublin --jobs 1 -o {}.swf",
)  # fmt: skip


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("name", ["/proc/x", "/proc/version/x", "gone/x", "n" * 300])
def test_a_result_that_cannot_be_written_is_an_error_before_the_work(
    command: str, name: str, loads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Root has every permission in /proc, and still no file can be made there."""
    Path("t.swf").write_text(JOB_LINE)
    if name == "gone/x" and command.endswith(("-o {}", "--resume {}")):
        return  # these make their folders
    assert main(command.format(name).split()) != 0
    error = capsys.readouterr().err
    assert name in error and "cannot be written" in error and error.count("\n") == 1 and loads == []
    assert {path.name for path in Path().iterdir()}.isdisjoint({"gone", "m.pfmodel.json"})
