"""The unit, the user, the directories and the sample configuration that are installed with the service."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

import pilotfish
from pilotfish.adapters.local import create
from pilotfish.daemon.failed_starts import RESTART_S, START_S

FOLDER = Path(pilotfish.__file__).resolve().parent / "systemd"


def test_the_sample_names_every_key_and_no_other(tmp_path):
    from pilotfish.daemon.config import DaemonConfig, load_config

    text = (FOLDER / "pilotfish.yaml").read_text()
    whole = re.sub(
        r"^(\s*)# ((?:state_dir|output_dir|profiles|path|group|admin_group|folder):)", r"\1\2", text, flags=re.M
    )
    document = yaml.safe_load(whole)

    def keys(model: type[BaseModel]) -> dict:
        inner = {name: field.annotation for name, field in model.model_fields.items()}
        return {
            name: keys(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else None
            for name, kind in inner.items()
        }

    def shape(value: dict, like: dict) -> dict:
        return {name: shape(part, like.get(name) or {}) if like.get(name) else None for name, part in value.items()}

    del document["schema"]
    assert shape(document, keys(DaemonConfig)) == keys(DaemonConfig)
    (tmp_path / "pilotfish.yaml").write_text(text)
    sample, defaults = load_config(tmp_path / "pilotfish.yaml"), DaemonConfig(cluster="x")
    for name in DaemonConfig.model_fields.keys() - {"cluster", "adapter"}:
        assert getattr(sample, name) == getattr(defaults, name), name
    takes = {name: each.default for name, each in inspect.signature(create).parameters.items() if name != "cluster"}
    assert document["adapter"]["options"].keys() == takes.keys()
    assert all(takes[name] == value for name, value in sample.adapter.options.items())


def test_the_sample_beside_slurm_names_every_option(tmp_path):
    from pilotfish.adapters.slurm import create as create_slurm
    from pilotfish.daemon.config import load_config

    text = (FOLDER / "pilotfish.slurm.yaml").read_text()
    (tmp_path / "pilotfish.yaml").write_text(text)
    assert load_config(tmp_path / "pilotfish.yaml").mode == "shadow"
    whole = re.sub(r"^(\s*)# ((?:output_dir|wide_nodes):)", r"\1\2", text, flags=re.M)
    options = yaml.safe_load(whole)["adapter"]["options"]
    takes = {name: each.default for name, each in inspect.signature(create_slurm).parameters.items()}
    assert options.keys() == takes.keys() - {"cluster"}
    given = dict(load_config(tmp_path / "pilotfish.yaml").adapter.options)
    assert given.pop("unheld_prefix") == "/run/pilotfish/unheld"  # in the unit's RuntimeDirectory
    assert given.pop("asked_file") == "/run/pilotfish-asked/job"  # in a folder of root's
    assert all((list(takes[name]) if takes[name] == () else takes[name]) == value for name, value in given.items())


def test_the_sample_beside_oar_names_every_option(tmp_path):
    from pilotfish.adapters.oar import create as create_oar
    from pilotfish.daemon.config import load_config

    text = (FOLDER / "pilotfish.oar.yaml").read_text()
    (tmp_path / "pilotfish.yaml").write_text(text)
    assert load_config(tmp_path / "pilotfish.yaml").mode == "shadow"
    options = yaml.safe_load(text.replace("# output_dir:", "output_dir:"))["adapter"]["options"]
    takes = {name: each.default for name, each in inspect.signature(create_oar).parameters.items()}
    assert options.keys() == takes.keys() - {"cluster"}
    assert all(options[name] == takes[name] for name in ("max_defer_s", "server", "timeout_s"))


UNITS = ("pilotfishd.service", "pilotfish-reap.service", "pilotfish-reap.timer", "pilotfish-warm.service",
         "pilotfish-web.service")  # fmt: skip


#: Settings that imply NoNewPrivileges (systemd.exec(5)), with which no setuid program works.
IMPLY = {
    "SystemCallFilter", "SystemCallArchitectures", "RestrictAddressFamilies", "RestrictNamespaces", "PrivateDevices",
    "ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectClock", "ProtectHostname",
    "MemoryDenyWriteExecute", "RestrictRealtime", "RestrictSUIDSGID", "DynamicUser", "LockPersonality",
}  # fmt: skip


def test_beside_oar_setuid_programs_run():
    service, drop_in = _settings("pilotfishd.service"), _settings("pilotfishd-oar.conf")
    undone = {name for name, value in drop_in.items() if value in ("", "no")}
    assert IMPLY & service.keys() | {"NoNewPrivileges"} == undone


DROP_INS = (
    ("pilotfishd.service", "pilotfishd-oar.conf"), ("pilotfishd.service", "pilotfishd-local-jobs.conf"),
    ("pilotfish-reap.service", "pilotfish-reap-oar.conf"),
)  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize(("name", "drop_in"), [*((name, "") for name in UNITS), *DROP_INS])
def test_the_unit_is_clean(tmp_path, name, drop_in):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: the unit was NOT verified")
    files = {each: tmp_path / each for each in UNITS} | ({drop_in: tmp_path / f"{name}.d" / drop_in} if drop_in else {})
    for each, copy in files.items():
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(re.sub(r"=(-?)/usr/bin/pilotfish ", r"=\1/bin/true ", (FOLDER / each).read_text()))
    done = subprocess.run(
        [analyze, "verify", tmp_path / name],
        capture_output=True,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if "pilotfish" in line]
    assert (done.returncode, said) == (0, [])


def _settings(name: str) -> dict[str, str]:
    lines = (FOLDER / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")


def exposure(folder, name, drop_in=""):
    """Return the rating of a unit by systemd-analyze, from 0 (closed) to 10 (open)."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: what the units may do was NOT rated")
    unit = folder / name
    unit.write_text((FOLDER / name).read_text())
    if drop_in:
        (folder / f"{name}.d").mkdir()
        (folder / f"{name}.d" / "x.conf").write_text((FOLDER / drop_in).read_text())
    result = subprocess.run([analyze, "security", "--offline=true", unit], capture_output=True, text=True)
    rating = re.search(r"Overall exposure level for \S+: ([\d.]+)", result.stdout)
    assert rating, result.stdout
    return rating[1]


@pytest.mark.real
def test_services_next_to_slurm_are_confined_as_the_guide_says(tmp_path):
    daemon, reaper = exposure(tmp_path, "pilotfishd.service"), exposure(tmp_path, "pilotfish-reap.service")
    assert max(float(daemon), float(reaper)) <= 1.5
    assert f"rates the daemon {daemon} and the reaper {reaper}." in guide_text("slurm")


def test_local_jobs_get_back_all_that_jobs_inherit():
    service, jobs = _settings("pilotfishd.service"), _settings("pilotfishd-local-jobs.conf")
    kept = {  # none of these is open to an ordinary user anyway, but for new privileges, which the service must not get
        "NoNewPrivileges", "CapabilityBoundingSet", "LockPersonality", "RestrictSUIDSGID", "SystemCallErrorNumber",
        "ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectClock", "ProtectHostname",
    }  # fmt: skip
    limits = {name for name in service if re.match("Protect|Private|Restrict|SystemCall|Limit|Lock|Remove|NoNew", name)}
    assert (
        limits | {"MemoryMax", "TasksMax", "CapabilityBoundingSet"} == (jobs.keys() - {"Delegate", "KillMode"}) | kept
    )


def test_the_service_is_started_again_for_ever():
    unit = _settings("pilotfishd.service")
    assert (unit["StartLimitIntervalSec"], unit["Restart"]) == ("0", "on-failure") and "StartLimitBurst" not in unit
    assert (float(unit["RestartSec"]), float(unit["TimeoutStartSec"])) == (
        RESTART_S,
        START_S,
    )  # the wait counts on them
    assert unit["FileDescriptorStoreMax"] == "1"  # which holds the number of failed starts


def test_the_unit_keeps_jobs_alive_and_talks_to_systemd():
    unit = _settings("pilotfishd.service")
    assert unit["Type"] == "notify" and unit["NotifyAccess"] == "main"
    assert _settings("pilotfishd-local-jobs.conf")["KillMode"] == "process"
    assert unit["CacheDirectory"] == "pilotfish"  # systemd sets CACHE_DIRECTORY, where kernels are kept
    assert "ExecStartPre" not in unit, "the service compiles by itself, shows how far it is, and leaves nothing behind"
    user = (FOLDER / "pilotfish.sysusers.conf").read_text()
    assert re.search(rf"^u {unit['User']} ", user, re.M)


@pytest.mark.real
def test_users_and_directories_are_understood(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("not root, so no directory can be given away: pilotfish.tmpfiles.conf was NOT verified")
    for tool, name in (("systemd-sysusers", "sysusers"), ("systemd-tmpfiles", "tmpfiles")):
        path = shutil.which(tool)
        if path is None:
            pytest.skip(f"{tool} is not installed: pilotfish.{name}.conf was NOT verified")
        argv = [path, f"--root={tmp_path}", FOLDER / f"pilotfish.{name}.conf"]
        (tmp_path / "etc").mkdir(exist_ok=True)
        argv[1:1] = ["--create"] if name == "tmpfiles" else []
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "pilotfish" in (tmp_path / "etc" / "passwd").read_text()
    assert (tmp_path / "var/lib/pilotfish").is_dir()


@pytest.mark.real
@pytest.mark.parametrize(("drop_in", "guide"), [("local-jobs", "one-machine"), ("oar", "oar")])
def test_the_guides_say_how_much_the_drop_ins_expose(tmp_path, drop_in, guide):
    plain = exposure(tmp_path, "pilotfishd.service")
    opened = exposure(tmp_path, "pilotfishd.service", f"pilotfishd-{drop_in}.conf")
    assert f"rates the service {opened} instead of {plain}" in guide_text(guide)


def guide_text(name):
    """Return the text of a guide without its line breaks."""
    return " ".join((FOLDER.parent / "docs" / "guides" / f"{name}.md").read_text().split())
