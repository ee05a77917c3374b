"""The board in words for a terminal: rows of nodes, of jobs, and of the nodes' past and future.

Rule: the rows are those of `web.board_copy`, which the pages show, too; only their texts are made here. Texts of others
are escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...formats.text import clean, count, percent
from ...web.board_copy import BoardCopy

NODE_HEADS = ("NODE", "STATE", "CORES IN USE", "JOBS", "TRAFFIC", "POWER")
JOB_HEADS = ("JOB", "USER", "STARTS", "LATEST", "MANAGER", "WHY IT WAITS", "NAME")
#: Signs of a node's time, in the order in which one covers another: has run, until the time limit, planned, runs.
PAST, LIMIT, PLANNED, RUNS = "-", ".", "o", "#"
#: Cells of a bar.
_BAR = 10
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def span_words(length_s: float) -> str:
    """Return a length of time, seconds, in two units at most: `2 h 5 min`."""
    rest, words = max(0, round(length_s)), list[str]()
    if rest >= 600:
        rest = round(rest / 60) * 60
    for size, unit in _UNITS:
        number, rest = divmod(rest, size)
        if number:
            words.append(f"{number} {unit}")
        elif words:
            break
    return " ".join(words[:2]) or "0 s"


def moment_words(time: float | None, now: float) -> str:
    """Return when a time is or was, of epoch seconds; "": not known."""
    if time is None:
        return ""
    return f"in {span_words(time - now)}" if time >= now else f"{span_words(now - time)} ago"


@dataclass(frozen=True)
class BoardJob:
    """A job by the names of its columns, see `daemon.report.board.JOB_COLUMNS`."""

    values: Mapping[str, Any]
    user: str

    def __getitem__(self, column: str) -> Any:
        return self.values[column]

    @property
    def waits(self) -> bool:
        """Return whether it has not begun."""
        return bool(self["state"] == "pending")

    @property
    def id(self) -> str:
        """Return its id as the resource manager writes it, or its key."""
        is_of_manager = self["decided_by"] or self["partition"]
        tasks = f"[{self['tasks']}]" if (self["tasks"] or 1) > 1 else ""
        return clean(str(self["key"]).partition("/")[2] + tasks if is_of_manager else str(self["key"]))

    def cells(self, now: float) -> tuple[str, ...]:
        """Return its texts below JOB_HEADS."""
        start, late, manager = self["start_time"], self["start_late"], self["manager_start_time"]
        starts = moment_words(start, now) or "not known"
        if self.waits and start is not None and start <= now:
            starts = "now"
        latest = moment_words(late, now) if self.waits else ""
        why = self["why"] if self.waits else f"runs, ends {moment_words(self['finish_time'], now) or 'not known'}"
        name, user = clean(self["name"] or "")[:20], clean(self.user)[:10]
        return self.id, user, starts, latest, moment_words(manager, now), clean(why or ""), name


def job_rows(copy: BoardCopy) -> list[BoardJob]:
    """Return all jobs, the earliest start first; those whose start is not known are the last."""
    rows = [_job(copy, row) for row in copy.rows.values()]
    return sorted(rows, key=lambda job: float("inf") if job["start_time"] is None else job["start_time"])


def _job(copy: BoardCopy, row: Sequence[Any]) -> BoardJob:
    values = dict(zip(copy.columns, row, strict=True))
    return BoardJob(values, "" if values["uid"] is None else copy.users.get(str(values["uid"]), f"uid {values['uid']}"))


def chosen(jobs: Iterable[BoardJob], words: str, state: str) -> Iterator[BoardJob]:
    """Yield the jobs that have all words in their id, name, user, partition or state.

    Args:
        jobs: of the board.
        words: to find, separated by blanks.
        state: `waiting`, `running` or `all`.
    """
    parts = words.lower().split()
    for job in jobs:
        text = " ".join(map(str, (job.id, job["name"], job.user, job["partition"], job["state"]))).lower()
        if (state == "all" or (state == "waiting") == job.waits) and all(part in text for part in parts):
            yield job


def node_rows(nodes: Mapping[str, Sequence[Any]]) -> list[tuple[str, ...]]:
    """Return the texts of each node below NODE_HEADS."""
    columns = (nodes.get(name, ()) for name in _NODE_VALUES)
    return [_node(*values) for values in zip(*columns, strict=True)]


_NODE_VALUES = ("name", "state", "threads", "cores", "jobs", "bandwidth", "memory_bandwidth", "power_watts")


def _node(
    name: str, state: str, threads: int, cores: int, jobs: int,
    traffic: float | None, most: float | None, watts: float | None,
) -> tuple[str, ...]:  # fmt: skip
    share = threads / cores if cores else 0.0
    full = "#" * min(_BAR, round(share * _BAR))
    used = f"{full:-<{_BAR}} {threads:>3} of {cores}"
    traffic_words = "" if traffic is None or not most else percent(traffic / most)
    return clean(name), clean(state), used, str(jobs), traffic_words, "" if watts is None else f"{watts:,.0f} W"


def summary(copy: BoardCopy) -> str:
    """Return the nodes by their states, the cores in use and the power that is known, as one line."""
    nodes = copy.nodes
    states = Counter(nodes.get("state", ()))
    watts = [one for one in nodes.get("power_watts", ()) if one is not None]
    number_of_nodes, cores = sum(states.values()), sum(nodes.get("cores", ()))
    by_state = ", ".join(f"{number:,} {state}" for state, number in states.most_common())
    parts = [
        f"{count(number_of_nodes, 'node')}: {by_state}",
        f"{sum(nodes.get('threads', ())):,} of {count(cores, 'core')} in use",
    ]
    if watts:
        of_some = f" of {count(len(watts), 'node')}" if len(watts) < number_of_nodes else ""
        parts.append(f"{sum(watts) / 1e3:,.1f} kW{of_some}")
    return clean("; ".join(parts))


def time_lines(copy: BoardCopy, now: float, begin: float, end: float, cells: int) -> list[str]:
    """Return a line of signs for each node, from a time to another: what ran, runs and is planned. O(jobs x cells).

    Args:
        copy: of the board.
        now: epoch seconds, like the next two.
        begin: of the lines.
        end: of the lines, after `begin`.
        cells: length of each line, at least 1.
    """
    lines = [bytearray(b" " * cells) for _ in copy.nodes.get("name", ())]
    bars = [bar for row in copy.past for bar in _bars(_job(copy, row), now, is_past=True)]
    bars += [bar for row in copy.rows.values() for bar in _bars(_job(copy, row), now, is_past=False)]
    scale = cells / (end - begin)
    for sign in (PAST, LIMIT, PLANNED, RUNS):
        for bar_sign, start, finish, nodes in bars:
            first, last = int((start - begin) * scale), int((min(finish, end) - begin) * scale)
            if bar_sign != sign or finish < begin or start >= end:
                continue
            first, last = max(0, first), min(cells, max(last, first + 1))
            for low, high in nodes:
                for node in range(low, min(high + 1, len(lines))):
                    lines[node][first:last] = sign.encode() * (last - first)
    return [line.decode() for line in lines]


def _bars(job: BoardJob, now: float, *, is_past: bool) -> Iterator[tuple[str, float, float, Sequence[tuple[int, int]]]]:
    """Yield the sign, begin, end and nodes of each part of a job's time that is known."""
    start, finish, nodes, forever = job["start_time"], job["finish_time"], job["nodes"], float("inf")
    if start is None or not nodes:
        return
    limit = forever if job["walltime"] is None else start + job["walltime"]
    if is_past:
        yield PAST, start, now if finish is None else finish, nodes
    elif job.waits:
        yield PLANNED, start, limit if finish is None else finish, nodes
    else:
        yield LIMIT, start, limit, nodes
        yield RUNS, start, max(now, now if finish is None else finish), nodes
