"""Options and arguments that several commands share, each with one name, one metavar and one sentence.

Rule: an option of two commands is defined here once; `tests/cli/test_options.py` compares the help of all commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

LARGEST_SEED = 2**63 - 1


def mapping_policy_names() -> list[str]:
    """Return the names of the mapping policies (`plan`, `run`)."""
    from ..formats.entry_points import MAPPING_POLICIES, plug_ins
    from ..simulate.planning.planner import POLICIES

    return list(dict.fromkeys((*POLICIES, *plug_ins(MAPPING_POLICIES))))


def queue_policy_names() -> list[str]:
    """Return the names of the queue policies (`simulate`, `sweep`)."""
    from ..simulate.replay.policies import POLICIES

    return list(POLICIES)


def profile_names() -> list[str]:
    """Return the names in the user's profile store."""
    from .inputs import Profiles

    return Profiles(None).names()


def workflow_ids() -> list[str]:
    """Return the ids of the service's workflows."""
    from .daemon_client import ask_daemon

    return [flow["id"] for flow in ask_daemon(None, "status", timeout_s=1.0)["workflows"]]


def job_names() -> list[str]:
    """Return WORKFLOW/JOB for each job that the service shows."""
    from .daemon_client import ask_daemon

    flows = ask_daemon(None, "status", timeout_s=1.0)["workflows"]
    return [f"{flow['id']}/{job['id']}" for flow in flows for job in flow["jobs"]]


def completing(words: Callable[[], Iterable[str]] | Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion function for some words; it completes nothing where they cannot be read."""

    def complete(incomplete: str) -> list[str]:
        from ..simulate.errors import PilotfishError

        try:
            every = words() if callable(words) else words
            return [word for word in every if word.startswith(incomplete)]
        except (PilotfishError, OSError, SystemExit):
            return []

    return complete


def _seed(value: int) -> int:
    if value > LARGEST_SEED:
        raise typer.BadParameter(f"{value} (allowed: 0 to {LARGEST_SEED})")
    return value


WorkflowFile = Annotated[
    Path, typer.Argument(metavar="WORKFLOW", help="Workflow file: pilotfish (YAML), WfCommons (JSON) or Pegasus DAX.")
]
Traces = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TRACE", help="Traces of jobs: SWF, Batsim, IRMaSim or a workflow; .gz is unpacked.",
        show_default=False,
    ),
]  # fmt: skip
MoreTraces = Annotated[
    list[Path] | None, typer.Option("--workload", "-w", metavar="FILE", help="A trace; may be repeated.")
]
ClusterFile = Annotated[
    Path | None,
    typer.Option(
        "--cluster", "-c", metavar="FILE", help="Cluster file (YAML); replays also read SimGrid and IRMaSim platforms."
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration of the service (YAML).",
        show_default="~/.config/pilotfish/pilotfish.yaml, else /etc/pilotfish/pilotfish.yaml",
    ),
]
MappingPolicy = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        metavar="POLICY",
        help="Mapping policy: lookahead, mom, let, slf or loadavg.",
        autocompletion=completing(mapping_policy_names),
    ),
]
QueuePolicy = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        metavar="POLICY",
        help="Queue policy with its options, or ./mine.py:Class; `pilotfish policies` lists them.",
        autocompletion=completing(queue_policy_names),
    ),
]
Goal = Annotated[
    str,
    typer.Option(
        metavar="GOAL",
        help="Objective to minimise: makespan, energy, edp, or mix:W (W: weight of the makespan, 0 to 1).",
        autocompletion=completing(("makespan", "energy", "edp", "mix:0.5")),
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Seed of random choices: same input and seed, same result.", callback=_seed),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Simulations that lookahead may use.", show_default="by the size of the workflow"
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Stop the search after this time; the plan reports it.", show_default="none"),
]
Store = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Profile store.", show_default="profiles.sqlite in the state directory"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
All = Annotated[bool, typer.Option("--all", help="Show every row, however many there are.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")]
ShowCommands = Annotated[
    bool, typer.Option("--show-commands", help="Print the commands that would be run, for a queue or a dry run.")
]
Socket = Annotated[
    str | None,
    typer.Option("--socket", metavar="PATH", help="Socket of the service.", show_default="in the runtime directory"),
]
SkipInvalid = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave out and count jobs that are invalid or cannot be replayed.")
]
Procs = Annotated[
    int | None,
    typer.Option("--procs", metavar="N", help="Processors of the machine.", show_default="as in the workload"),
]
Begin = Annotated[float | None, typer.Option("--from", metavar="SECONDS", help="Start at this second of the trace.")]
End = Annotated[float | None, typer.Option("--until", metavar="SECONDS", help="End before this second of the trace.")]
NodeType = Annotated[str | None, typer.Option(metavar="TYPE", help="Type of the measured node in your cluster file.")]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Name of the profile.", show_default="from the command or the file",
        autocompletion=completing(profile_names),
    ),
]  # fmt: skip
Command = Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The command and its arguments.")]
Engine = Annotated[
    str,
    typer.Option(
        metavar="ENGINE",
        help="Simulation engine: fluid (exact, no time step) or interval (0.1 s steps with jitter).",
        autocompletion=completing(("fluid", "interval")),
    ),
]
Replicates = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Plan N draws of stochastic demands; show the most frequent mapping."),
]
Repeat = Annotated[int, typer.Option("--repeat", min=1, max=1000, metavar="N", help="Number of runs.")]
Cpus = Annotated[
    str | None,
    typer.Option("--cpus", metavar="LIST", help="CPUs that the command may use, such as 0,2-3.", show_default="all"),
]
Jobs = Annotated[int, typer.Option(min=1, max=10_000_000, metavar="N", help="Number of jobs.")]
Processors = Annotated[
    int, typer.Option("--procs", min=1, max=10_000_000, metavar="N", help="Processors of the machine.")
]
