"""Output on the service as a whole, above its jobs: its mode, what blocks or pauses it, its canary and its limits.

Rule: what keeps jobs from starting has a line of its own.
"""

from __future__ import annotations

import time
from typing import Any

from rich.text import Text

from ...built_from import full_version
from ...daemon.state.forecasts import Forecaster
from ...formats.text import clean, count, joules, percent, short_time, times
from .manager_queue import age_of
from .text import Screen, hanging


def put_service(screen: Screen, reply: dict[str, Any]) -> None:
    """Print the lines on the service.

    Args:
        screen: where to.
        reply: of the daemon to `status`, or of a client with the same shape.
    """
    workflows = reply["workflows"]
    total = count(sum(not flow.get("handed_over") for flow in workflows), "workflow")
    mode = f"{reply['mode']}, policy {reply['policy']}, " if "mode" in reply else ""
    mode = f"{reply['view']}, " if "view" in reply else mode
    screen.put(Text(f"{reply['cluster']}: {mode}{total}{age_of(reply)}"))
    if version := reply.get("version"):
        differs = f"; this command is {full_version()}: restart the service" if version != full_version() else ""
        screen.put(*hanging("", f"service: pilotfish {version}{differs}", screen.cells))
    if reply.get("mode") == "shadow" and any(flow.get("handed_over") for flow in workflows):
        screen.put(Text("STARTS IN: when pilotfish would start a job; only the resource manager starts it"))
    if reply["blocked"]:
        screen.put(Text(f"blocked: {reply['blocked']}"))
    elif reply.get("not_ready"):
        screen.put(Text(f"not ready: {reply['not_ready']}"))
    for line in handover_lines(reply.get("handover")):
        screen.put(*hanging("", line, screen.cells))
    for pause in reply.get("pauses", ()):
        screen.put(Text(pause_line(pause, reply["time"])))
    if limit := reply.get("limit"):
        screen.put(Text(limit_line(**limit)))
    if closed := reply.get("closed_queues"):
        screen.put(Text(f"disabled in the resource manager, so none of its jobs starts: {', '.join(closed)}"))
    model = reply.get("model", {})
    if reply.get("mode") == "fallback":
        why = _why_fallback(**reply["guard"]) if not model.get("overruled") else clean(model["overruled"])
        screen.put(*hanging("", f"fallback: {why}", screen.cells))
    elif doubt := model.get("doubt"):
        screen.put(*hanging("", f"the baseline of the model made the last plan: {clean(doubt)}", screen.cells))


def pause_line(pause: dict[str, Any], now: float) -> str:
    """Return a line on a pause.

    Args:
        pause: as the daemon describes it, see `daemon.state.pauses.Pause`.
        now: the present on the resource manager's clock, epoch seconds.
    """
    where = f"partition {clean(pause['partition'])}" if pause["partition"] else "all jobs"
    until = (
        "until `pilotfish resume`" if pause["until"] is None else f"for {short_time(max(0.0, pause['until'] - now))}"
    )
    held = "; held jobs wait for their deadlines" if pause["keeps_held"] else ""
    by = f" by {pause['by']}" if pause["by"] else ""
    why = f": {clean(pause['why'])}" if pause["why"] else ""
    return f"paused{by}: {where}, {until}{held}{why}"


def handover_lines(handover: dict[str, Any] | None) -> list[str]:
    """Return the lines on the canary, as `CanaryWatch.document` describes it; [] without one."""
    if handover is None:
        return []
    lines = list[str]()
    if handover["stepped_back"] is not None:
        lines.append(f"stepped back to shadow: {clean(handover['why'])}; `pilotfish step-up` ends this")
    if handover["share"] is not None:
        where = f" in {clean(', '.join(handover['partitions']))}" if handover["partitions"] else ""
        jobs = ", ".join(f"{number:,} {group}" for group, number in handover["jobs"].items())
        lines.append(f"canary: {percent(handover['share'])} of the eligible jobs{where} are handed over; now {jobs}")
    return lines


def limit_line(
    kind: str, begin: float | None, end: float | None, holds: bool, watts: float, balance_j: float | None = None,
    consumed_j: float | None = None, consumption: str = "",
) -> str:  # fmt: skip
    """Return a limit of power or energy in words, with local times; see `status_documents.limit_document`."""
    times = [(word, at) for word, at in (("from", begin), ("to", end)) if at is not None]
    span = " ".join(f"{word} {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))}" for word, at in times)
    description = f"{kind}: {watts:,.0f} W{' on average' if balance_j is not None else ''}{' ' if span else ''}{span}"
    if not holds:
        return f"{description}; it does not hold now"
    if balance_j is None or consumed_j is None:
        return description
    balance = f"{joules(balance_j)} left now" if balance_j >= 0.0 else f"{joules(-balance_j)} too much consumed"
    return f"{description}; {balance}, {joules(consumed_j)} consumed ({consumption})"


def _why_fallback(median_factor: float, bound: float, model: str, source: str = "") -> str:
    return f"{Forecaster(model, source)} is off by {times(median_factor)}; the bound is {times(bound)}"
