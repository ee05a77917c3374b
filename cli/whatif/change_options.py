"""Options of `whatif` that change a site.

Rule: an option is read into a function from the site to the changed site; what it means is decided in `simulate` and
`formats`. An error names the option and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, time, timedelta, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, get_args, get_type_hints

from ...formats.documents.document_errors import from_source
from ...simulate.errors import ConfigError
from ..options import option
from ..usage_errors import bad, bad_value

if TYPE_CHECKING:
    from ...formats.site.site_edits import Edit
    from ...formats.site.site_folder import SiteSource
    from ...simulate.queue_policies.policy_facts import PolicySpec
    from ...simulate.slurm.site import Site
    from ...simulate.slurm.twin import SiteReplay

_MOST_NODES = 100_000
_LEAST_LOAD, _MOST_LOAD = 0.01, 100.0
_TIME_OF_DAY = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d", re.ASCII)
_NAMED = re.compile(r"([^.=]+)\.([^=]+)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Differences from the recorded site."""

    HEADING: ClassVar = "Changes"
    settings: Annotated[
        list[str] | None,
        option("KEY=VALUE", "Setting of slurm.conf; SchedulerParameters=WORD adds a word, -WORD removes it.", "--set"),
    ] = None
    qos: Annotated[
        list[str] | None, option("QOS.KEY=VALUE", "Column of a QOS, as in `sacctmgr show qos`.", "--set-qos")
    ] = None
    partitions: Annotated[
        list[str] | None, option("PART.KEY=VALUE", "Key of a partition, as in slurm.conf.", "--set-partition")
    ] = None
    slurm_version: Annotated[
        str | None,
        option("VERSION", "Follow the rules and defaults of another Slurm, such as 25.11.", "--slurm-version"),
    ] = None
    drain: Annotated[
        list[str] | None,
        option("NODES@FROM..TO", "Nodes take no new jobs; times as 2026-03-02T18:00, 18:00, or seconds.", "--drain"),
    ] = None
    add_nodes: Annotated[
        str | None,
        option("N[:NODE]", "N more nodes like NODE, or the last, in its partitions.", "--add-nodes"),
    ] = None
    move_jobs: Annotated[
        list[str] | None,
        option("QOS:OTHER:SHARE", "Submit a share of the jobs of a QOS to another, such as a:b:0.05.", "--move-jobs"),
    ] = None
    hold_jobs: Annotated[
        list[str] | None,
        option("QOS@HH:MM", "Hold the jobs of a QOS until the next such time of the day.", "--hold-jobs"),
    ] = None
    scale_load: Annotated[
        float | None, option("X", "Submit the jobs X times as fast, such as 1.2.", "--scale-load")
    ] = None
    policy: Annotated[
        str | None,
        option("POLICY", "Policy in the place of Slurm's rules, such as easy:order=sjf.", "--policy", "-p"),
    ] = None

    def __post_init__(self) -> None:
        if self.scale_load is not None and not _LEAST_LOAD <= self.scale_load <= _MOST_LOAD:
            raise bad("--scale-load", f"{self.scale_load:g} (allowed: {_LEAST_LOAD:g} to {_MOST_LOAD:g})")
        if self.slurm_version is not None:
            _version(self.slurm_version)
        self._edits()
        _ = self._policy

    @classmethod
    def of(cls, texts: Mapping[str, Sequence[str]]) -> Self:
        """Return the changes of some options.

        Args:
            texts: name of an option, such as --set, -> its values, one or more.

        Raises:
            typer.BadParameter: a value is not allowed, or two are given for an option that takes one.
        """
        values = dict[str, Any]()
        for name, parts in texts.items():
            key, is_list = CHANGES[name]
            if len(parts) > 1 and not is_list:
                raise bad(name, "stands twice")
            values[key] = list(parts) if is_list else parts[0]
        if (load := values.get("scale_load")) is not None:
            try:
                values["scale_load"] = float(load)
            except ValueError:
                raise bad("--scale-load", f"{load!r} (allowed: a number, such as 1.2)") from None
        return cls(**values)

    def described(self) -> list[str]:
        """Return the changes as they were given; [] without any."""
        lines = list[str]()
        for name, (key, _) in CHANGES.items():
            value = getattr(self, key)
            parts = value if isinstance(value, list) else [] if value is None else [value]
            lines += [f"{name} {part:g}" if isinstance(part, float) else f"{name} {part}" for part in parts]
        return lines

    def changed(self, site: Site, source: SiteSource, zone: tzinfo, begin: float | None = None) -> Site:
        """Return the changed site.

        Args:
            site: as it was read.
            source: its files.
            zone: of the times of --drain.
            begin: from when seconds of --drain count, epoch seconds; None: the first submission.

        Raises:
            typer.BadParameter: a change is not possible.
        """
        from ...formats.site.site_edits import edited_site
        from ...simulate.replay.site_replay import seen_by_policy
        from ...simulate.slurm.site_changes import first_submission, with_load, with_more_nodes

        settings, partitions, qos = self._edits()
        if self.slurm_version is not None:
            site = replace(site, rules=replace(site.rules, version=_version(self.slurm_version)))
        if settings or partitions or qos or self.slurm_version is not None:
            try:
                site = edited_site(site, source, settings, partitions, qos)
            except ConfigError as error:
                raise bad_value(error.source, error) if error.source.startswith("--") else error from None
        first = first_submission(site) if begin is None else begin
        for text in self.drain or ():
            site = _of_option("--drain", partial(_drained, site, text, zone, first))
        if self.add_nodes:
            site = _of_option("--add-nodes", partial(with_more_nodes, site, *_added(self.add_nodes)))
        for text in self.move_jobs or ():
            site = _of_option("--move-jobs", partial(_with_moved, site, text))
        for text in self.hold_jobs or ():
            site = _of_option("--hold-jobs", partial(_with_held, site, text, zone))
        if self.scale_load is not None:
            site = with_load(site, self.scale_load)
        return site if self.policy is None else seen_by_policy(site)

    def replay(self, site: Site, seed: int) -> SiteReplay:
        """Replay a changed site under Slurm's rules, or under the policy in their place.

        Args:
            site: of `changed`.
            seed: of the phases of Slurm's clocks, or of the policy's random choices.
        """
        from ...simulate.replay.site_replay import replay_site_under
        from ...simulate.slurm.twin import replay_site

        policy = self._policy
        return replay_site(site, seed) if policy is None else replay_site_under(site, policy, seed)

    @property
    def _policy(self) -> PolicySpec | None:
        """Return the policy in the place of Slurm's rules, if there is one. Raises typer.BadParameter."""
        from ...simulate.queue_policies.policy_specs import parse
        from ...simulate.replay.site_replay import refuse_policy

        if self.policy is None:
            return None
        try:
            policy = parse(self.policy)
            refuse_policy(policy)
        except ConfigError as error:
            raise bad_value("--policy", error) from None
        return policy

    def _edits(self) -> tuple[list[Edit], list[Edit], list[Edit]]:
        from ...formats.site.site_edits import Edit

        settings = list[Edit]()
        for text in self.settings or ():
            key, equals, value = text.partition("=")
            if not key.strip() or not equals:
                raise bad("--set", f"{text!r} (allowed: KEY=VALUE, such as PriorityWeightAge=2000)")
            settings.append(Edit("--set", "", key.strip(), value.strip()))
        return (
            settings,
            list(_named("--set-partition", self.partitions or (), "batch.MaxTime=120")),
            list(_named("--set-qos", self.qos or (), "high.Priority=1000")),
        )


def _names() -> Iterator[tuple[str, tuple[str, bool]]]:
    hints = get_type_hints(ChangeOptions, include_extras=True)
    for part in fields(ChangeOptions):
        kind, declared = get_args(hints[part.name])
        yield declared.default, (part.name, "list" in str(kind))  # where typer keeps the first name


#: Option -> field of ChangeOptions, and whether it may be repeated.
CHANGES = dict(_names())


def _named(name: str, texts: Iterable[str], example: str) -> Iterable[Edit]:
    from ...formats.site.site_edits import Edit

    for text in texts:
        match = _NAMED.fullmatch(text)
        if match is None:
            raise bad(name, f"{text!r} (allowed: NAME.KEY=VALUE, such as {example})")
        yield Edit(name, *(part.strip() for part in match.groups()))


def _version(text: str) -> tuple[int, int]:
    from ...formats.site.site_rules import chosen_version

    try:
        return chosen_version(text)
    except ConfigError as error:
        raise bad_value("--slurm-version", error) from None


def _of_option(name: str, change: partial[Site]) -> Site:
    try:
        return change()
    except ConfigError as error:
        raise bad_value(name, error) from None


def _drained(site: Site, text: str, zone: tzinfo, first: float) -> Site:
    """Return the site with drained nodes, `n[1-4]@2026-03-02T18:00..2026-03-03T06:00`."""
    from ...formats.hostlist import expand
    from ...simulate.slurm.site_changes import with_drained_nodes

    nodes, at, times = text.rpartition("@")
    begin, dots, end = times.partition("..")
    if not at or not dots:
        raise ConfigError("", "", f"{text!r}", "NODES@FROM..TO, such as n[1-4]@2026-03-02T18:00..2026-03-03T06:00")
    start = _time(begin, first, zone) if begin else first
    until = _time(end, first, zone) if end else None
    if until is not None and until <= start:
        raise ConfigError("", "", f"{text!r} ends before it begins", "FROM before TO")
    return with_drained_nodes(site, from_source("--drain", expand, nodes), start, until)


def _with_moved(site: Site, text: str) -> Site:
    """Return the site with jobs in another QOS, `standard:high:0.05`."""
    from ...simulate.slurm.site_changes import with_moved_jobs

    qos, _, rest = text.partition(":")
    other, _, number = rest.partition(":")
    try:
        share = float(number)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise ConfigError("", "", f"{text!r}", "QOS:OTHER:SHARE, the share above 0 and up to 1")
    return with_moved_jobs(site, qos, other, share)


def _with_held(site: Site, text: str, zone: tzinfo) -> Site:
    """Return the site with jobs that are held until a time of the day, `large@08:00`."""
    from ...simulate.slurm.site_changes import with_held_jobs

    qos, _, hour = text.rpartition("@")
    try:
        release_time = time.fromisoformat(hour)
    except ValueError:
        raise ConfigError("", "", f"{text!r}", "QOS@HH:MM, such as large@08:00") from None
    return with_held_jobs(site, qos, partial(next_time_of_day, release_time, zone))


def next_time_of_day(hour: time, zone: tzinfo, after: float) -> float:
    """Return the next such time of the day in a zone that is not before a time, both seconds since the epoch."""
    moment = datetime.fromtimestamp(after, zone)
    begin = datetime.combine(moment.date(), hour, zone)
    if begin < moment:
        begin = datetime.combine(moment.date() + timedelta(days=1), hour, zone)
    return begin.timestamp()


def _time(text: str, first: float, zone: tzinfo) -> float:
    """Return the time of a date, the first such time of day, or so many seconds after `first`, as epoch seconds."""
    from ...formats.slurm_values import moment

    if _TIME_OF_DAY.fullmatch(text):
        day = datetime.fromtimestamp(first, zone).date()
        moments = (moment(f"{day + timedelta(days)}T{text.zfill(5)}:00", zone) or 0.0 for days in range(3))
        return next(seconds for seconds in moments if seconds >= first)
    try:
        number = float(text)
    except ValueError:
        try:
            seconds = moment(text if text.count(":") != 1 else f"{text}:00", zone)
        except ValueError:
            seconds = None
    else:
        seconds = first + number if math.isfinite(number) else None
    if seconds is None:
        raise ConfigError("", "", f"{text!r} is not a time", "2026-03-02T18:00, 18:00, or seconds of the period")
    return seconds


def _added(text: str) -> tuple[int, str]:
    number, _, like = text.partition(":")
    if not number.isascii() or not number.isdigit() or not 1 <= int(number[:9]) <= _MOST_NODES:
        raise bad("--add-nodes", f"{text!r} (allowed: 1 to {_MOST_NODES:,} nodes, such as 4 or 4:n01)")
    return int(number), like
