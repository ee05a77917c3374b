"""Whether Slurm can be asked at all: its commands, its controller, who vouches for us, its clock, its version.

Rule: pure; a problem here means that nothing else can be known.
Source: scontrol(1); slurm.conf(5): AuthType, SlurmctldHost, SlurmctldParameters of 22.05 and 23.02.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base import AdapterError
from ...findings import NOTE, OK, PROBLEM, WARNING, Finding
from .asked import Asked

#: releases between which what the adapter relies on was seen to work, or is documented
OLDEST, NEWEST = (20, 11), (25, 11)
#: munge takes no credential that is older or newer than this, seconds
TRUSTED_S = 300.0


def findings(asked: Asked) -> Iterator[Finding]:
    """In the order in which they would have to be mended."""
    if error := asked.errors.get("version"):
        absent = error.kind == "missing"
        make = "apt-get install slurm-client" if absent else "export SLURM_CONF=/etc/slurm/slurm.conf"
        says = str(error) if absent else f"the commands here know of no Slurm: {error}"
        yield Finding(PROBLEM, "commands", says, (make,))
        return
    if error := asked.errors.get("config"):
        yield _away(error, asked.errors.get("munge"))
        return
    release = _release(asked.controller)
    vouches = asked.setting("AuthType").removeprefix("auth/") or "unknown"
    yield Finding(OK, "controller", f"slurmctld {release} answers in {1e3 * asked.answer_s:.0f} ms; {vouches} vouches "
                  "for who asks")  # fmt: skip
    yield from _second(asked)
    yield from _versions(asked)
    yield _clock(asked)
    if "rl_enable" in asked.words("SlurmctldParameters"):
        says = "SlurmctldParameters=rl_enable: Slurm slows users down who ask much, and the daemon's account with them"
        yield Finding(NOTE, "controller", says)
    for name in ("time", "partitions", "nodes", "jobs"):
        if error := asked.errors.get(name):
            yield Finding(PROBLEM, name, str(error))


def _release(version: tuple[int, int]) -> str:
    return ".".join(f"{part:02d}" for part in version) if version != (0, 0) else "(of no known version)"


def _second(asked: Asked) -> Iterator[Finding]:
    """A controller of several that is down."""
    down = [line.strip() for line in asked.pings if line.strip().endswith("DOWN")]
    if error := asked.errors.get("ping"):
        down.append(str(error))
    for line in down:
        yield Finding(WARNING, "controller", f"one of several is away: {line}", ("scontrol ping",))


def _versions(asked: Asked) -> Iterator[Finding]:
    mine, theirs = asked.client, asked.controller
    if mine > theirs != (0, 0):
        says = f"the commands here are {_release(mine)}, newer than the controller: Slurm promises nothing for that"
        yield Finding(WARNING, "versions", says)
    elif mine != theirs:
        yield Finding(NOTE, "versions", f"the commands here are {_release(mine)}: they may be older, by two releases")
    if not OLDEST <= theirs <= NEWEST:
        oldest, newest = _release(OLDEST), _release(NEWEST)
        says = f"{_release(theirs)} is outside what is known, {oldest} to {newest}: watch a dry run"
        yield Finding(WARNING, "versions", says)


def _clock(asked: Asked) -> Finding:
    says = f"the controller's clock is {asked.ahead_s:+.0f} s from this machine's; "
    if abs(asked.ahead_s) > TRUSTED_S / 2:
        says += f"beyond {TRUSTED_S:.0f} s munge takes nobody's word"
        return Finding(WARNING, "clock", says, ("timedatectl set-ntp true",))
    if abs(asked.ahead_s) > 2.0:
        return Finding(NOTE, "clock", f"{says}pilotfish goes by the controller's")
    return Finding(OK, "clock", "this machine's and the controller's agree")


def _away(error: AdapterError, munge: AdapterError | None) -> Finding:
    said = str(error)
    if munge and munge.kind != "missing" and error.kind == "timeout":  # Slurm's commands then take up to 50 s
        return Finding(PROBLEM, "munge", f"nobody vouches for us: {munge}", ("systemctl status munge",))
    if "unge" in said:
        return Finding(PROBLEM, "munge", f"nobody vouches for us: {said}", ("systemctl status munge",))
    return Finding(PROBLEM, "controller", said, ("scontrol ping", "systemctl status slurmctld"))
