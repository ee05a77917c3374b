"""Options and arguments that several commands share, each with one name, one metavar and one sentence.

Rule: an option of two commands is defined here once; `tests/cli/test_options.py` compares the help of all commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

LARGEST_SEED = 2**63 - 1


def mapping_policy_names() -> list[str]:
    """Return the names of the mapping policies (`plan`, `run`)."""
    from ..formats.entry_points import MAPPING_POLICIES, plug_ins, spelled_out
    from ..simulate.planning.planner import POLICIES
    from ..simulate.queue_policies.policy_specs import is_queue_policy

    built_in = (name for name in POLICIES if not is_queue_policy(spelled_out(name)))  # queue policies may be among them
    return list(dict.fromkeys((*built_in, *plug_ins(MAPPING_POLICIES))))


def planning_policy_names() -> list[str]:
    """Return the names of all built-in and installed policies of `plan` and `run`: mapping and queue policies."""
    from ..simulate.queue_policies.policy_specs import POLICIES

    return [*mapping_policy_names(), *POLICIES]


def queue_policy_names() -> list[str]:
    """Return the names of the policies of `simulate` and `sweep`."""
    from ..simulate.queue_policies.policy_specs import ON_NODES, PLANNING, POLICIES

    return [*POLICIES, *ON_NODES, *PLANNING]


def run_time_kinds() -> Iterable[str]:
    """Return the kinds of run times that a policy may know."""
    from ..simulate.world.known_run_times import RUNTIMES

    return RUNTIMES


def adapter_names() -> list[str]:
    """Return the names of the adapters of resource managers, built-in or installed."""
    from ..adapters.registry import sites

    return sites()


def profile_names() -> list[str]:
    """Return the names in the user's profile store."""
    from .inputs import Profiles

    return Profiles(None).names()


def _workflows() -> list[dict[str, Any]]:
    from .service.daemon_client import ask_daemon

    return list(ask_daemon(None, "status", timeout_s=1.0)["workflows"])


def workflow_ids() -> list[str]:
    """Return the ids of the service's workflows."""
    return [flow["id"] for flow in _workflows()]


def job_names() -> list[str]:
    """Return WORKFLOW/JOB for each job that the service shows."""
    return [f"{flow['id']}/{job['id']}" for flow in _workflows() for job in flow["jobs"]]


def job_states() -> list[str]:
    """Return the states of jobs."""
    from ..simulate.model.snapshot import JobState

    return list(map(str, JobState))


def node_states() -> list[str]:
    """Return the states of nodes."""
    from ..simulate.model.snapshot import NodeState

    return list(map(str, NodeState))


def _users() -> list[str]:
    flows = _workflows()
    owners = [flow["owner"] for flow in flows] + [job.get("owner") for flow in flows for job in flow["jobs"]]
    return sorted({owner for owner in owners if owner})


#: Words that an option takes, or a function that reads them.
Words = Callable[[], Iterable[str]] | Iterable[str] | None


def completing(words: Words) -> Callable[[str], list[str]] | None:
    """Return a completion function for some words, without those that could control a terminal.

    It completes nothing where the words cannot be read.
    """
    if words is None:
        return None

    def complete(incomplete: str) -> list[str]:
        from ..formats.text import clean
        from ..simulate.errors import PilotfishError

        try:
            choices = words() if callable(words) else words
            return [word for word in choices if word.startswith(incomplete) and clean(word) == word]
        except (PilotfishError, OSError, SystemExit):
            return []

    return complete


def option(
    metavar: str, help: str, *names: str, words: Words = None, default: str | bool = True, **settings: Any
) -> Any:
    """Declare an option that takes a value.

    Args:
        metavar: what the value is, such as FILE.
        help: one sentence.
        names: such as "--out", "-o"; default: made from the name of the parameter.
        words: values that are completed.
        default: the default value in words, for the help; True = as it is, False = not shown.
        settings: see `typer.Option`.
    """
    settings |= {"metavar": metavar, "help": help, "autocompletion": completing(words), "show_default": default}
    return typer.Option(*names, **settings)


def argument(metavar: str, help: str, *, words: Words = None, default: str | bool = True) -> Any:
    """Declare an argument; see `option`."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=completing(words), show_default=default)


def flag(name: str, help: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=help)


def _seed(value: int) -> int:
    if value > LARGEST_SEED:
        raise typer.BadParameter(f"{value} (allowed: 0 to {LARGEST_SEED})")
    return value


_WORKFLOW = argument("WORKFLOW", "Workflow file: pilotfish (YAML), WfCommons (JSON) or Pegasus DAX.")
WorkflowFile = Annotated[Path, _WORKFLOW]
OptionalWorkflowFile = Annotated[Path | None, _WORKFLOW]
Traces = Annotated[
    list[Path], argument("TRACE", "Traces of jobs: SWF, Batsim, IRMaSim or a workflow; .gz is unpacked.")
]
ClusterFile = Annotated[
    Path | None,
    option("FILE", "Cluster file (YAML); replays also read SimGrid and IRMaSim platforms.", "--cluster", "-c"),
]
ThisSite = option(
    "NAME", "Resource manager: slurm, oar, or local (this machine; no queue).", "--adapter", words=adapter_names
)
ConfigFile = Annotated[
    Path | None,
    option(
        "FILE", "Configuration of the service (YAML).", "--config",
        default="~/.config/pilotfish/pilotfish.yaml, else /etc/pilotfish/pilotfish.yaml",
    ),
]  # fmt: skip
MappingPolicy = Annotated[
    str,
    option("POLICY", "Mapping policy (lookahead, mom, let, slf, loadavg), or queue policy as in `simulate`.",
           "--policy", "-p", words=planning_policy_names),
]  # fmt: skip
QueuePolicy = Annotated[
    str,
    option("POLICY", "Policy with its options, or ./mine.py:Class; `pilotfish policies` lists them.", "--policy",
           "-p", words=queue_policy_names),
]  # fmt: skip
Goal = Annotated[
    str,
    option(
        "GOAL",
        "Objective to minimise: makespan, turnaround, slowdown, energy, edp, or mix:W (W: weight of the makespan, "
        "0 to 1). For one workflow turnaround and slowdown are its makespan.",
        words=("makespan", "turnaround", "slowdown", "energy", "edp", "mix:0.5"),
    ),
]
Seed = Annotated[int, option("N", "Seed of random choices: same input and seed, same result.", min=0, callback=_seed)]
Resume = Annotated[Path | None, option("FILE", "Keep the work that ended in FILE, and go on with the rest.")]
Seeds = Annotated[int, option("N", "Number of trainings, a seed each; `train` keeps the best.", min=1)]
Generations = Annotated[int, option("N", "Generations of each search.", min=1, max=1000)]
#: Published works by the word of --as.
PUBLISHED = ("thesis",)
Published = Annotated[
    str | None,
    option("NAME", "Machine, jobs, windows and rules of a published work: thesis.", "--as", words=PUBLISHED),
]
Budget = Annotated[
    int | None, option("N", "Simulations that lookahead may use.", min=1, default="by the size of the workflow")
]
TimeLimit = Annotated[float | None, option("SECONDS", "Stop the search after this time; the plan reports it.")]
Store = Annotated[Path | None, option("FILE", "Profile store.", default="profiles.sqlite in the state directory")]
Json = Annotated[bool, flag("--json", "Print one JSON document instead of text.")]
All = Annotated[bool, flag("--all", "Show every row, however many there are.")]
DryRun = Annotated[bool, flag("--dry-run", "Print what would be done; change nothing.")]
ShowCommands = Annotated[
    bool, flag("--show-commands", "Print the commands that would be run, for a queue or a dry run.")
]
Socket = Annotated[str | None, option("PATH", "Socket of the service.", default="in the runtime directory")]
OfUser = Annotated[
    str | None, option("NAME", "Show only what belongs to this user.", "--user", words=_users, default="all")
]
OfWorkflow = Annotated[
    str | None,
    option("ID", "Show only workflows of this id or name.", "--workflow", words=workflow_ids, default="all"),
]
Watch = Annotated[
    float | None,
    option(
        "[SECONDS]",
        "Redraw every so many seconds, by default 2, until Ctrl-C.",
        "--watch",
        min=0.2,
        max=86400,
        default="once",
    ),
]
RunTimes = Annotated[
    str, option("KIND", "Run times that the policy knows: walltime, predicted or actual.", words=run_time_kinds)
]
DecisionTime = Annotated[
    str, option("TIME", "Simulated time of each decision: ignore, seconds, or measured (./mine.py:Class).")
]
SkipInvalid = Annotated[
    bool, flag("--skip-invalid", "Leave out and count jobs that are invalid or cannot be replayed.")
]
Procs = Annotated[int | None, option("N", "Processors of the machine.", default="as in the workload")]
Begin = Annotated[float | None, option("SECONDS", "Start at this second of the trace.", "--from")]
End = Annotated[float | None, option("SECONDS", "End before this second of the trace.", "--until")]
NodeType = Annotated[str | None, option("TYPE", "Type of the measured node in your cluster file.")]
ProfileOption = Annotated[
    str | None,
    option("NAME", "Name of the profile.", "--name", words=profile_names, default="from the command or the file"),
]
Command = Annotated[list[str], argument("COMMAND...", "The command and its arguments.")]
Replicates = Annotated[
    int | None, option("N", "Plan N draws of stochastic demands; show the most frequent mapping.", min=1)
]
Repeat = Annotated[int, option("N", "Number of runs.", min=1, max=1000)]
Cpus = Annotated[str | None, option("LIST", "CPUs that the command may use, such as 0,2-3.", "--cpus", default="all")]
Dask = Annotated[
    str | None, option("ADDRESS", "Work on the Dask cluster at tls://HOST:8786 instead; it can run code as you.")
]
Workers = Annotated[int | None, option("N", "Processes that work.", min=1, default="one for each CPU")]
Jobs = Annotated[int, option("N", "Number of jobs.", min=1, max=10_000_000)]
Processors = Annotated[int, option("N", "Processors of the machine.", "--procs", min=1, max=10_000_000)]
