"""Budgets and caps under which no job could ever start: an error at the start that names the least possible amount."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.cli.__main__ import main
from pilotfish.daemon.config import check_objective, load_config
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.formats.entry_points import register_mapping_policy
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.machine import core_powers, equal_powers
from pilotfish.simulate.queue_policies.energy.kept_limit import KeptLimit, refuse_limit
from pilotfish.simulate.queue_policies.energy.power_limits import Budget, Use
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.policy_specs import Saving, parse, parts_of

NODES, CORES, END = 3, 4, 1e6


def cluster_of(power: Power | None) -> Cluster:
    kind = NodeType("t", CORES, 8e9, 1e10, power=power)
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(NODES)), source="lab.yaml")


def ever_starts(policy: Saving, cluster: Cluster) -> bool:
    """Return whether the smallest job could start in the middle of a budget under which nothing ran before."""
    limit, middle = KeptLimit(policy).at(0.0, cluster), END / 2
    assert isinstance(limit, Budget)
    limit.account(middle, 0.0)
    return limit.allows(middle, [], Use(1, middle, middle + 1.0), None)


POWER = st.builds(
    lambda idle, more, over: Power(idle, computing=idle + more, budget_idle=idle + over),
    st.integers(0, 90).map(float), st.integers(1, 90).map(float), st.sampled_from([0.0, 0.5]),
)  # fmt: skip


@given(POWER, st.sampled_from(["energybud", "reducepc"]), st.sampled_from([0.0, 0.5, 0.999, 1.0, 1.001, 1.5]))
def test_a_budget_is_refused_where_no_job_could_ever_start(power: Power, part: str, times: float) -> None:
    """In both units; a bit more than the least amount that the error names is accepted, and lets a job start."""
    cluster, idle, full = cluster_of(power), power.budget_idle or 0.0, power.computing or 0.0
    for amount, unit in ((100.0 * idle / full * times, "%"), (NODES * idle * END * times, "")):
        text = f"easy+{part}:budget={amount!r}{unit},end={END:g}"
        try:
            refuse_limit(text, cluster, 0.0)
        except ConfigError as error:
            assert times <= 1.0 or idle == 0.0
            least = float(error.allowed.removeprefix("more than ").removesuffix(unit or " J"))
            text = f"easy+{part}:budget={max(least * 1.001, 2 * full)!r}{unit},end={END:g}"
            refuse_limit(text, cluster, 0.0)
        else:
            assert times > 1.0
        policy = parse(text)
        assert isinstance(policy, Saving) and ever_starts(policy, cluster)


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        ("60%", "policy: budget=60% is less than idle nodes take alone (67%): no job could start "
                "(allowed: more than 67%)"),
        ("67%", "policy: budget=67% is only what idle nodes take alone: no job could start (allowed: more than 67%)"),
        ("1e8", "policy: budget=100000000 J is less than idle nodes take alone (201000000 J): no job could start "
                "(allowed: more than 201000000 J)"),
        ("0", "policy: budget=0 J is less than idle nodes take alone (201000000 J): no job could start "
              "(allowed: more than 201000000 J)"),
    ],
)  # fmt: skip
def test_the_error_names_the_least_budget_in_the_unit_of_the_user(budget: str, says: str) -> None:
    cluster = cluster_of(Power(67.0, computing=100.0))
    with pytest.raises(ConfigError) as caught:
        refuse_limit(f"easy+energybud:budget={budget},end=1e6", cluster, 0.0)
    assert str(caught.value) == says


def test_a_share_is_never_rounded_down() -> None:
    with pytest.raises(ConfigError, match=r"more than 33\.34%"):
        refuse_limit("easy+energybud:budget=33%,end=1e6", cluster_of(Power(1.0, computing=3.0)), 0.0)


def test_where_jobs_draw_nothing_more_what_idle_nodes_draw_is_enough() -> None:
    cluster = cluster_of(Power(50.0, computing=50.0))
    refuse_limit("easy+energybud:end=1e6", cluster, 0.0)
    with pytest.raises(ConfigError, match=r"99% is less than .*allowed: 100% or more"):
        refuse_limit("easy+energybud:budget=99%,end=1e6", cluster, 0.0)


@pytest.mark.parametrize("text", ["easy+energybud:budget=60%,end=5e5", "easy+energybud:budget=60%", "easy", "mom"])
def test_a_budget_that_is_over_or_lacks_its_end_or_is_none_is_no_error_of_power(text: str) -> None:
    refuse_limit(text, cluster_of(Power(67.0, computing=100.0)), END)


def test_joules_are_counted_from_the_begin_or_from_now() -> None:
    cluster, text = cluster_of(Power(67.0, computing=100.0)), "easy+energybud:budget=1.5e8,end=1e6"
    refuse_limit(text, cluster, 5e5)
    for begun in (text + ",begin=0", text):
        with pytest.raises(ConfigError):
            refuse_limit(begun, cluster, 5e5 if "begin" in begun else 0.0)


@given(POWER, st.integers(0, 40), st.sampled_from(["easy", "conservative", "mom", "pairs"]))
def test_a_cap_without_times_is_refused_where_it_lets_no_core_compute(power: Power, tenths: int, base: str) -> None:
    """In both units; the least cap that the error names lets one compute."""
    cluster, cores = cluster_of(power), NODES * CORES
    powers = equal_powers(core_powers(cluster))
    for amount, unit in ((2.5 * tenths, "%"), (0.025 * tenths * cores * powers.budget_computing, "")):
        text = f"{base}+powercap:cap={amount!r}{unit}"
        limit = parts_of(text).limit
        assert isinstance(limit, PowerCap)
        if limit.allowed(powers, cores):
            refuse_limit(text, cluster, 0.0)
            continue
        with pytest.raises(ConfigError, match=f"cap={amount:.12g}.* is less than .*no job could start") as caught:
            refuse_limit(text, cluster, 0.0)
        least = parts_of(
            f"{base}+powercap:cap={caught.value.allowed.removesuffix(' or more').removesuffix(' W')}"
        ).limit
        assert isinstance(least, PowerCap) and least.allowed(powers, cores) >= 1
        if base == "easy":
            refuse_limit(f"{text},end=1e6", cluster, 0.0)  # no job is to start before that


# --- in the service ---
def test_a_cluster_that_changes_while_it_runs_kills_nothing(
    bench: Any, kit: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is started, and the log says so once. What runs goes on, and is seen to end."""
    manager = bench.manager
    flow = bench.submit(kit.job("a", seconds=3.0, walltime=5.0))
    bench.run(2)
    assert bench.states(flow) == {"a": "running"}
    kind = dataclasses.replace(manager.cluster.nodes[0].type, power=Power(67.0, computing=100.0))
    nodes = tuple(dataclasses.replace(node, type=kind) for node in manager.cluster.nodes)
    manager.cluster = dataclasses.replace(manager.cluster, nodes=nodes)
    policy = f"easy+energybud:budget=60%,end={manager.time + 1000!r}"
    register_mapping_policy(policy, service=True)
    planner = bench.cycle.planner
    planner.make_plan = simulate_plan
    planner.use(dataclasses.replace(planner.options, policy=policy))
    waiting = bench.submit(kit.job("b", walltime=5.0))
    with caplog.at_level(logging.ERROR, "pilotfish"):
        bench.run(9)
    assert bench.states(flow) == {"a": "completed"} and bench.states(waiting) == {"b": "pending"}
    (said,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "budget=60% is less than idle nodes take alone (67%)" in said
    assert planner.trouble == "no policy can make a plan; the log has the reason"


# --- as it is typed ---
LAB = """
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 1, memory: 4GiB, memory_bandwidth: 10GB/s, power: {idle: 67, computing: 100}}}
nodes: [{names: n1, type: t, cpus: "0"}]
"""
CONFIG = """
schema: pilotfish/daemon/v1
cluster: lab.yaml
state_dir: state
access: {root: true}
adapter: {name: %s}
policy: "easy+energybud:budget=%s,end=%s"
"""
FLOW = "schema: pilotfish/workflow/v1\njobs:\n  a: {profile: {service_demand: 0.01}, command: 'true', walltime: 0:01}\n"
TRACE = "".join(f"{i} {i} -1 5 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n" for i in range(9))
LATER = "2100-01-01T00:00Z"
LEAST = "is less than idle nodes take alone (67%): no job could start (allowed: more than 67%)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("PILOTFISH_STATE", "PILOTFISH_SOCKET", "PILOTFISH_PROFILES"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    for name, text in (("lab.yaml", LAB), ("flow.yaml", FLOW), ("trace.swf", TRACE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def configure(folder: Path, budget: str, end: str = LATER, adapter: str = "local") -> None:
    (folder / "pilotfish.yaml").write_text(CONFIG % (adapter, budget, end))


@pytest.mark.real
@pytest.mark.parametrize("part", ["energybud", "reducepc"])
@pytest.mark.parametrize("command", ["plan", "run"])
def test_plan_and_run_refuse_it_as_a_wrong_option(
    folder: Path, command: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = f"easy+{part}:budget=60%,end={LATER}"
    assert main([command, "flow.yaml", "--cluster", "lab.yaml", "--policy", policy]) == 64
    said = capsys.readouterr()
    assert f"'--policy': budget=60% {LEAST}" in " ".join(said.err.split()) and not said.out
    assert all(len(line) <= 80 for line in said.err.splitlines())
    assert main([command, "flow.yaml", "--cluster", "lab.yaml", "--policy", policy.replace("60", "200")]) == 0


@pytest.mark.parametrize(
    ("argv", "code", "key"),
    [
        (("daemon", "--config", "pilotfish.yaml"), 1, "policy: found 'easy+energybud:budget=60%,end=2100-01-01T00:00Z'"),
        (("plan", "--config", "pilotfish.yaml"), 1, "policy: found 'easy+energybud:budget=60%,end=2100-01-01T00:00Z'"),
        (("plan", "--config", "pilotfish.yaml", "-p", "easy+energybud:budget=60%,end=1e10"), 64, "'--policy':"),
        (("replay", "trace.swf", "--cluster", "lab.yaml", "--config", "pilotfish.yaml"), 1, "but budget=60%"),
    ],
)  # fmt: skip
def test_what_the_service_would_do_is_refused_with_its_configuration(
    folder: Path, argv: tuple[str, ...], code: int, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(folder, "60%", "4e9" if "replay" in argv else LATER)
    assert main(argv) == code
    said = " ".join(capsys.readouterr().err.split())
    assert LEAST in said and key in said and ("pilotfish.yaml: policy" in said) is (code == 1)
    assert not (folder / "state").exists()


def test_a_replay_of_the_service_counts_joules_from_the_first_submission(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["replay", "trace.swf", "--cluster", "lab.yaml", "--config", "pilotfish.yaml"]
    configure(folder, "6700", "100")
    assert main(argv) == 1
    assert "more than 6700 J" in " ".join(capsys.readouterr().err.split())
    configure(folder, "9900", "100")
    assert main(argv) == 0
    configure(folder, "60%", "0.5")
    (folder / "trace.swf").write_text(TRACE.replace("0 0 -1", "0 1 -1", 1))
    assert main(argv) == 0, "the budget was over before the first job came"


@pytest.mark.real
@pytest.mark.parametrize(("budget", "found"), [("60%", True), ("90%", False)])
def test_the_doctor_finds_it(folder: Path, budget: str, found: bool, capsys: pytest.CaptureFixture[str]) -> None:
    configure(folder, budget)
    main(["doctor", "--config", "pilotfish.yaml"])
    assert ("no job could start" in " ".join(capsys.readouterr().out.split())) is found


@pytest.mark.parametrize("budget", ["60%", "67%", "60"])
def test_a_replay_says_that_no_job_could_start_while_it_held(
    folder: Path, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no error: the jobs start when it is over."""
    argv = ["simulate", "trace.swf", "--cluster", "lab.yaml", "-p"]
    assert main([*argv, f"easy+energybud:budget={budget}"]) == 0
    said = capsys.readouterr()
    assert "limit no job could start in its window" in " ".join(said.out.split()) and "9 completed" in said.out
    assert f"warning: budget={budget}" in said.err and "idle machines take alone" in said.err
    assert "no job could start while it held (allowed: more than" in said.err
    assert main([*argv, "easy+energybud:budget=99%"]) == 0
    said = capsys.readouterr()
    assert "no job could start" not in said.out and not said.err
    assert main([*argv, f"easy+energybud:budget={budget}", "--json"]) == 0
    assert '"hopeless": true' in capsys.readouterr().out


def test_the_error_names_the_file_that_is_to_be_changed(folder: Path) -> None:
    configure(folder, "60%")
    config = load_config("pilotfish.yaml")
    with pytest.raises(ConfigError, match=r"^pilotfish\.yaml: policy: found "):
        check_objective(config, "pilotfish.yaml", cluster_of(Power(67.0, computing=100.0)), 0.0)
    with pytest.raises(ConfigError, match=r"lab\.yaml: policy: found .*the power of this machine is not known"):
        check_objective(config, "pilotfish.yaml", cluster_of(None), 0.0)
