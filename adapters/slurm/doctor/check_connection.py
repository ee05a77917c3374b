"""Check the connection to Slurm: its commands, its controller, authentication, clock and version.

Rule: pure; after a problem here nothing else can be examined.
Source: scontrol(1); slurm.conf(5): AuthType, SlurmctldHost, SlurmctldParameters of 22.05 and 23.02.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base import AdapterError
from ...findings import NOTE, OK, PROBLEM, WARNING, Finding
from ..handed_over.ownership import EARLY_S, LATE_S
from .questions import Answers

#: Oldest and newest release in which what the adapter uses was tested or is documented.
OLDEST, NEWEST = (20, 11), (25, 11)
#: munge rejects a credential that is older or newer than this, seconds.
TRUSTED_S = 300.0


def findings(answers: Answers) -> Iterator[Finding]:
    """Yield findings in the order in which they must be fixed."""
    if error := answers.errors.get("version"):
        yield _no_slurm(error, answers.slurm_confs)
        return
    if error := answers.errors.get("config"):
        yield _unreachable(error, answers.errors.get("munge"))
        return
    release = _release(answers.controller)
    auth = answers.config["AuthType"].removeprefix("auth/") or "unknown"
    message = f"slurmctld {release} answers in {1e3 * answers.answer_s:.0f} ms; authentication by {auth}"
    yield Finding(OK, "controller", message)
    yield from _backups(answers)
    yield from _versions(answers)
    yield _clock(answers)
    if "rl_enable" in answers.config.words("SlurmctldParameters"):
        message = "SlurmctldParameters=rl_enable: Slurm slows down users with many requests, the daemon's account too"
        yield Finding(NOTE, "controller", message)
    for name in ("time", "partitions", "nodes", "jobs"):
        if error := answers.errors.get(name):
            yield Finding(PROBLEM, name, str(error))


def _no_slurm(error: AdapterError, slurm_confs: tuple[str, ...]) -> Finding:
    if error.kind == "missing":
        return Finding(PROBLEM, "commands", str(error), ("apt-get install slurm-client",))
    if "configuration file" in str(error):
        return Finding(PROBLEM, "commands", f"the commands on this machine cannot read slurm.conf: {error}")
    message = f"the commands on this machine find no Slurm: {error}"
    if slurm_confs:
        return Finding(PROBLEM, "commands", message, (f"export SLURM_CONF={slurm_confs[0]}",))
    return Finding(PROBLEM, "commands", f"{message}. It has no slurm.conf: copy the controller's to /etc/slurm")


def _release(version: tuple[int, int]) -> str:
    return ".".join(f"{part:02d}" for part in version) if version != (0, 0) else "(of unknown version)"


def _backups(answers: Answers) -> Iterator[Finding]:
    down = [line.strip() for line in answers.pings if line.strip().endswith("DOWN")]
    if error := answers.errors.get("ping"):
        down.append(str(error))
    for line in down:
        yield Finding(WARNING, "controller", f"one of several is down: {line}", ("scontrol ping",))


def _versions(answers: Answers) -> Iterator[Finding]:
    client, controller = answers.client, answers.controller
    if client > controller != (0, 0):
        message = f"the commands here are {_release(client)}, newer than the controller: Slurm does not support that"
        yield Finding(WARNING, "versions", message)
    elif client != controller:
        yield Finding(
            NOTE, "versions", f"the commands here are {_release(client)}: they may be up to two releases older"
        )
    if not OLDEST <= controller <= NEWEST:
        oldest, newest = _release(OLDEST), _release(NEWEST)
        message = f"{_release(controller)} is outside the known releases, {oldest} to {newest}: watch a dry run"
        yield Finding(WARNING, "versions", message)


def _clock(answers: Answers) -> Finding:
    """Return what the difference of the clocks does; sbatch computes a begin time by the clock of its own machine."""
    message = f"the controller's clock is {answers.ahead_s:+.0f} s from this machine's; "
    if abs(answers.ahead_s) > TRUSTED_S / 2:
        message += f"beyond {TRUSTED_S:.0f} s munge rejects every request"
        return Finding(WARNING, "clock", message, ("timedatectl set-ntp true",))
    if not 1.0 - EARLY_S < -answers.ahead_s < LATE_S - 1.0:
        message += (
            "jobs held by sbatch here (--begin=now+600) are not placed, as if their users had moved the begin time"
        )
        return Finding(WARNING, "clock", message, ("timedatectl set-ntp true",))
    if abs(answers.ahead_s) > 2.0:
        return Finding(NOTE, "clock", f"{message}pilotfish uses the controller's")
    return Finding(OK, "clock", "this machine's and the controller's agree")


def _unreachable(error: AdapterError, munge: AdapterError | None) -> Finding:
    text = str(error)
    if munge and munge.kind != "missing" and error.kind == "timeout":  # Slurm's commands then take up to 50 s
        return Finding(PROBLEM, "munge", f"authentication fails: {munge}", ("systemctl status munge",))
    if "unge" in text:
        return Finding(PROBLEM, "munge", f"authentication fails: {text}", ("systemctl status munge",))
    return Finding(PROBLEM, "controller", text, ("scontrol ping", "systemctl status slurmctld"))
