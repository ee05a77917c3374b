"""Inputs of commands: cluster files, machines, the profile store, workflows, names of profiles, lists of CPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..daemon.paths import default_config_path, profile_store_path
from ..formats.documents.atomic_write import check_file
from ..formats.documents.open_input import file_digest
from ..formats.text import count, counted, shell_words
from ..machine_share import affinity, usable_cpus
from ..simulate.errors import ConfigError
from ..simulate.model.cluster import Cluster
from ..simulate.model.job import DEFAULT_PROFILE, Job, Profile, Workflow
from .streams import note, warn
from .usage_errors import bad, value_of

if TYPE_CHECKING:
    from ..daemon.config import DaemonConfig
    from ..daemon.state.queue import Submission
    from ..profiles.classes import Classification
    from ..profiles.store import ProfileStore
    from ..simulate.model.snapshot import Snapshot
    from ..simulate.model.workload import Workload


def read_cluster(path: Path) -> Cluster:
    """Read a cluster file; warn of implausible quantities. Raises ConfigError."""
    from ..formats.cluster import read_cluster
    from ..formats.documents.plausible import cluster_doubts

    cluster = read_cluster(path)
    warn(*cluster_doubts(cluster))
    return cluster


def classifier(cluster: Path | None) -> Callable[[Profile], Classification]:
    """Return a function that classifies profiles: on a cluster file's nodes, else on those where each was measured."""
    from ..profiles.classes import classify_on, classify_there

    return classify_there if cluster is None else partial(classify_on, cluster=read_cluster(cluster))


def read_machine(path: Path | None) -> Cluster | None:
    """Read a machine of a replay, if given: a cluster file, or a platform (SimGrid, IRMaSim). Raises ConfigError."""
    if path is None:
        return None
    from ..formats.documents.plausible import cluster_doubts
    from ..formats.replays.machines import read_machine

    machine = read_machine(path)
    warn(*cluster_doubts(machine))
    return machine


def config_file(given: Path | None) -> Path:
    """Return the service's configuration: the file given, else the user's or the site's. Raises typer.BadParameter."""
    config_path = given or default_config_path()
    if config_path is None:
        raise bad("--config", "missing: neither ~/.config/pilotfish nor /etc/pilotfish has a pilotfish.yaml")
    return config_path


def configured_adapter(adapter: str | None, config: Path | None) -> tuple[str, dict[str, Any], DaemonConfig | None]:
    """Return the name of an adapter, its options, and the configuration of the service, if given.

    Args:
        adapter: its name on the command line; None = that of `config`.
        config: file of the configuration; None = none, which needs `adapter`.

    Raises:
        ConfigError: the configuration is wrong, or names another adapter.
    """
    if config is None:
        return str(adapter), {}, None
    from ..daemon.config import load_config

    configuration = load_config(config)
    if adapter not in (None, configuration.adapter.name):
        raise ConfigError(
            str(config), "adapter.name", f"found {configuration.adapter.name!r}, and --adapter {adapter}", "one"
        )
    return configuration.adapter.name, dict(configuration.adapter.options), configuration


def check_output(path: Path, endings: Sequence[str], more: str = "") -> None:
    """Check the value of --out before anything is computed; `more` says what is allowed besides the endings.

    Raises:
        typer.BadParameter: the name has another ending.
        ConfigError: the file cannot be written.
    """
    if not path.name.endswith(tuple(endings)):
        raise bad("--out", f"{path.name!r} has no known ending (allowed: {', '.join(endings)}{more})")
    check_file(path)


def check_files(*paths: Path | None) -> None:
    """Check that files exist, before anything is compiled. Raises OSError for the first that cannot be reached."""
    for path in paths:
        if path is not None and str(path) == "-" and not path.exists():
            raise ConfigError("-", "", "there is no such file", "/dev/stdin, if the standard input was meant")
        if path is not None:
            path.stat()


def file_hash(path: Path) -> str:
    """Return the SHA-256 hash of a file's content. Raises ConfigError, OSError."""
    return f"sha256:{file_digest(path)}"


@dataclass
class Profiles:
    """The profile store, opened on first use.

    Args:
        path: the file of the store; None = the user's own, which counts as empty if it cannot be read (one line on
            stderr).
    """

    path: Path | None
    _unprofiled: set[str] = field(default_factory=set)
    _missing: set[str] = field(default_factory=set)

    @cached_property
    def store(self) -> ProfileStore:
        """The store itself."""
        from ..profiles.store import ProfileStore

        if self.path is not None:
            return ProfileStore(self.path)
        try:
            store_path = profile_store_path()
        except ConfigError as error:
            note(f"profiles are not kept: {error}")
            store_path = Path(os.devnull) / "profiles.sqlite"
        return ProfileStore(store_path, skip=note)

    def __call__(self, name: str) -> Profile | None:
        """Return the profile of that name."""
        profile = self.store.get(name)
        if profile is None:
            self._missing.add(name)
        return profile

    def names(self) -> list[str]:
        """Return the names in the store, for suggestions."""
        return self.store.names()

    def read_workflow(self, path: Path, site: Cluster | None = None) -> Workflow:
        """Read a workflow; take the profiles of jobs without one from past runs.

        Args:
            path: its file.
            site: the cluster; a learned profile counts only if the job fits there with it. None = not known.

        Raises:
            PilotfishError: it cannot be read.
        """
        from ..formats.workflows.workflow import read_workflow

        refuse_trace(path)
        try:
            workflow = read_workflow(path, self)
        except ConfigError:
            _refuse_unmeasured_demo(path, self._missing)
            raise
        return self.with_learned(workflow, site)

    def with_learned(self, workflow: Workflow, site: Cluster | None = None) -> Workflow:
        """Return the workflow with profiles of past runs for the jobs without one.

        Args:
            workflow: as it was read.
            site: the cluster; a learned profile counts only if the job fits there with it. None = not known.
        """
        self._unprofiled = {job.id for job in workflow.jobs if job.profile.provenance.source == "default"}
        if not self._unprofiled:
            return workflow
        from ..daemon.learning.job_profiles import fitting, with_learned_profiles
        from ..simulate.model.capacity import EmptyNodes

        expected, nodes = self.store.expected, EmptyNodes(site) if site is not None else None
        return with_learned_profiles(with_input_sizes(workflow), lambda job: fitting(job, expected(job), nodes))

    def scored(self, site: Cluster, workflow: Workflow) -> Cluster:
        """Return the nodes with the slowdowns that the scores of `profile corun` imply; report how many pairs."""
        from ..profiles.interference.scores import added

        scored_site = self.store.scored(site, {job.profile.name for job in workflow.jobs})
        if pairs := added(site, scored_site):
            note(f"{count(pairs, 'pair')} of programs slow each other by their relative scores (profile corun)")
        return scored_site

    def learn(self, submission: Submission, snapshot: Snapshot) -> None:
        """Record what jobs without a profile used; warn if the store cannot be written."""
        keys = {entry.key for entry in submission.entries.values() if entry.job.id in self._unprofiled}
        views = [view for view in snapshot.jobs if view.key in keys]
        if not views:
            return
        from ..daemon.learning.job_profiles import job_measurements
        from ..profiles.measure.observer import cpu_model

        try:
            self.store.record_jobs(job_measurements(views, cpu_model()))
        except ConfigError as error:
            warn(f"the resource use of the jobs is not recorded: {error}")


def with_input_sizes(workflow: Workflow) -> Workflow:
    """Return the workflow with the sizes of the files that commands without a profile name, if they are there."""
    jobs = (
        replace(job, inputs=input_sizes(job.command, job.directory))
        if job.command and job.profile.provenance.source == "default"
        else job
        for job in workflow.jobs
    )
    return replace(workflow, jobs=tuple(jobs))


def input_sizes(
    command: Sequence[str], directory: str | None = None, since: float = 0.0
) -> tuple[tuple[str, float], ...]:  # fmt: skip
    """Return the bytes of the files that a command names, see `Job.inputs`.

    Args:
        command: argv.
        directory: in which it runs; None: the current one.
        since: leave out the files that were last written before, epoch seconds.
    """
    from ..adapters.local.job_files import file_sizes
    from ..formats.command_words import named_files

    return tuple(file_sizes(named_files(command).items(), directory or "", since).items())


def _refuse_unmeasured_demo(path: Path, missing: set[str]) -> None:
    from ..profiles.demo_folder import PROGRAMS, in_demo

    if (absent := len(missing & PROGRAMS.keys())) and in_demo(path):
        script = shell_words([str(path.parent / "measure.sh")])
        problem = (
            f"{absent} of the demo's {count(len(PROGRAMS), 'profile')} are not measured yet: first run `sh {script}`"
        )
        raise ConfigError(str(path), "", problem) from None


def note_left_out(name: str, jobs: Workload) -> None:
    """Say how many jobs of a file a command leaves out, and why."""
    if jobs.left_out:
        note(f"{name}: {count(len(jobs), 'job')}; left out: {counted(jobs.left_out)}")


def refuse_trace(path: Path) -> None:
    """Refuse a trace of rigid jobs where a workflow is expected. Raises ConfigError."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".swf") and path.exists():
        kind = "SWF"
    elif name.endswith(".json") and path.is_file():
        from ..formats.documents.files import read_bytes
        from ..formats.documents.unpack import unpacked
        from ..formats.replays.workloads import json_kind

        kind = json_kind(unpacked(read_bytes(path), str(path)), str(path))
    else:
        return
    if kind in ("SWF", "Batsim", "IRMaSim"):
        allowed = f"a workflow; `pilotfish simulate {path}` replays a trace"
        raise ConfigError(str(path), "", f"this is a trace of jobs ({kind})", allowed)


def allowed_cpus(written: str | None) -> tuple[int, ...] | None:
    """Return the CPUs of a list such as 0,2-3; None for None. Raises typer.BadParameter."""
    if written is None:
        return None
    from ..formats.hostlist import parse_cpus

    with value_of("--cpus"):
        cpus = parse_cpus(written)
    usable = affinity()
    if not set(cpus) <= set(usable):
        raise bad("--cpus", f"{written} (allowed: {','.join(map(str, usable))})")
    return cpus


def checked_name(name: str, option: str = "--name") -> str:
    """Return the name of a profile or a node type that `option` gave. Raises typer.BadParameter."""
    from ..profiles.store import check_name

    with value_of(option):
        check_name(name)
    return name


def profile_name(command: list[str], name: str | None) -> str:
    """Return the name given, or else the one by which a job with this command finds its profile."""
    if name is not None:
        return checked_name(name)
    from ..profiles.identity import signature

    command_name = signature(Job("job", DEFAULT_PROFILE, command=tuple(command)))
    assert command_name is not None
    return command_name


def this_machine(workflow: Workflow) -> Cluster:
    """Return this machine with a node for each CPU, or nodes as large as the widest job; print what is assumed."""
    from ..adapters.local.host import machine_cluster

    widest = max((job.profile.threads for job in workflow.jobs), default=1)
    cluster, assumed = machine_cluster(cpus_per_node=max(1, min(widest, len(usable_cpus()))))
    note(*assumed)
    return cluster


def working_directory() -> Path:
    """Return the directory of commands that name none. Raises ConfigError: it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError("working directory", "", "it was removed", "a directory that exists") from None
