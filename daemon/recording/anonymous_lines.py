"""The header and the cycles of a record with other names.

Rule: a field that is not in the tables below is left out, so that a new one cannot give a name away. Nodes, partitions
and times stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from ...profiles.identity import signature
from ...simulate.model.job import Job
from ..state.pauses import KEPT as PAUSES
from .begin_record import KEPT_KEYS
from .other_names import OtherNames

#: What becomes of a field; None: it stays.
Change = Callable[[Any], Any] | None
_HEADER = (
    "format", "version", "part", "run", "began", "pilotfish", "adapter", "capabilities", "mode", "state",
    "why_no_state",
)  # fmt: skip
#: The folders of a path.
_FOLDERS = re.compile(r"[^\s:,=]*/")
_jobs = TypeAdapter(Job)
#: Longest name of a kind of jobs whose profile has it in full, with some room for its size.
_LONGEST_KIND = 90


class AnonymousLines:
    """Gives the lines of a record other names; while `names` collects, the lines stay as they are.

    Args:
        names: other names.
    """

    def __init__(self, names: OtherNames) -> None:
        self.names = names
        stays = dict[str, Change].fromkeys
        foreign = partial(names.text, is_foreign=True)
        self._provenance: Mapping[str, Change] = stays(
            ("source", "date", "runs", "node_type", "interval", "spread", "strain", "inputs")
        )
        self._profile: Mapping[str, Change] = {
            **stays(("groups", "measured_on", "memory", "instructions", "ipc", "io_bytes", "power_watts")),
            "name": names.profile,
            "provenance": lambda about: only(about, self._provenance),
        }
        self._traits: Mapping[str, Change] = {
            "user": names.person,
            "group": names.account,
            "executable": partial(names.one, "job"),
            "script": partial(names.one, "script"),
            **stays(("queue", "size", "walltime", "submit_time")),
        }
        self._job: Mapping[str, Change] = {
            **stays(("nodes", "memory", "walltime", "wait", "allowed", "inputs", "umask")),
            "profile": lambda profile: only(profile, self._profile),
            "directory": lambda folder: "/x",
            "apart": partial(names.one, "apart"),
            "known_as": names.kind,
            "traits": lambda traits: [*map(list, self.traits(dict(traits)).items())],
            "owner": names.uid,
        }
        self._view: Mapping[str, Change] = {
            **stays((
                "state", "nodes", "submit_time", "start_time", "finish_time", "exit_code", "signal", "usage",
                "restartable", "ahead", "offered", "pinned_since", "due", "pid", "cores", "priority",
                "preemptible", "yields",
            )),
            "key": names.key,
            **dict.fromkeys(("reason", "waits", "due_why"), names.text),
        }  # fmt: skip
        self._queued: Mapping[str, Change] = {
            **stays((
                "state", "queue", "nodes", "cores", "memory", "alone", "walltime", "submit_time", "begin", "tasks",
                "tasks_at_once", "where", "start_time", "finish_time", "manager_start",
            )),
            "key": names.key,
            "name": partial(names.one, "job"),
            "owner": names.uid,
            "account": names.account,
            "array": lambda array: array if array.isdecimal() else names.one("array", array),
            "after": lambda keys: [*map(names.key, keys)],
            "unknown": names.text,
        }  # fmt: skip
        self._used: Mapping[str, Change] = {
            **stays((
                "completed", "began", "run_s", "nodes", "cores", "cpu_s", "memory_bytes", "joules", "placed",
            )),
            "name": partial(names.one, "job"),
        }  # fmt: skip
        self._pause: Mapping[str, Change] = {
            **stays(("partition", "since", "until", "keeps_held")),
            "why": foreign,
            "by": partial(names.one, "user"),
        }
        self._whys = dict[str, None]()

    def header(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first line of a segment."""
        import yaml

        cluster = yaml.safe_load(header["cluster"])
        if isinstance(cluster, dict) and "name" in cluster:
            cluster["name"] = "cluster"
        return {
            **{name: header[name] for name in _HEADER if name in header},
            "cluster": yaml.safe_dump(cluster, sort_keys=False, width=1000),
            "config": config_without_folders(header["config"]),
        }

    def cycle(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Return the line of a cycle. Raises KeyError, IndexError, TypeError, ValueError: it is damaged."""
        stays = ("clock", "news", "plan", "forecasts", "cut", "mode", "failed", "decides")
        after = {name: line[name] for name in stays if name in line}
        for name in ("inputs", "stands"):
            if name in line:
                after[name] = [self._input(kind, facts) for kind, *facts in line[name]]
        if "meanwhile" in line:
            after["meanwhile"] = [
                [calls, breaths, self._input(kind, facts)] for calls, breaths, (kind, *facts) in line["meanwhile"]
            ]
        after["calls"] = [self._call(*call) for call in line["calls"]]
        if "did" in line and self.names.is_numbered:
            for why in self._whys:
                self.names.text(why, is_foreign=True)
            after["did"] = [self.names.line(one) for one in line["did"]]
        if "plan" in after:
            after["plan"] = _FOLDERS.sub("", after["plan"])
        return after

    def _call(self, name: str, answer: Any, *errors: Any) -> list[Any]:
        if errors:
            text, *others = errors[0]
            return [name, None, [self.names.text(text, is_foreign=True), *others]]
        if answer is None:
            return [name, None]
        match name:
            case "snapshot" | "refresh":
                stays = {part: answer[part] for part in ("time", "states", "kept") if part in answer}
                return [name, stays | self._changed(answer, self.view)]
            case "queue":
                stays = {part: answer[part] for part in ("time", "nodes") if part in answer}
                return [name, stays | self._changed(answer, lambda job, key: only(job, self._queued))]
            case "recall":
                return [name, {self.names.key(key): self.view(view, key) for key, view in answer.items()}]
            case "usage":
                return [name, {self.names.key(key): only(one, self._used) for key, one in answer.items()}]
        raise ValueError(f"{name!r} is no call with an answer")

    def _changed(self, answer: Mapping[str, Any], change: Callable[[Any, str], Any]) -> dict[str, Any]:
        """Return the change of a list of values with keys, see `formats.record.changes`."""
        if "jobs" not in answer:
            return {}
        jobs, parts = answer["jobs"], dict[str, Any]()
        for part, values in jobs.items():
            match part:
                case "gone":
                    parts[part] = [self._label(label) for label in values]
                case "new":
                    parts[part] = {self._label(label): change(fields, _key(label)) for label, fields in values.items()}
                case "changed":
                    parts[part] = {
                        self._label(label): [change(fields, _key(label)), *dropped]
                        for label, (fields, *dropped) in values.items()
                    }
                case "order":
                    parts[part] = values
        return {"jobs": parts}

    def _label(self, label: str) -> str:
        key, line_end, number = label.partition("\n")
        return self.names.key(key) + line_end + number

    def view(self, view: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return fields of a `JobView`.

        Args:
            view: the fields.
            key: of the job, as it was recorded.
        """
        after = only(view, self._view)
        if "job" in view:
            after["job"] = self.job(view["job"], key.partition("/")[0])
        return after

    def job(self, job: Mapping[str, Any], workflow: str) -> dict[str, Any]:
        """Return fields of a `Job`.

        Args:
            job: the fields.
            workflow: the first part of its key.
        """
        after = only(job, self._job)
        after["id"] = self.names.job(job["id"], workflow)
        if "after" in job:
            after["after"] = [self.names.job(id, workflow) for id in job["after"]]
        if job.get("command"):
            after["command"] = [self.names.command(signature(_jobs.validate_python(job)) or "")]
        if len(job.get("known_as", "")) > _LONGEST_KIND:
            names = (signature(_jobs.validate_python(fields)) for fields in (job, after))
            long_name, other = (name or "" for name in names)
            self.names.long_kinds[long_name] = other
        return after

    def workflow(self, text: str, id: str) -> str:
        """Return the definition of a workflow.

        Args:
            text: as `codec.encode` made it; "": its jobs are the resource manager's.
            id: of the workflow.
        """
        if not text:
            return text
        workflow = json.loads(text)
        after = {name: workflow[name] for name in ("umask",) if name in workflow}
        after |= {"name": self.names.one("name", workflow["name"])}
        after["jobs"] = [self.job(job, id) for job in workflow["jobs"]]
        return json.dumps(after, separators=(",", ":"))

    def traits(self, traits: Mapping[str, Any]) -> dict[str, Any]:
        """Return the traits of a job."""
        return only(traits, self._traits)

    def pauses(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the pauses, as `Pauses.state` has them."""
        rows = state.get(PAUSES, ())
        self._whys |= dict.fromkeys(row["why"] for row in rows if row.get("why"))
        return {PAUSES: [only(row, self._pause) for row in rows]}

    def _input(self, kind: str, facts: list[Any]) -> list[Any]:
        match kind:
            case "submit":
                id, text, submit_time, owner = facts
                return [kind, self.names.workflow(id), self.workflow(text, id), submit_time, self.names.uid(owner)]
            case "cancel":
                keys, by = facts
                return [kind, [*map(self.names.key, keys)], self.names.one("user", by)]
            case "pauses":
                return [kind, self.pauses(facts[0])]
            case "config":
                return [kind, config_without_folders(facts[0])]
        raise ValueError(f"{kind!r} is no input")


def config_without_folders(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a configuration that decide; of a policy in a file the name of the file."""
    after = {name: value for name, value in config.items() if name in KEPT_KEYS}
    if "policy" in after:
        after["policy"] = _FOLDERS.sub("", after["policy"])
    return after


def only(fields: Mapping[str, Any], changes: Mapping[str, Change]) -> dict[str, Any]:
    """Return the fields that are in a table, changed as it says.

    Args:
        fields: by name.
        changes: what becomes of each.
    """
    after = dict[str, Any]()
    for name, value in fields.items():
        if name in changes:
            change = changes[name]
            after[name] = value if change is None or value is None else change(value)
    return after


def _key(label: str) -> str:
    return label.partition("\n")[0]
