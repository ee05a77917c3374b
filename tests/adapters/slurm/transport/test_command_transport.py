"""Slurm's commands and their errors, from recorded answers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.runner import CommandRunner

NOW = 1_700_000_000


@pytest.mark.parametrize(("ahead_s", "done"), [(-3600.0, True), (0.0, True), (4.0, True), (60.0, False)])
def test_no_start_is_sent_from_a_clock_that_is_ahead(ahead_s: float, done: bool) -> None:
    """Observed on 22.05: `StartTime=now` from a machine that is an hour ahead holds the job for that hour."""
    argvs: list[Sequence[str]] = []

    def run(argv: Sequence[str]) -> str:
        argvs.append(argv)
        return f"sdiag output at Tue Nov 14 22:13:20 2023 ({NOW})\n"

    transport = CommandTransport(run, lambda: 100.0, lambda: NOW + ahead_s)
    transport.time()
    transport.update(7, {"ReqNodeList": ""})
    if done:
        transport.update(7, {"ReqNodeList": "n1", "StartTime": "now"})
    else:
        with pytest.raises(AdapterError, match="60 s ahead") as refused:
            transport.update(7, {"ReqNodeList": "n1", "StartTime": "now"})
        assert refused.value.kind == "clock" and not refused.value.transient  # Slurm is well
    assert len(argvs) == 2 + done


@pytest.mark.real
@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (
            "sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
            "sinfo: error: fetch_config: DNS SRV lookup failed\n"
            "sinfo: error: _establish_config_source: failed to fetch config\n"
            "sinfo: fatal: Could not establish a configuration source\n",
            "Unknown host; DNS SRV lookup failed; failed to fetch config; Could not establish a configuration source",
        ),
        (
            "".join(f"sinfo: error: _parse_next_key: Parsing error at unrecognized key: K{i}\n" * 2 for i in range(9))
            + "sinfo: fatal: Unable to process configuration file\n",
            "Parsing error at unrecognized key: K0; ... 7 more lines ...; "
            "Parsing error at unrecognized key: K8; Unable to process configuration file",
        ),
        ("slurm_update error: Invalid job id specified\n", "Invalid job id specified"),
        ("", "exit code 1"),
    ],
)
def test_errors_of_slurm_are_one_readable_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, said: str
) -> None:
    program = tmp_path / "sinfo"
    program.write_text(f"#!/bin/sh\nprintf %s {shlex.quote(stderr)} >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(AdapterError) as caught:
        CommandRunner()(["sinfo"])
    assert str(caught.value) == f"sinfo: {said}"


MUNGE = (
    "{0}: error: If munged is up, restart with --num-threads=10\n"
    '{0}: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory '
    "(Did you start munged?)\n{0}: error: slurm_send_node_msg: auth_g_create: {1} has authentication error\n"
)
#: Command, exit code and stderr of 22.05.
AWAY = {
    "no controller": ("squeue", 1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"),
    "no controller, a change": ("scontrol", 1, "Unexpected message received for job 1\n"),
    "no controller, a submission": (
        "sbatch", 1,
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n",
    ),
    "no controller, the time": (
        "sdiag", 255, "slurm_get_statistics: Unable to contact slurm controller (connect failure)\n"),
    "no controller, nodes": (
        "sinfo", 1, "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n"),
    "frozen": ("squeue", 1, "slurm_load_jobs error: Socket timed out on send/recv operation\n"),
    "frozen, a submission": (
        "sbatch", 1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n"),
    "no munge": (
        "squeue", 1,
        MUNGE.format("squeue", "REQUEST_JOB_INFO") + "slurm_load_jobs error: Protocol authentication error\n",
    ),
    "no munge, as of --json": ("squeue", 0, MUNGE.format("squeue", "REQUEST_JOB_INFO")),
    "no munge, a change": (
        "scontrol", 1, MUNGE.format("scontrol", "REQUEST_UPDATE_JOB") + "Unexpected message received for job 1\n"),
    "no munge, a submission": (
        "sbatch", 1, MUNGE.format("sbatch", "REQUEST_SUBMIT_BATCH_JOB")
        + "sbatch: error: Batch job submission failed: Protocol authentication error\n",
    ),
    "no accounting": (
        "sacct", 1,
        "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to "
        "host:localhost:6819: Connection refused\nsacct: error: Sending PersistInit msg: Connection refused\n"
        "sacct: error: Problem talking to the database: Connection refused\n",
    ),
}  # fmt: skip
#: Refusals of sbatch; it exits with 1 if Slurm refuses, and with 255 if it does not understand the request.
REFUSED = {
    "too many jobs": (1, "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job "
                      "violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n"),
    "account": (1, "sbatch: error: Batch job submission failed: Invalid account or account/partition combination "
                "specified\n"),
    "partition": (1, "sbatch: error: invalid partition specified: none\n"
                  "sbatch: error: Batch job submission failed: Invalid partition name specified\n"),
    "qos": (1, "sbatch: error: Batch job submission failed: Invalid qos specification\n"),
    "node": (1, "sbatch: error: Batch job submission failed: Invalid node name specified\n"),
    "too large": (1, "sbatch: error: Batch job submission failed: Requested node configuration is not available\n"),
    "option": (255, "sbatch: unrecognized option '--none'\nTry \"sbatch --help\" for more information\n"),
    "value": (255, "sbatch: error: Invalid --time specification\n"),
}  # fmt: skip


class Printing:
    """Commands of these names that print nothing but a recorded stderr."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def __call__(self, name: str, exit_code: int, stderr: str) -> CommandTransport:
        script = self._folder / name
        script.write_text(f"#!/bin/sh\nprintf %s {shlex.quote(stderr)} >&2\nexit {exit_code}\n")
        script.chmod(0o755)
        return CommandTransport(CommandRunner())


@pytest.fixture
def printing(real: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Printing:
    return Printing(tmp_path, monkeypatch)


#: Requests by command.
ASK: dict[str, Callable[[CommandTransport], object]] = {
    "squeue": lambda slurm: slurm.jobs(),
    "scontrol": lambda slurm: slurm.update(1, {"StartTime": "now"}),
    "sbatch": lambda slurm: slurm.submit(["sbatch", "--parsable", "--wrap=true"]),
    "sdiag": lambda slurm: slurm.time(),
    "sinfo": lambda slurm: slurm.nodes(),
    "sacct": lambda slurm: slurm.ended(["--jobs=1"]),
}


@pytest.mark.parametrize(("name", "exit_code", "stderr"), AWAY.values(), ids=AWAY)
def test_a_service_that_is_down_is_neither_an_empty_queue_nor_a_refusal(
    printing: Printing, name: str, exit_code: int, stderr: str
) -> None:
    with pytest.raises(AdapterError) as caught:
        ASK[name](printing(name, exit_code, stderr))
    assert (caught.value.kind, caught.value.transient, caught.value.exit_code) == ("unreachable", True, exit_code)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("exit_code", "stderr"), REFUSED.values(), ids=REFUSED)
def test_a_refused_submission_is_not_repeated_and_gives_the_reason(
    printing: Printing, exit_code: int, stderr: str
) -> None:
    with pytest.raises(AdapterError) as caught:
        ASK["sbatch"](printing("sbatch", exit_code, stderr))
    assert (caught.value.kind, caught.value.transient, caught.value.exit_code) == ("refused", False, exit_code)
    reason = stderr.splitlines()[0].removeprefix("sbatch: ").removeprefix("error: ")
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_a_job_that_is_gone_differs_from_a_controller_that_is_down(printing: Printing) -> None:
    slurm = printing("squeue", 1, "slurm_load_jobs error: Invalid job id specified\n")
    assert slurm.jobs([9]) == []


def test_a_command_that_hangs_is_given_up_with_an_unknown_outcome(printing: Printing, tmp_path: Path) -> None:
    printing("sbatch", 0, "")
    (tmp_path / "sbatch").write_text("#!/bin/sh\nexec sleep 20\n")
    with pytest.raises(AdapterError) as caught:
        CommandRunner(timeout_s=0.2)(["sbatch", "--wrap=true"])
    assert (caught.value.kind, caught.value.transient) == ("timeout", True)


def test_the_time_limit_covers_a_controller_that_is_down() -> None:
    """Its clients fail after 9 to 10 s; a shorter limit would hide the reason."""
    assert CommandRunner().timeout_s > 10.0


@pytest.mark.parametrize("state", ["POWER_DOWN", "POWER_UP"])
def test_nodes_are_switched_by_name(state: str) -> None:
    argvs: list[Sequence[str]] = []
    CommandTransport(lambda argv: argvs.append(argv) or "").switch(["n3", "n4", "n7"], state)
    assert argvs == [["scontrol", "update", "NodeName=n[3-4,7]", f"State={state}"]]


def test_no_command_holds_releases_or_uses_json() -> None:
    """Observed on 22.05: `scontrol hold` of root makes a hold that users cannot undo, `scontrol release` of a running
    job succeeds silently, `squeue --json` with the controller away is an empty queue and exits with 0, and `scontrol
    --json` does not exist."""
    argvs: list[Sequence[str]] = []
    slurm = CommandTransport(lambda argv: argvs.append(argv) or "")
    calls = [*ASK.values(), CommandTransport.excluded, CommandTransport.hidden_fields, CommandTransport.partitions,
             CommandTransport.reservations, CommandTransport.limits, CommandTransport.settings,
             lambda slurm: slurm.usage(["--jobs=1"]),
             lambda slurm: slurm.cancel(1), lambda slurm: slurm.switch(["n1"], "POWER_UP")]  # fmt: skip
    for call in calls:
        with suppress(ParseError):
            call(slurm)
    assert len(argvs) == len(calls) and not any(
        word.startswith(("--json", "--yaml")) for argv in argvs for word in argv
    )
    verbs = {next(word for word in argv[1:] if not word.startswith("-")) for argv in argvs if argv[0] == "scontrol"}
    assert verbs == {"show", "update"}
