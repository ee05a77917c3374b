"""A site from the files in a folder: what slurm.conf, sacctmgr, scontrol and sacct say of it.

Rule: a file is read where it is there, also packed by gzip; without slurm.conf, `scontrol show config`, `show node` and
`show partition` take its place. What a missing file costs, what could not be read and what is not followed are
sentences in `Site.unknown`. The state that nodes have at the end of the period says nothing about its begin, and is not
used.

Files: those of `SITE_FILES`; `slurm.conf`, `topology.conf` and what they include; `sacctmgr_dump.cfg` (sacctmgr dump).
`sshare.psv` belongs to the begin of the period, `sshare_end.psv` to its end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from fnmatch import fnmatch
from pathlib import Path

from ...simulate.errors import ConfigError
from ...simulate.slurm.job_columns import SiteJobs
from ...simulate.slurm.site import Site, SiteAssociation, SiteQos, SiteReservation, SiteRules
from ...simulate.slurm.unfollowed import unfollowed_rules
from ..documents.document_errors import found
from ..documents.files import is_file
from ..slurm_values import dump_moment
from ..text import count, counted
from . import scontrol_text
from .accounting_records import AccountingRecords
from .accounting_table import SiteAccounting
from .association_tree import dumped_parents, site_associations, tree_parents
from .bar_columns import read_bar_columns
from .bar_table import BarTable, Record, bar_table, read_bar_table, read_text
from .begin_usage import usage_from_end, usage_from_runs, usage_from_shares
from .freed_memory import give_back
from .job_request import SiteMachine
from .job_scripts import job_scripts
from .machine_tables import awake_nodes, site_nodes, site_partitions
from .present_jobs import present_jobs, present_node_events
from .recording import missing_files
from .sacctmgr_tables import node_events, site_qos, site_reservations, without_hidden_limits
from .site_file_list import SITE_FILES, TOPOLOGY
from .site_jobs import JobReader
from .site_rules import has_tree, site_rules, site_version, unfollowed_settings, with_measured_passes
from .slurm_conf import ConfLine, SlurmConf, read_slurm_conf
from .topology_conf import site_switches, topology_lines

#: Where the files of a site are: a folder, or their texts by name, of a site as it is now.
SiteSource = Path | Mapping[str, str]
_PRINTED = re.compile(r"Configuration data as of (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)$", re.ASCII | re.MULTILINE)
#: Seconds for which jobs that are held now stay held.
HELD_S = 1e8
#: With more jobs, the memory that their records took is given back to the system.
_MANY_JOBS = 100_000


def read_site(
    source: SiteSource, sacct: Path | None = None, zone: tzinfo = UTC, paths: list[Path] | None = None, *,
    jobs: bool = True, version: tuple[int, int] | None = None,
) -> Site:  # fmt: skip
    """Return the site whose files lie in a folder, or whose texts a running Slurm printed. O(bytes of its files).

    Args:
        source: the folder, see the top of this file; or the texts, where nodes that take no jobs now take none later.
        sacct: the dump of sacct; None: `sacct.psv` of the source, and jobs that only `scontrol_job.txt` has.
        zone: the zone of the times in the dumps.
        paths: the files that are read are appended, if given.
        jobs: read them; False: `jobs` is empty.
        version: of the Slurm whose rules and defaults are followed; None: the site's own.

    Raises:
        ConfigError: there are no nodes or no jobs to read, or a file that is needed cannot be read.
    """
    files = SiteFiles(source)
    if isinstance(source, Path):
        files.reasons = missing_files(source)
        files.unknown += [f"{name}: {why}" for name, why in files.reasons.items() if name not in SITE_FILES]
    conf, own_version = read_configuration(files, version)
    rules = with_measured_passes(site_rules(conf, own_version), files.text("sdiag.txt"))
    switch_lines = _switch_lines(files) if has_tree(conf) and rules.selects != "nodes" else None
    files.unknown += unfollowed_settings(conf, has_switches=switch_lines is not None)
    nodes = site_nodes(conf.lines.get("nodename", []), conf.lines.get("downnodes", []), files.unknown)
    if not nodes:
        raise files.without("nodes", "slurm.conf", "scontrol_node.txt")
    partitions = site_partitions(
        conf.lines.get("partitionname", []), conf.lines.get("nodeset", []), nodes, files.unknown
    )
    if not partitions:
        raise files.without("partitions", "slurm.conf", "scontrol_part.txt")
    nodes = awake_nodes(conf, nodes, partitions)
    associations, by_id = _associations(files, conf, rules)
    events = files.table("events")
    if events is None and isinstance(source, Path):
        files.lack("events.psv")
    reservations = _reservations(files, tuple(nodes), by_id, zone)
    magnetic = frozenset(one.name for one in reservations if "MAGNETIC" in one.flags)
    machine = SiteMachine(rules, nodes, partitions, zone, magnetic)
    site = Site(
        rules=rules,
        nodes=tuple(nodes.values()),
        partitions=partitions,
        switches=site_switches(switch_lines, nodes, files.unknown) if switch_lines else (),
        qos=_qos(files, rules),
        associations=associations,
        reservations=reservations,
        events=node_events(events, nodes, zone)
        if events
        else present_node_events("" if isinstance(source, Path) else files.text("scontrol_node.txt"), nodes),
        jobs=_jobs(files, sacct, machine) if jobs else (),
    )
    if len(site.jobs) > _MANY_JOBS:
        give_back()
    site = replace(site, usage=_usage(files, site, machine))
    if paths is not None:
        paths += dict.fromkeys((*conf.paths, *files.paths))
    return replace(site, unknown=(*files.sentences(), *unfollowed_rules(site)))


def _switch_lines(files: SiteFiles) -> list[ConfLine]:
    """Return the lines of topology.conf, else those that scontrol shows; report a site without switches."""
    path = files.path("topology.conf")
    lines = topology_lines(path) if path else files.lines(TOPOLOGY, "SwitchName")
    if not lines and (path or files.text(TOPOLOGY)):
        name = path.name if path else TOPOLOGY
        files.unknown.append(f"{name}: no switches: nodes are chosen without them, as in Slurm")
    elif not lines:
        files.lack(TOPOLOGY)
    return lines


def read_accounting(path: Path, zone: tzinfo = UTC) -> tuple[SiteJobs, dict[str, int]]:
    """Return the jobs in a dump of sacct alone, and why records are left out -> how many. Raises ConfigError.

    What depends on nodes and partitions is not known: default limits, whole nodes that no option requests.

    Args:
        path: the dump.
        zone: the zone of its times.
    """
    files = SiteFiles({})
    jobs = _jobs(files, path, SiteMachine(SiteRules(), {}, (), zone))
    left_out = Counter[str]()
    for _, counts in files.counts:
        left_out.update(counts)
    return jobs, dict(left_out)


def time_zone(name: str) -> tzinfo:
    """Return the zone with a name such as Europe/Berlin. Raises ConfigError."""
    from zoneinfo import ZoneInfo

    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError("--zone", "", found(name), "a time zone such as UTC or Europe/Berlin") from None


@dataclass(slots=True)
class SiteFiles:
    """The files of a site, those of a folder that were read, and what is not known after that."""

    source: SiteSource
    unknown: list[str] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    tables: dict[str, BarTable] = field(default_factory=dict)
    counts: list[tuple[str, Counter[str]]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)  # name -> why it was not recorded

    @property
    def folder(self) -> Path:
        """Return the folder; of texts, a name for messages."""
        return self.source if isinstance(self.source, Path) else Path("Slurm")

    def path(self, name: str) -> Path | None:
        """Return a file of a folder, perhaps packed by gzip; None if it is not there."""
        if not isinstance(self.source, Path):
            return None
        path = next((path for path in (self.folder / name, self.folder / f"{name}.gz") if is_file(path)), None)
        self.paths += [path] if path else []
        return path

    def text(self, name: str) -> str:
        """Return the text of a file; "" without it."""
        if not isinstance(self.source, Path):
            return self.source.get(name, "")
        path = self.path(name)
        return read_text(path) if path else ""

    def table(self, name: str, required: Sequence[str] = ()) -> BarTable | None:
        """Return the table in `NAME.psv`; None without it."""
        if not isinstance(self.source, Path):
            text = self.text(f"{name}.psv")
            return self.add(name, bar_table(text, f"{name}.psv", required)) if text.strip() else None
        path = self.path(f"{name}.psv")
        return self.add(name, read_bar_table(path, required)) if path else None

    def add(self, name: str, table: BarTable) -> BarTable:
        """Keep a table, to say later what was left out of it."""
        self.tables[name] = table
        self.counts.append((table.source, table.left_out))
        return table

    def texts(self, *patterns: str) -> Iterator[tuple[Path, str]]:
        """Yield the files whose names match one of the patterns, and their texts, by name."""
        if isinstance(self.source, Path):
            for path in sorted(path for pattern in patterns for path in self.folder.glob(pattern)):
                self.paths.append(path)
                yield path, read_text(path)
            return
        for name in sorted(self.source):
            if any(fnmatch(name, pattern) for pattern in patterns):
                yield self.folder / name, self.source[name]

    def lines(self, name: str, first: str) -> list[ConfLine]:
        """Return the records of a file of scontrol as lines of slurm.conf; [] without it."""
        return scontrol_text.conf_lines(self.text(name), str(self.folder / name), first)

    def lack(self, name: str) -> None:
        """Note that a file is not there, and what that costs."""
        reason = f" ({self.reasons[name]})" if name in self.reasons else ""
        self.unknown.append(f"no {name}{reason}: {SITE_FILES[name].cost}")

    def without(self, content: str, *names: str) -> ConfigError:
        """Return the error that none of some files describes what must be known; it names the last that is there."""
        name = next((name for name in reversed(names) if self.path(name) or name in self.source_texts()), None)
        allowed = ", or ".join(names)
        if name is None:
            if isinstance(self.source, Path) and not self.folder.is_dir():
                return ConfigError(str(self.folder), "", "no such folder", f"a folder with {allowed}")
            return ConfigError(str(self.folder), "", f"no file describes {content}", allowed)
        return ConfigError(str(self.folder / name), "line 1", f"no {content} in this file", allowed)

    def source_texts(self) -> Mapping[str, str]:
        """Return the texts that a running Slurm printed; {} for a folder."""
        return {} if isinstance(self.source, Path) else self.source

    def sentences(self) -> tuple[str, ...]:
        """Return what is not known, with what was left out of each table."""
        counts = [f"{source}: left out: {counted(left_out)}" for source, left_out in self.counts if left_out]
        return (*self.unknown, *counts, *([f"left out: {counted(self.left_out)}"] if self.left_out else []))


def read_configuration(
    files: SiteFiles, version: tuple[int, int] | None = None
) -> tuple[SlurmConf, tuple[int, int] | None]:
    """Return the settings and lines of slurm.conf, or of scontrol without it, and the version of Slurm.

    Args:
        files: of the site.
        version: returned in the place of the site's own, if given.
    """
    path = files.path("slurm.conf")
    shown = scontrol_text.configuration(files.text("scontrol_config.txt"), str(files.folder / "scontrol_config.txt"))
    conf = read_slurm_conf(path) if path else shown
    if not conf.settings and not conf.lines:
        raise files.without("settings", "slurm.conf", "scontrol_config.txt")
    nodes = files.lines("scontrol_node.txt", "NodeName")
    if not conf.lines.get("nodename"):
        conf.lines["nodename"] = nodes
    if not conf.lines.get("partitionname"):
        conf.lines["partitionname"] = files.lines("scontrol_part.txt", "PartitionName")
    printed = [shown.text("SLURM_VERSION"), *(line.values.get("version", "") for line in nodes)]
    version = version or next((version for text in printed if (version := site_version(text))), None)
    if version is None:
        files.unknown.append(SITE_FILES["scontrol_config.txt"].cost)
    return conf, version


def _qos(files: SiteFiles, rules: SiteRules) -> tuple[SiteQos, ...]:
    table = files.table("qos", ("name",))
    if table is None:
        if rules.enforces_qos or rules.enforces_limits or rules.priority.qos:
            files.lack("qos.psv")
        return ()
    if rules.enforces_limits and (sentence := without_hidden_limits(table)):
        files.unknown.append(sentence)
    return site_qos(table, files.unknown)


def _associations(
    files: SiteFiles, conf: SlurmConf, rules: SiteRules
) -> tuple[tuple[SiteAssociation, ...], dict[str, SiteAssociation]]:
    table = files.table("assoc", ("account",))
    if table is None:
        if rules.enforces_associations or rules.priority.fair_share:
            files.lack("assoc.psv")
        return (), {}
    shares = files.table("sshare", ("account",)) or files.table("sshare_end", ("account",))
    parents = tree_parents(shares) if shares else {}
    parents |= dumped_parents(files.text("sacctmgr_dump.cfg"))
    return site_associations(table, conf.text("ClusterName"), parents, files.unknown)


def _usage(files: SiteFiles, site: Site, machine: SiteMachine) -> tuple[float, ...]:
    """Return the usage of the associations when the period begins; () is 0."""
    if not site.associations:
        return ()
    if shares := files.tables.get("sshare"):
        return usage_from_shares(shares, site.associations)
    usage, sentence = tuple[float, ...](), ""
    if path := files.path("sacct_before.psv"):
        usage, sentence = usage_from_runs(site, _jobs(SiteFiles({}), path, machine))
    elif (end := files.tables.get("sshare_end")) and site.jobs:
        usage, sentence = usage_from_end(site, end, printed_at(files, machine.zone))
    elif not end:
        files.lack("sshare.psv")
    files.unknown += [sentence] if sentence else []
    return usage


def printed_at(files: SiteFiles, zone: tzinfo) -> float | None:
    """Return when scontrol printed the configuration, epoch seconds; None if it does not say."""
    match = _PRINTED.match(files.text("scontrol_config.txt"))
    return dump_moment(match[1], zone) if match else None


def _reservations(
    files: SiteFiles, nodes: tuple[str, ...], by_id: dict[str, SiteAssociation], zone: tzinfo
) -> tuple[SiteReservation, ...]:
    """Return the reservations of the database, and those that only scontrol shows."""
    table = files.table("reservations")
    records = list(table.records()) if table else []
    listed = {record.text("name", "reservationname") for record in records}
    left_out = table.left_out if table else files.left_out
    for path, text in files.texts("scontrol_res*.txt*", "samples.txt*"):
        for number, words in scontrol_text.records(text, "ReservationName"):
            fields = {key.lower(): "" if text == "(null)" else text for key, text in words.items()}
            if fields["reservationname"] not in listed:
                records.append(Record(str(path), number, fields))
    if table is None and isinstance(files.source, Path):
        files.lack("reservations.psv")
    return site_reservations(records, nodes, by_id, zone, left_out)


def _jobs(files: SiteFiles, sacct: Path | None, machine: SiteMachine) -> SiteJobs:
    """Return the jobs by submission, then id."""
    path = sacct or files.path("sacct.psv")
    files.paths += [sacct] if sacct else []
    table = read_bar_columns(path, ("submit",)) if path else files.table("sacct", ("submit",))
    scripts, present = job_scripts(files.text("scripts.txt")), "" if sacct else files.text("scontrol_job.txt")
    records = AccountingRecords(machine.zone, files.unknown, has_raw_ids=bool(scripts or present))
    if table:
        if not table.has("jobid", "jobidraw"):
            columns = ", ".join(table.columns)
            raise ConfigError(table.source, "line 1", "column jobid is missing", f"among {columns}")
        records.add(table)
        if path:
            files.counts.append((table.source, table.left_out))
    if present:
        source = str(files.folder / "scontrol_job.txt")
        queue = files.add("queue", present_jobs(present, source, records.raw_ids))
        records.add(queue)
        table = table or queue
    if not table:
        raise ConfigError(str(files.folder), "", "no dump of sacct", "sacct.psv, or a file that is named")
    reader = JobReader(machine, SiteAccounting(records), scripts, 0.0 if isinstance(files.source, Path) else HELD_S)
    jobs = reader.jobs()
    table.left_out.update(reader.left_out)
    if reader.unknown_options:
        files.unknown.append(f"options that are not known: {', '.join(sorted(reader.unknown_options)[:20])}")
    files.unknown += [
        f"--{name}: not followed, {count(number, 'job')}" for name, number in sorted(reader.unfollowed.items())
    ]
    if reader.differing:
        files.unknown.append(
            f"{count(reader.differing, 'job')} with other CPUs in the record than in the command, which counts: a"
            " plugin, an administrator or MaxMemPerCPU changed them"
        )
    if reader.hidden and table.has("submitline"):
        files.unknown.append(
            f"{count(reader.hidden, 'job')} submitted as a script: its options are seen only where"
            " sacct shows their effect"
        )
    return jobs
