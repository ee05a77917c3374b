"""`pilotfish batsim`: replay a trace under a decision component of Batsim, in the place of Batsim."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from ...adapters.batsim.endpoints import ENDPOINT
from ...adapters.batsim.pybatsim_scheduler import PYBATSIM, scheduler_in_process
from ...formats.batsim.runs import MappedLater
from ...formats.text import count
from ...simulate.replay.replay import Replayed
from ...simulate.replay.replay_case import ReplayOptions
from ..option_groups import grouped
from ..options import option
from ..streams import warn
from ..usage_errors import bad
from .replay_options import JobOptions, MachineOptions, OutputOptions
from .replay_report import run_replay
from .replay_request import Decider, ReplayInput, ReplayRequest

if TYPE_CHECKING:
    from ...profiles.prediction.online_run_times import OnlineRunTimes

#: Messages have six decimals, seconds: a walltime below that is 0 in them.
UNWRITTEN_S = 5e-7
PROTOCOLS = (4, 5)
#: Options of Batsim that the replay has with one value only, and why.
FIXED: dict[str, tuple[bool, str]] = {
    **dict.fromkeys(("allow-compute-sharing", "enable-compute-sharing"), (False, "a host runs one job at a time")),
    "allow-storage-sharing": (True, "jobs share storages"),
    "disable-storage-sharing": (False, "jobs share storages"),
    "redis-enabled": (False, "there is no Redis: messages have the profiles"),
}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class ComponentOptions:
    """A decision component, and how it is reached."""

    HEADING: ClassVar = "Component"
    command: Annotated[str | None, option("COMMAND", "Start the component with this command.", "--command")] = None
    endpoint: Annotated[
        str | None,
        option("ENDPOINT", "Where the component binds, or pybatsim:SCHEDULER.",
               default="tcp://127.0.0.1:28000 with --command"),
    ] = None  # fmt: skip
    timeout: Annotated[float, option("SECONDS", "Longest wait for a message of the other side.")] = 60.0
    settings: Annotated[
        list[str] | None,
        option("KEY=VALUE", "Batsim's configuration, such as dynamic-jobs-enabled=true; repeatable.", "--set"),
    ] = None
    protocol: Annotated[int, option("VERSION", "Version of Batsim's protocol that it speaks: 4 or 5.")] = 4

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise bad("--protocol", f"{self.protocol} (allowed: 4 or 5)")
        if self.endpoint is None:
            if self.command is None:
                raise bad("--command", "missing: what starts the component (or --endpoint, where it runs already)")
        elif self.endpoint.startswith(PYBATSIM):
            if self.command is not None or self.endpoint == PYBATSIM or self.protocol != 4:
                allowed = f"{PYBATSIM}SCHEDULER, with protocol 4, without --command"
                raise bad("--endpoint", f"{self.endpoint!r} (allowed: {allowed})")
        else:
            check_endpoint("--endpoint", self.endpoint)
        if not 0.0 < self.timeout <= 1e6:
            raise bad("--timeout", f"{self.timeout:g} (allowed: seconds above 0, at most 1e6)")
        _ = self.config

    @property
    def config(self) -> dict[str, Any]:
        """Keys of Batsim's configuration and their values. Raises typer.BadParameter."""
        from ...formats.batsim.machine_description import CONFIG

        config = dict[str, Any]()
        for setting in self.settings or ():
            key, mark, value = setting.partition("=")
            if not mark or not key:
                raise bad("--set", f"{setting!r} (allowed: KEY=VALUE)")
            config[key] = value if isinstance(CONFIG.get(key), str) else _value(value)
            if self.protocol == 5 and key != "sched-config":
                raise bad("--set", f"{setting!r} (allowed with protocol 5: sched-config=TEXT)")
            fixed, reason = FIXED.get(key.replace("_", "-"), (config[key], ""))
            if config[key] != fixed:
                raise bad("--set", f"{setting!r}: {reason} (allowed: {key}={json.dumps(fixed)})")
            if key in CONFIG and type(config[key]) is not type(CONFIG[key]):
                example = json.dumps(CONFIG[key])
                raise bad("--set", f"{setting!r} (allowed: {key}= with a value such as {example})")
        if config.get("dynamic-jobs-enabled"):
            config["dynamic-jobs-acknowledged"] = True
        return config


def check_endpoint(option: str, text: str) -> None:
    """Check that a text looks like an endpoint of ZeroMQ. Raises typer.BadParameter."""
    if not ENDPOINT.fullmatch(text):
        raise bad(option, f"{text!r} (allowed: an endpoint such as tcp://127.0.0.1:28000 or ipc://edc.sock)")


class ComponentDecider(Decider):
    """A decision component of Batsim, as the options describe it."""

    def __init__(self, component: ComponentOptions) -> None:
        self._component = component

    @property
    def text(self) -> str:
        """The name in summaries."""
        return f"edc:{self._component.endpoint or self._component.command}"

    def storages(self, names: Any) -> Any:
        """See Decider: a component says which storage is meant."""
        return MappedLater(names) if names else names

    def replay(
        self, request: ReplayRequest, replay_input: ReplayInput, predictor: OnlineRunTimes | None,
        progress: Callable[[float], None], *, log_power: bool,
    ) -> tuple[Replayed, None]:  # fmt: skip
        """See Decider."""
        from ...adapters.batsim.replay_under_component import replay_under_component
        from ...adapters.batsim.sockets import asking, component_process

        component, jobs = self._component, replay_input.jobs
        if len(short := jobs.take(jobs.walltime < UNWRITTEN_S)):
            first = short.more.get("name", short.id)[0]
            more_jobs = f", like {count(len(short) - 1, 'other')}" if len(short) > 1 else ""
            problem = (
                f"a walltime of {short.walltime[0]:g} s, which messages have as 0.000000{more_jobs}; batsched aborts "
                "on it"
            )
            warn(f"job {first}: {problem}")
        with ExitStack() as stack:
            endpoint, process = component.endpoint, None
            if component.command is not None:
                endpoint, process = stack.enter_context(component_process(component.command, endpoint))
            assert endpoint is not None, "an endpoint or a command is given"
            if endpoint.startswith(PYBATSIM):
                ask = scheduler_in_process(endpoint.removeprefix(PYBATSIM))
            else:
                ask = stack.enter_context(asking(endpoint, component.timeout, process))
            options = ReplayOptions(
                contention=request.machine.contention, log_power=log_power, progress=progress, clock=time.perf_counter
            )
            replayed, _ = replay_under_component(
                ask, self.text, jobs, replay_input.machine, request.jobs.traces, config=component.config,
                protocol=component.protocol, natural=request.jobs.natural, options=options,
            )  # fmt: skip
        return replayed, None


@grouped
def batsim(component: ComponentOptions, jobs: JobOptions, machine: MachineOptions, output: OutputOptions) -> None:
    """Replay traces as Batsim does: a decision component, such as batsched or a scheduler of pybatsim, decides.

    The component gets Batsim's messages and decides when and where each job starts. For the other direction, a policy
    of pilotfish that decides for Batsim, see `pilotfish edc`.

    \b
    Examples:
      pilotfish batsim trace.swf --command 'batsched -v easy_bf'
      pilotfish batsim workload.json -c platform.xml --endpoint ipc://edc.sock
      pilotfish batsim trace.swf --endpoint pybatsim:easyBackfill
    """
    run_replay(ReplayRequest(jobs, machine, ComponentDecider(component)), output)
