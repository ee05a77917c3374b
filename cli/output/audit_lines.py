"""The lines of `pilotfish log`: what was written or changed, by whom, from what to event, and with what outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...formats.text import clean, count
from .text import Screen, hanging

#: Verb of an action, and its past.
_PAST = {
    "start": "started", "submit ahead": "submitted ahead", "cancel": "cancelled", "release": "released",
    "power off": "powered off", "power on": "powered on",
}  # fmt: skip
_INDENT = 21


def show_audit(lines: list[dict[str, Any]], *, older: bool) -> None:
    """Print lines of the audit.

    Args:
        lines: as the daemon describes them, see `daemon.state.audit`.
        older: there are older ones that are not shown.
    """
    screen = Screen()
    if older:
        screen.put(f"(older lines are not shown; the last {count(len(lines), 'line')}: see --since)")
    for line in lines:
        event, details = audit_texts(line)
        screen.put(*hanging(f"{_moment(line['time'])}  ", event, screen.cells))
        screen.put(*hanging(" " * _INDENT, details, screen.cells))
    if not lines:
        screen.put("nothing is recorded")


def audit_texts(line: Mapping[str, Any]) -> tuple[str, str]:
    """Return what happened, and who decided it with its outcome, as two texts."""
    target, user = clean(line["target"]), (line.get("user") or "").partition(" (uid ")[0]
    whose = f" ({clean(user)})" if user else ""
    by = f"by {clean(line['by'])}" if line["by"] else "it is not known who decided it"
    before, after, why = line["before"], line["after"], clean(line["why"] or "")
    if line["kind"] in ("write", "would"):
        event = f"{line['action']} {target}{whose}"
        if line["kind"] == "would":
            event = f"would have {_PAST.get(line['action'], line['action'])} {target}{whose}"
        if nodes := after.get("nodes"):
            event += f" on {clean(nodes)}"
        reason = clean(str(after.get("why", ""))) or why
        facts = [by, f"was {_before(before)}" if before else "", reason]
        if line["number"] > 1:
            facts.append(f"{line['number']} times since {_moment(line['since'])}")
        outcome = "" if line["kind"] == "would" else clean(line["outcome"])
        return event, "; ".join(filter(None, (outcome, *facts)))
    modes = before.get("mode", ""), after.get("mode", "")
    everything = "all jobs" if line["kind"] in ("pause", "resume") else ""
    event = " ".join(filter(None, (line["kind"], target or everything))) + whose
    if any(modes):
        event += f": {modes[0] or '-'} -> {modes[1] or '-'}"
    return event, "; ".join(filter(None, (by, why)))


def _before(facts: Mapping[str, Any]) -> str:
    """Return how a job was before a write."""
    texts = [clean(str(facts.get("state", "")))]
    if facts.get("pinned_since"):
        texts.append(f"pinned to {clean(str(facts.get('nodes', '?')))} since {_moment(facts['pinned_since'])}")
    elif facts.get("nodes"):
        texts.append(f"on {clean(str(facts['nodes']))}")
    if facts.get("held_until"):
        texts.append(f"let go by {_moment(facts['held_until'])} at the latest")
    return ", ".join(filter(None, texts))


def _moment(epoch_s: float) -> str:
    """Return a time in the zone of this machine."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(epoch_s))
