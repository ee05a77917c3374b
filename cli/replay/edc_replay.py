"""A decision component of Batsim as the policy of a replay, with a name like a queue policy."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...adapters.batsim.endpoints import ENDPOINT
from ...adapters.batsim.pybatsim_scheduler import PYBATSIM, scheduler_in_process
from ...formats.text import count
from ...simulate.world.replay_result import Replayed
from ..streams import warn
from ..usage_errors import bad

#: Messages have six decimals, seconds: a walltime below that is 0 in them.
UNWRITTEN_S = 5e-7


@dataclass(frozen=True, slots=True)
class ComponentPolicy:
    """A decision component, which decides in place of a queue policy.

    Args:
        endpoint: where it is bound, or a scheduler of pybatsim in this process; None = where its command binds.
        command: what starts it; None = it runs already.
        timeout_s: longest wait for a reply.
        config: keys of Batsim's configuration and their values.
        protocol: the version that it speaks, 4 or 5.
    """

    endpoint: str | None
    command: str | None
    timeout_s: float
    config: dict[str, Any] = field(default_factory=dict)
    protocol: int = 4

    @property
    def text(self) -> str:
        """The name in summaries."""
        return f"edc:{self.endpoint or self.command}"

    @property
    def policy(self) -> ComponentPolicy:
        """The deciding object: the component itself."""
        return self

    @property
    def file(self) -> Path | None:
        """The file of the policy: it has none."""
        return None

    @property
    def compiled(self) -> bool:
        """False: the policy is not one of pilotfish."""
        return False


def check_endpoint(option: str, text: str) -> None:
    """Check that a text looks like an endpoint of ZeroMQ. Raises typer.BadParameter."""
    if not ENDPOINT.fullmatch(text):
        raise bad(option, f"{text!r} (allowed: an endpoint such as tcp://127.0.0.1:28000 or ipc://edc.sock)")


def component_policy(
    endpoint: str | None, command: str | None, timeout_s: float, config: list[str], protocol: int
) -> ComponentPolicy:  # fmt: skip
    """Return the component that the command line names. Raises typer.BadParameter."""
    from ...formats.batsim.machine_description import CONFIG

    if protocol not in (4, 5):
        raise bad("--edc-protocol", f"{protocol} (allowed: 4 or 5)")
    if endpoint is not None and endpoint.startswith(PYBATSIM):
        if command is not None or endpoint == PYBATSIM or protocol != 4:
            raise bad("--edc", f"{endpoint!r} (allowed: {PYBATSIM}SCHEDULER, with protocol 4, without --edc-command)")
    elif endpoint is not None:
        check_endpoint("--edc", endpoint)
    if not 0.0 < timeout_s <= 1e6:
        raise bad("--edc-timeout", f"{timeout_s:g} (allowed: seconds above 0, at most 1e6)")
    settings = dict[str, Any]()
    for setting in config:
        key, mark, value = setting.partition("=")
        if not mark or not key:
            raise bad("--edc-config", f"{setting!r} (allowed: KEY=VALUE)")
        settings[key] = value if isinstance(CONFIG.get(key), str) else _value(value)
        if protocol == 5 and key != "sched-config":
            raise bad("--edc-config", f"{setting!r} (allowed with protocol 5: sched-config=TEXT)")
        fixed, reason = FIXED.get(key.replace("_", "-"), (settings[key], ""))
        if settings[key] != fixed:
            raise bad("--edc-config", f"{setting!r}: {reason} (allowed: {key}={json.dumps(fixed)})")
        if key in CONFIG and type(settings[key]) is not type(CONFIG[key]):
            raise bad("--edc-config", f"{setting!r} (allowed: {key}= with a value such as {json.dumps(CONFIG[key])})")
    if settings.get("dynamic-jobs-enabled"):
        settings["dynamic-jobs-acknowledged"] = True
    return ComponentPolicy(endpoint, command, timeout_s, settings, protocol)


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


def replay_component(policy: ComponentPolicy, files: list[Path], found: Any, **how: Any) -> Replayed:
    """Replay what was read under a component. Raises ConfigError, PolicyError.

    Args:
        policy: the component.
        files: the traces.
        found: what was read of them.
        how: see `replay_under`.
    """
    from ...adapters.batsim.replay_under_component import replay_under_component
    from ...adapters.batsim.sockets import asking, component_process

    if len(short := found.jobs.take(found.jobs.walltime < UNWRITTEN_S)):
        first = short.more.get("name", short.id)[0]
        more_jobs = f", like {count(len(short) - 1, 'other')}" if len(short) > 1 else ""
        problem = (
            f"a walltime of {short.walltime[0]:g} s, which messages have as 0.000000{more_jobs}; batsched aborts on it"
        )
        warn(f"job {first}: {problem}")
    with ExitStack() as stack:
        endpoint, process = policy.endpoint, None
        if policy.command is not None:
            endpoint, process = stack.enter_context(component_process(policy.command, endpoint))
        assert endpoint is not None, "an endpoint or a command is given"
        if endpoint.startswith(PYBATSIM):
            ask = scheduler_in_process(endpoint.removeprefix(PYBATSIM))
        else:
            ask = stack.enter_context(asking(endpoint, policy.timeout_s, process))
        replayed, _ = replay_under_component(
            ask, policy.text, found.jobs, found.machine, found.cluster, files,
            config=policy.config, protocol=policy.protocol, **how,
        )  # fmt: skip
    return replayed
