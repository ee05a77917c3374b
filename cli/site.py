"""Commands about a site: doctor (what works here), cluster (its nodes), probes (what can be measured), reap (pins)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..adapters import registry
from ..adapters.findings import NOTE, OK, PROBLEM, Finding, ServiceState
from ..daemon.paths import default_config_path, state_dir
from ..simulate.errors import ConfigError
from ..trust import make_folder, owner_of
from . import options
from .inputs import config_file, configured_adapter, read_cluster
from .options import flag, option
from .output.documents import print_json
from .service_findings import (
    current_user,
    file_findings,
    group_findings,
    is_known,
    policy_findings,
    root_findings,
    service_state,
    settings_account,
)
from .streams import note, show, show_document
from .usage_errors import adapter_errors, bad

if TYPE_CHECKING:
    from ..adapters.base import Reaped
    from ..daemon.config import DaemonConfig
    from ..simulate.model.cluster import Cluster


def doctor(
    adapter: Annotated[str | None, options.ThisSite] = None,
    config: options.ConfigFile = None,
    user: Annotated[str | None, option("NAME", "Account of the service.", default="yours")] = None,
    trial: Annotated[bool, flag("--try", "Also try your rights, with a job of yours that never starts.")] = False,
    setup: Annotated[bool, flag("--setup", "Only print the commands that set pilotfish up.")] = False,
    undo: Annotated[bool, flag("--undo", "Only print the commands that remove it.")] = False,
    as_json: options.Json = False,
) -> int:
    """Examine a site before and while pilotfish works there; change nothing (but see --try).

    Without options, examine the configuration if there is one, this machine, and Slurm and OAR if their commands are
    here. Each finding says what it means for pilotfish, and how to change it. Exit code 1 if something is a problem.

    \b
    Examples:
      pilotfish doctor
      pilotfish doctor --adapter slurm
      pilotfish doctor --config /etc/pilotfish/pilotfish.yaml --user pilotfish
      pilotfish doctor --setup
    """
    service_account = user or current_user()
    if setup or undo:
        with adapter_errors(config):
            for back in [False] * setup + [True] * undo:
                show_document(registry.setup(adapter, user or "pilotfish", undo=back) + "\n")
        return 0
    if trial and user not in (None, current_user()):
        raise bad("--try", f"it tries the rights of the current user, not of {user}: run it as {user}")
    everything = adapter is None and config is None
    findings = _examine_all(user, trial) if everything else _examine(adapter, config, user, trial)
    missing = f"there is no Unix user {service_account} here"
    if not is_known(service_account) and not any(finding.says.startswith(missing) for finding in findings):
        findings.append(Finding(PROBLEM, "account", f"{missing}, so the service cannot run as it"))
    if as_json:
        print_json("doctor", {"findings": [asdict(finding) for finding in findings]})
    else:
        from .output.text import show_findings

        show_findings(findings)
    return int(any(finding.level == "problem" for finding in findings))


def _examine_all(user: str | None, trial: bool) -> list[Finding]:
    """Examine what is here: the default configuration, this machine, its resource managers."""
    config, findings = default_config_path(), []
    if config is None:
        findings.append(
            Finding(NOTE, "config", "there is no configuration of the service: only commands without it work")
        )
        findings += service_state(None)[1]
    else:
        try:
            examined = _examine(None, config, user, trial)
            findings += [Finding(OK, "config", f"{config} is valid"), *examined]
        except ConfigError as error:
            findings.append(Finding(PROBLEM, "config", str(error)))
    if not any(finding.topic == "cpus" for finding in findings):
        findings += _examine(registry.MACHINE, None, user, False)
    for name in registry.present() if config is None else ():
        site_findings = _examine(name, None, user, trial)
        unreachable = all(finding.topic == "commands" for finding in site_findings)  # its programs without a controller
        findings += [replace(finding, level=NOTE) if unreachable else finding for finding in site_findings]
    return findings


def _examine(adapter: str | None, config: Path | None, user: str | None, trial: bool) -> list[Finding]:
    name, settings, loaded = configured_adapter(adapter, config)
    cluster = read_cluster(Path(loaded.cluster)) if loaded else None
    service, findings = service_state(loaded) if loaded else (ServiceState(), [])
    owner = user or (owner_of(loaded.journal.parent) if loaded else "")
    account, service = owner or current_user(), replace(service, account=owner or settings_account())
    if config and loaded and cluster:
        findings += policy_findings(loaded, config, cluster)
        service = replace(service, config=config.absolute())
        findings += root_findings(loaded, account)
        findings += file_findings(config, loaded, account)
        findings += group_findings(loaded, account)
    folder = loaded.journal.parent if loaded else state_dir()
    with adapter_errors(config):
        settings = registry.options_of_service(
            name, settings, folder=(config or folder).parent, state_dir=folder / name, read_only=True
        )
        examined = registry.examine(name, cluster, account, service, trial=trial, **settings)
    is_this_machine = any(finding.topic == "cpus" for finding in examined)  # its jobs run on this machine
    return [*examined, *findings, *(_counters() if is_this_machine else ())]


def _counters() -> list[Finding]:
    """Return which probes work on this machine."""
    from ..profiles.probes.catalogue import entries

    missing = {entry.name: entry.make().available() for entry in entries()}
    working = [name for name, reason in missing.items() if reason is None]
    lacking = [name for name, reason in missing.items() if reason is not None]
    findings = [Finding(OK if working else NOTE, "probes", f"can measure: {', '.join(working) or 'nothing'}")]
    if lacking:
        findings.append(Finding(NOTE, "probes", f"cannot measure: {', '.join(lacking)}", ("pilotfish probes",)))
    return findings


def cluster(adapter: Annotated[str, options.ThisSite] = registry.MACHINE, as_json: options.Json = False) -> None:
    """Print a cluster file of the nodes of a resource manager; unknown values are assumed and reported.

    This machine has a node for each CPU (cpu0, cpu1, ...), or one with the name of the host if it has one CPU.

    \b
    Examples:
      pilotfish cluster --adapter slurm > cluster.yaml
      pilotfish cluster > here.yaml
    """
    from ..formats.cluster import dump_cluster

    with adapter_errors(None):
        nodes, assumed = registry.discover(adapter)
    document = dump_cluster(_whole_mebibytes(nodes))
    if as_json:
        print_json("cluster", document)
    else:
        import yaml

        show(*(f"# {text}" for text in assumed))
        show_document(yaml.safe_dump(document, sort_keys=False))
    note(*assumed)


def _whole_mebibytes(cluster: Cluster) -> Cluster:
    """Round the memory of nodes down to whole MiB, so that a file for people says `12052MiB`."""
    types = {kind: replace(kind, memory=max(math.floor(kind.memory / 2**20), 1) * 2.0**20) for kind in cluster.types}
    return replace(cluster, nodes=tuple(replace(node, type=types[node.type]) for node in cluster.nodes))


def probes(as_json: options.Json = False) -> None:
    """List the probes: which work, why others do not, what each measures and costs; change nothing.

    The cost is measured now: CPU time of one sample of a small process, and of starting and stopping.

    \b
    Examples:
      pilotfish probes
      pilotfish probes --json
    """
    from ..profiles.probes.catalogue import entries, examine

    states = [examine(entry) for entry in entries()]
    if as_json:
        print_json("probes", {"probes": [asdict(state) for state in states]})
        return
    from .output.profiles import show_probes

    show_probes(states)


def reap(
    config: options.ConfigFile = None,
    older_than: Annotated[float, option("SECONDS", "Clear pins that are at least this old.", min=0)] = 30.0,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> int:
    """Clear pins whose jobs have not started, so that no job waits for a daemon that has stopped.

    It needs no daemon and no journal; run it from a timer (systemd/pilotfish-reap.timer). Where the configuration says
    `mode: shadow`, it still clears pins, because only a live daemon can have left them, but it ends no hold. If the
    configuration is invalid, it uses the part that it can read, and exits with 1.

    \b
    Examples:
      pilotfish reap --config /etc/pilotfish/pilotfish.yaml
      pilotfish reap --config pilotfish.yaml --older-than 10 --dry-run
    """
    from ..daemon.config import load_reaper_config

    path = config_file(config)
    configuration, invalid = load_reaper_config(path)
    if invalid:
        note(f"error: {invalid}", f"{path}: only what it says of adapter, state_dir and mode is used")
    lines: list[str] = []
    say = lines.append if as_json else show
    failed = int(bool(invalid))
    with adapter_errors(path):
        for name in _reaped_adapters(configuration, path, invalid):
            folder = None if dry_run else configuration.state / name
            failed += _reap(name, configuration, path, older_than, partial(_show_reaped, say, folder), dry=dry_run)
    if as_json:
        print_json("reaped", {"dry_run": dry_run, "failed": failed, "actions": lines})
    return int(failed > 0)


def _reaped_adapters(config: DaemonConfig, path: Path, invalid: str) -> list[str]:
    """Return the adapter's name, or, if an invalid file names none, those that have a reaper and a state."""
    name, adapters = config.adapter.name, registry.names()
    reapable = [
        candidate for candidate in adapters if (config.state / candidate).is_dir() and registry.has_reaper(candidate)
    ]
    if not reapable or registry.has_reaper(name) or (name in adapters and not invalid):
        return [name]
    note(f"{path}: the adapter is taken from {config.state}: {', '.join(reapable)}")
    return reapable


def _show_reaped(say: Callable[[str], None], folder: Path | None, reaped: Reaped) -> None:
    """Show a release, and write it down in a folder for `pilotfish log`, if it can be written."""
    from ..daemon.state.reap_log import note_reaped

    say(reaped.line)
    if folder is not None:
        try:
            make_folder(folder)
            note_reaped(folder, reaped, time.time())
        except OSError as error:
            note(f"{folder}: the release is not in `pilotfish log`: {error.strerror}")


def _reap(
    name: str, config: DaemonConfig, path: Path, older_s: float, say: Callable[[Reaped], None], *, dry: bool
) -> int:
    """Release what is overdue, without options that are invalid; return how much failed. Raises AdapterError."""
    from ..daemon.config import naming_config

    settings, failed = dict(config.adapter.options) if name == config.adapter.name else {}, 0
    while True:
        try:
            with naming_config(path):
                state = config.state / name
                return failed + registry.reap(
                    name, older_s, say, dry=dry, holds=config.run_mode.acts, state_dir=state, **settings
                )
        except ConfigError as error:
            if settings.pop(error.key.removeprefix("adapter.options."), None) is None:
                raise
            note(f"error: {error}", f"{path}: {error.key} is not used")
            failed += 1
