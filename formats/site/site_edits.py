"""Edits of a site's configuration: settings of slurm.conf, keys of its partitions, and columns of its QOS.

Rule: an edit changes the text of one value before the text is read, so it means what it means to Slurm. A key that no
reader looks up would change nothing, and is refused with the keys that are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...simulate.errors import ConfigError, did_you_mean
from ...simulate.slurm.site import Site, SitePartition, SiteQos
from ...simulate.slurm.unfollowed import unfollowed_rules
from .machine_tables import site_nodes, site_partitions
from .sacctmgr_tables import site_qos
from .scheduler_parameters import PARAMETERS, unfollowed_parameters
from .site_folder import SiteFiles, SiteSource, read_configuration
from .site_rules import site_rules
from .slurm_conf import ConfLine, SlurmConf

_QOS_VALUE = "a value as sacctmgr shows it, such as 10, cpu=32, or 1-00:00:00"
_PARAMETERS = "SchedulerParameters"


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit: `option`, such as --set, for errors; `of`: the partition or QOS, "" for slurm.conf."""

    option: str
    of: str
    key: str
    value: str

    def error(self, problem: str, allowed: str) -> ConfigError:
        """Return an error about this edit."""
        return ConfigError(self.option, "", problem, allowed)


class _LookedUp(dict[str, str]):
    """Values by key in lower case; remembers which keys were looked up."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.names.add(key)
        return super().get(key, default)

    def check(self, edits: Sequence[Edit]) -> None:
        """Raise ConfigError if a key of the edits was not looked up."""
        for edit in edits:
            if edit.key.lower() not in self.names:
                _refuse(edit, self.names)


def _refuse(edit: Edit, names: set[str]) -> None:
    keys = sorted(names, key=str.lower)
    raise edit.error(f"a replay does not follow {edit.key!r}{did_you_mean(edit.key, keys)}", ", ".join(keys))


def edited_site(
    site: Site, source: SiteSource, settings: Sequence[Edit], partitions: Sequence[Edit], qos: Sequence[Edit]
) -> Site:
    """Return a site with edits of its configuration. O(bytes of the configuration).

    Args:
        site: as it was read.
        source: its files.
        settings: of slurm.conf.
        partitions: of partitions, by the keys of slurm.conf.
        qos: of QOS, by the names of the columns of `sacctmgr show qos`.

    Raises:
        ConfigError: a key is not followed, a value cannot be read, or there is no such partition or QOS.
    """
    files = SiteFiles(source)
    conf, _ = read_configuration(files)
    for edit in settings:
        _set(conf, edit)
    conf.names.clear()
    try:
        measured = {name: getattr(site.rules, name) for name in ("pass_s", "test_s", "record_s")}
        rules = replace(site_rules(conf, site.rules.version), **measured)
    except ConfigError as error:
        if not settings or error.source != settings[0].option:
            raise
        raise settings[0].error(f"{error.key.rpartition(' ')[2]}: {error.problem}", error.allowed) from None
    for edit in settings:
        if edit.key.lower() not in {name.lower() for name in conf.names}:
            _refuse(edit, conf.names)
    _check_preemption(conf, settings)
    site = replace(site, rules=rules)
    if partitions:
        site = replace(site, partitions=_partitions(conf, partitions))
    if qos:
        site = replace(site, qos=_qos(files, site.qos, qos))
    return replace(site, unknown=tuple(dict.fromkeys((*site.unknown, *unfollowed_rules(site)))))


def _set(conf: SlurmConf, edit: Edit) -> None:
    """Set a setting; words of SchedulerParameters are added to those that are there, `-WORD` takes one away."""
    value = edit.value
    if edit.key.lower() == _PARAMETERS.lower():
        words = [word for word in conf.text(_PARAMETERS).split(",") if word]
        for word in filter(None, edit.value.split(",")):
            name = word.removeprefix("-").partition("=")[0].strip().lower()
            if [*unfollowed_parameters(name)]:
                raise edit.error(
                    f"a replay does not follow {name!r}{did_you_mean(name, PARAMETERS)}", ", ".join(PARAMETERS)
                )
            words = [old for old in words if old.partition("=")[0].strip().lower() != name]
            words += [] if word.startswith("-") else [word]
        value = ",".join(words)
    conf.settings[edit.key.lower()] = ConfLine({edit.key.lower(): value}, edit.option, 0)


def _check_preemption(conf: SlurmConf, settings: Sequence[Edit]) -> None:
    """Refuse a change of preemption with which slurmctld does not start, because its partitions would still preempt.

    Source: slurmctld 22.05.8, started with each pair of values.
    """
    edit = next((edit for edit in settings if edit.key.lower() in ("preempttype", "preemptmode")), None)
    plugin = conf.text("PreemptType").lower() or "preempt/none"
    modes = {word.strip().upper() for word in conf.text("PreemptMode").split(",")} - {"", "OFF", "GANG"}
    if edit and (plugin == "preempt/none") == bool(modes):
        shown = f"PreemptType={plugin} and PreemptMode={conf.text('PreemptMode').upper() or 'OFF'}"
        raise edit.error(f"Slurm does not start with {shown}", "preempt/none with OFF, or another type with a mode")


def _partitions(conf: SlurmConf, edits: Sequence[Edit]) -> tuple[SitePartition, ...]:
    nodes = site_nodes(conf.lines.get("nodename", []), conf.lines.get("downnodes", []), [])
    lines = {line.values["partitionname"]: line for line in conf.lines.get("partitionname", [])}
    values = {name: _LookedUp(line.values) for name, line in lines.items()}
    for edit in edits:
        _values_of(edit, values, "partition")[edit.key.lower()] = edit.value
    changed = [ConfLine(values[name], line.source, line.line) for name, line in lines.items()]
    try:
        partitions = site_partitions(changed, conf.lines.get("nodeset", []), nodes, [])
    except ConfigError as error:
        raise edits[0].error(error.problem, error.allowed) from None
    for edit in edits:
        values[edit.of].check([edit])
    return partitions


def _qos(files: SiteFiles, before: Sequence[SiteQos], edits: Sequence[Edit]) -> tuple[SiteQos, ...]:
    table = files.table("qos", ("name",))
    rows = [] if table is None else [(line, _LookedUp(fields)) for line, fields in table.rows]
    values = {fields["name"].strip(): fields for _, fields in rows}
    for edit in edits:
        _values_of(edit, values, "QOS")[edit.key.lower()] = edit.value
    assert table is not None
    table.rows[:] = rows
    after = site_qos(table, [])
    for edit in edits:
        values[edit.of].check([edit])
        if edit.of not in {one.name for one in after}:
            raise edit.error(f"{edit.key}={edit.value} cannot be read", _QOS_VALUE)
    return after


def _values_of(edit: Edit, values: Mapping[str, _LookedUp], kind: str) -> _LookedUp:
    if edit.of not in values:
        raise edit.error(f"{edit.of!r} is not a {kind}{did_you_mean(edit.of, values)}", ", ".join(values) or "none")
    return values[edit.of]
