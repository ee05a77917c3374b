"""The files of a site without the names of its users, accounts, jobs and paths.

Rule: of texts that hold more than a replay reads, only what it reads stays; a new column or key of Slurm is dropped,
not copied. Partitions, QOS, features and licences keep their names. Trees keep their sizes and the order of their
rows. A record that cannot be read, or that has a user's words where Slurm writes its own, is left out, and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from ...simulate.errors import ConfigError
from .. import slurm_values
from . import scontrol_text
from .anonymous_names import AnonymousNames
from .anonymous_options import AnonymousOptions
from .bar_table import bar_table
from .job_scripts import job_scripts
from .site_file_list import SACCT_COLUMNS
from .site_rules import site_rules, unfollowed_settings
from .submit_line import submit_options

Change = Callable[[str], str]
_NODE = (
    "NodeName CPUTot CPUs Boards Sockets CoresPerSocket ThreadsPerCore RealMemory AvailableFeatures Gres Weight State "
    "CoreSpecCount CPUSpecList MemSpecLimit Version CfgTRES"
)
_PARTITION = (
    "PartitionName AllowGroups AllowAccounts AllowQos DenyAccounts DenyQos Default QoS DefaultTime DisableRootJobs "
    "ExclusiveUser GraceTime Hidden MaxNodes MaxTime MinNodes LLN MaxCPUsPerNode Nodes PriorityJobFactor PriorityTier "
    "RootOnly ReqResv OverSubscribe OverTimeLimit PreemptMode State TotalCPUs TotalNodes SelectTypeParameters "
    "JobDefaults DefMemPerNode DefMemPerCPU MaxMemPerNode MaxMemPerCPU TRES TRESBillingWeights Exclusive"
)
_RESERVATION = (
    "ReservationName StartTime EndTime Duration Nodes NodeCnt CoreCnt Features PartitionName Flags TRES Users Groups "
    "Accounts Licenses State MaxStartDelay"
)
_SWITCH = "SwitchName Level LinkSpeed Nodes Switches"
_JOB = (
    "JobId ArrayJobId ArrayTaskId ArrayTaskThrottle HetJobId HetJobOffset JobName UserId Priority Nice Account QOS "
    "JobState Reason Dependency Requeue RunTime TimeLimit TimeMin SubmitTime EligibleTime StartTime EndTime Deadline "
    "Scheduler Partition ReqNodeList ExcNodeList NodeList NumNodes NumCPUs NumTasks CPUs/Task ReqTRES TRES "
    "NtasksPerN:B:S:C MinCPUsNode MinMemoryNode MinMemoryCPU Features OverSubscribe Contiguous Licenses TresPerNode "
    "TresPerJob TresPerTask Reservation"
)
#: The fields of a record of sacct in which Slurm writes its own words, and what those look like.
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{1,11}|Unknown|None|"
_COUNT = r"-?\d*(?:\.\d+)?[KMGT]?"
_FORMS = {
    name: re.compile(form, re.ASCII)
    for form, names in (
        (r"\d+(?:_(?:\d+|\[[\d,:%.-]*\]?))?(?:\+\d+)?", ("jobid", "jobidraw")),
        (_TIME, ("submit", "eligible", "start", "end")),
        (
            _COUNT,
            (
                "dbindex",
                "elapsedraw",
                "reqnodes",
                "allocnodes",
                "reqcpus",
                "alloccpus",
                "priority",
                "consumedenergyraw",
            ),
        ),
        (r"[\w.+-]*(?: by \w+)?", ("state", "qos")),
        (r"\d+:\d+|", ("exitcode",)),
        (r"\d*|UNLIMITED|Partition_Limit", ("timelimitraw",)),
        (r"[\d.]*[KMGTP]?[cn?]?", ("reqmem",)),
        (r"[\w/:=,.-]*", ("reqtres", "alloctres", "partition", "flags")),
        (r"[\w\[\],.-]*|None assigned|\(null\)", ("nodelist",)),
    )
    for name in names
}
#: An absolute path, and a list of nodes in SuspendExcNodes, which a number of them may follow: `n[1-4]:2,n7`.
_PATH = re.compile(r"(?:^|[\s,:;='\"(])/")
_NODE_LIST = re.compile(r"(?:^|(?<=,))(?:[^,:\[]|\[[^\]]*\])+")
_PRINTED = re.compile(r"Configuration data as of [\dT:-]{19}", re.ASCII)
_ALWAYS = {"slurm_version", "clustername"}


class AnonymousSite:
    """Makes the files of one site anonymous.

    Args:
        names: other names.

    `left_out` counts records that could not be read.
    """

    def __init__(self, names: AnonymousNames) -> None:
        self.names, self.left_out = names, Counter[str]()
        self._options = AnonymousOptions(names)
        user, account = partial(names.one, "user"), partial(names.one, "account")
        self._columns: Mapping[str, Change] = {
            "cluster": partial(names.one, "cluster"),
            "user": user,
            "account": lambda text: text[: len(text) - len(text.lstrip())] + account(text.strip()),
            "parentname": account,
            "parname": account,
            "jobname": partial(names.one, "job"),
            "reservation": partial(names.each, "reservation"),
            "name": partial(names.one, "reservation"),
            "nodelist": names.nodes,
            "nodename": names.nodes,
            "nodenames": names.nodes,
            "state": lambda text: text.partition(" by ")[0],
        }
        self._keys: Mapping[str, Change] = {
            "NodeName": names.nodes,
            "Nodes": names.nodes,
            **dict.fromkeys(("ReqNodeList", "ExcNodeList", "NodeList"), names.nodes),
            **dict.fromkeys(("Users",), partial(names.each, "user")),
            **dict.fromkeys(("Accounts", "AllowAccounts", "DenyAccounts"), partial(names.each, "account")),
            **dict.fromkeys(("Groups", "AllowGroups"), partial(names.each, "group")),
            **dict.fromkeys(("ReservationName", "Reservation"), partial(names.each, "reservation")),
            "SwitchName": partial(names.one, "switch"),
            "Switches": partial(names.listed, "switch"),
            "Account": account,
            "JobName": partial(names.one, "job"),
            "UserId": lambda text: f"{user(text.partition('(')[0])}(0)",
            "Reason": lambda text: text.partition(",")[0].partition(" ")[0],
        }
        self._texts: Mapping[str, Change] = {
            "scontrol_config.txt": self._settings,
            "scontrol_node.txt": partial(self._lines, _NODE),
            "scontrol_part.txt": partial(self._lines, _PARTITION),
            "scontrol_res.txt": partial(self._lines, _RESERVATION),
            "scontrol_topo.txt": partial(self._lines, _SWITCH),
            "scontrol_job.txt": partial(self._lines, _JOB),
            "assoc.psv": self._table,
            "sshare.psv": self._table,
            "sshare_end.psv": self._table,
            "events.psv": partial(self._table, empty=("reason", "user")),
            "reservations.psv": self._table,
            "qos.psv": partial(self._table, same=("name",)),
            "sprio.txt": lambda text: re.sub(r"(?m)^(\s*\d+\s+\S+\s+)\S+", r"\1-", text),
            "sdiag.txt": lambda text: text.partition("Remote Procedure Call")[0],
            "scripts.txt": self._scripts,
        }

    def text(self, name: str, text: str) -> str | None:
        """Return the anonymous text of a file; None if this file cannot be made anonymous. Raises ConfigError."""
        change = self._texts.get(name)
        try:
            return change(text) if change and text.strip() else "" if change else None
        except ConfigError as error:
            raise ConfigError(name, error.key, error.problem, error.allowed) from None

    def records(self, header: str, records: Iterable[str]) -> Iterator[str]:
        """Yield the records of sacct without names, each a line with its end.

        Args:
            header: its first line.
            records: the other lines; a record may have several.
        """
        table = bar_table("\n".join((header, *records)), "sacct.psv")
        columns = {name.lower() for name in SACCT_COLUMNS.split(",")}
        for record in table.records():
            fields = {name: text if name in columns else "" for name, text in record.fields.items()}
            if not all(_FORMS[name].fullmatch(text) for name, text in fields.items() if name in _FORMS):
                self.left_out["records with a user's words where Slurm writes its own"] += 1
                continue
            line = fields.get("submitline", "")
            component = int(match[1]) if (match := re.search(r"\+(\d{1,6})$", fields.get("jobid", ""))) else 0
            options = submit_options(line, fields.get("jobname", ""), component)
            changed = {name: self._columns[name](text) for name, text in fields.items() if name in self._columns}
            changed["submitline"] = self._options.command(line, options, component)
            changed["reason"] = self._keys["Reason"](fields.get("reason", ""))
            yield "|".join({**fields, **changed}[name] for name in table.columns) + "\n"
        self.left_out.update(table.left_out)

    def _table(self, text: str, same: Iterable[str] = (), empty: Iterable[str] = ()) -> str:
        """Return a table of sacctmgr or sshare; `same` columns stay, `empty` ones lose their texts."""
        table = bar_table(text, "")
        changes = {name: change for name, change in self._columns.items() if name not in (*same, *empty)}
        lines = [next(line for line in text.split("\n") if "|" in line).rstrip("|\r")]
        for record in table.records():
            fields = {name: changes[name](field) if name in changes else field for name, field in record.fields.items()}
            lines.append("|".join("" if name in empty else fields[name] for name in table.columns))
        self.left_out.update(table.left_out)
        return "\n".join((*lines, ""))

    def _lines(self, keys: str, text: str) -> str:
        """Return lines of scontrol with these keys only, divided by blanks; the first of them begins each line."""
        first, *rest = keys.split()
        lines = list[str]()
        for _, words in scontrol_text.records(text, first):
            lines.append(" ".join(f"{key}={self._value(key, words[key])}" for key in (first, *rest) if key in words))
        return "\n".join((*(lines or ["No records in the system"]), ""))

    def _value(self, key: str, text: str) -> str:
        change = self._keys.get(key)
        return text if change is None or text.lower() in slurm_values.UNKNOWN else change(text)

    def _settings(self, text: str) -> str:
        """Return the settings that a replay reads; a value with a path becomes `/x`."""
        conf = scontrol_text.configuration(text, "")
        site_rules(conf, None)
        for _ in unfollowed_settings(conf):
            pass
        read = _ALWAYS | {name.lower() for name in conf.names}
        first = text.split("\n", 1)[0].rstrip()
        lines = [first] if _PRINTED.fullmatch(first) else []
        for key, line in conf.settings.items():
            if key in read:
                lines.append(f"{key} = {self._setting(key, line.values[key])}")
        return "\n".join((*lines, ""))

    def _setting(self, key: str, value: str) -> str:
        if key == "clustername":
            return self.names.one("cluster", value)
        if key == "suspendexcnodes":
            return _NODE_LIST.sub(lambda match: self.names.nodes(match[0]), value)
        return "/x" if _PATH.search(value) else value

    def _scripts(self, text: str) -> str:
        """Return the scripts with their options only."""
        scripts = job_scripts(text)
        return "".join(
            f"Batch Script for {job}\n{'-' * 80}\n{self._options.script(options)}" for job, options in scripts.items()
        )
