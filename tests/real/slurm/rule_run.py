"""Cases of rules on a real Slurm with a fast clock: submitted, waited for, and recorded as a site."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from fast_slurm import FastSlurm
from rule_case import Case, Submission, of_case
from rule_sites import RuleSite, scheduler_words

from pilotfish.adapters.slurm.site_commands import site_texts, slurm_time
from pilotfish.formats.site.site_file_list import PERIOD, SITE_FILES
from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.site_tables import Phases
from tests.support.slurm_recordings import FIRST_CALCULATION_S

#: The jobs of a case as they happened, and the phases of the clocks.
Record = tuple[Site, Phases]
SPEED = 20.0
#: Seconds of the fast clock for which jobs that are never to start have a chance, after all others have ended.
CHANCE_S = 70.0
#: Seconds of the fast clock after which the gates have started in any replay.
GATES_S = 10.0


class RuleRun:
    """Cases next to each other on one site.

    Args:
        path: folder of the site.
        site: the cases, and what they share.
    """

    def __init__(self, path: Path, site: RuleSite) -> None:
        self.first, shapes, cases = dict[str, int](), list[str](), site.cases
        for case in cases:
            self.first[case.name] = len(shapes) + 1
            shapes += case.nodes
        lines = [line for case in cases for line in case.conf(self.first[case.name])]
        commands = [*site.accounts, *(command for case in cases for command in case.accounts)]
        self.slurm = FastSlurm(path, site.rules, lines, shapes, commands, SPEED, site.begin, site.topology)
        self.path, self.folder = path, path / "recorded"
        self.cases: Sequence[Case] = ()
        self.ids = dict[str, str]()  # CASE__JOB -> id
        #: Case -> what sbatch answered otherwise than it should, in the last play.
        self.refusals = dict[str, str]()
        self.conf = ""  # slurm.conf before it was changed

    def configure(self, settings: str) -> None:
        """Give the site other settings, while no job is there: keys of slurm.conf, or words of SchedulerParameters.

        A word of SchedulerParameters with `-` before it is taken away. `{path}` is the folder of the site, with an epilog
        of three seconds of the true clock: `etc/epilog.sh`.
        """
        config, words = self.slurm.config, settings.format(path=self.path).split()
        self.conf = self.conf or config.read_text()
        line = f"SchedulerParameters={scheduler_words(word for word in words if not word[0].isupper())}"
        text = re.sub(r"(?m)^SchedulerParameters=.*$", line, self.conf)
        config.write_text("\n".join((text, *(word for word in words if word[0].isupper()), "")))
        epilog = self.path / "etc" / "epilog.sh"
        epilog.write_text("#!/bin/sh\nexec sleep 3\n")
        epilog.chmod(0o755)
        self.slurm.run("scontrol", "reconfigure")

    def records(self, cases: Sequence[Case]) -> dict[str, Record]:
        """Let cases happen, and return their records by name."""
        site = self.play(cases)
        phases = self.phases(site)
        return {case.name: (of_case(site, case.name), phases) for case in cases}

    def play(self, cases: Sequence[Case]) -> Site:
        """Let cases happen, and return the site with their record."""
        slurm, begin = self.slurm, self.slurm.now()
        self.cases, self.ids, self.refusals = cases, {}, {}
        self.folder = self.path / f"recorded-{begin:.0f}"
        self.folder.mkdir()
        self.gate = self.folder / "gate"
        self._write("sshare.psv", begin)
        if self.slurm.topology:
            (self.folder / "topology.conf").write_text(self.slurm.topology)
        os.mkfifo(self.gate)
        self.gate.chmod(0o666)
        jobs = [(case, job) for case in self.cases for job in case.jobs]
        gates = [(case, job) for case, job in jobs if job.is_gate]
        self._submit(gates)
        slurm.until(lambda: len(self._names("RUNNING")) == len(gates), "the gates to run")
        time.sleep(GATES_S / SPEED)
        self._command(0)
        self._submit([(case, job) for case, job in jobs if not job.is_gate and not job.after])
        with self.gate.open("r+b", buffering=0) as opened:
            opened.write(b"\n" * len(gates))
            since = slurm.now()
            moments = {job.after for _, job in jobs} | {at for case in self.cases for at, _ in case.commands}
            for moment in sorted(moments - {0}):
                time.sleep(max(0.0, (since + moment - slurm.now()) / SPEED))
                self._command(moment)
                self._submit([(case, job) for case, job in jobs if job.after == moment])
            never = {f"{case.name}.{job.name}" for case, job in jobs if job.never_starts}
            slurm.until(lambda: self._names("all") <= never, "the jobs")
        time.sleep(CHANCE_S / SPEED if never else 0.0)
        slurm.run("scancel", "--state=PENDING")
        slurm.until(lambda: not self._names("all"), "the queue to be empty")
        return self._recorded(begin)

    def phases(self, site: Site) -> Phases:
        """Return the phases of the clocks in the record, as far as they are known."""
        began = min(job.submit for job in site.jobs)
        first = self.slurm.controller_started() + FIRST_CALCULATION_S * SPEED - began
        return Phases(tick=0.0, backfill=0.0, period=first % site.rules.priority.period_s, limit=0, full=0.0)

    def _submit(self, jobs: Sequence[tuple[Case, Submission]]) -> None:
        lines = [f"{name}={number}" for name, number in self.ids.items()]
        for case, job in jobs:
            variable = f"{case.name}__{job.name}"
            lines += [case.command(job, variable, self.first[case.name], self.gate), f'echo "{variable}=${variable}"']
        errors = self.folder.with_name("errors.txt")
        printed = self.slurm.run("sh", "-c", f"exec 2>{errors}\n" + "\n".join(lines))
        self.ids |= dict(line.split("=", 1) for line in printed.splitlines())
        for case, job in jobs:
            is_refused = not self.ids[f"{case.name}__{job.name}"]
            if is_refused != job.is_refused:
                words = f"{job.name} is {'' if is_refused else 'not '}refused: {errors.read_text()}{printed}"
                self.refusals.setdefault(case.name, words)

    def _command(self, moment: int) -> None:
        for case in self.cases:
            for at, command in case.commands:
                if at == moment:
                    words = case.words(self.first[case.name]) | self._case_ids(case)
                    self.slurm.run("scontrol", *command.format(**words).split())

    def _case_ids(self, case: Case) -> dict[str, str]:
        return {name.removeprefix(f"{case.name}__"): number for name, number in self.ids.items()}

    def _names(self, state: str) -> set[str]:
        states = "PENDING,RUNNING,COMPLETING,SUSPENDED" if state == "all" else state
        return set(self.slurm.run("squeue", "--noheader", f"--states={states}", "--format=%j").splitlines())

    def _recorded(self, begin: float) -> Site:
        def is_complete() -> bool:
            rows = self.slurm.run("sacct", "-anPX", f"-S{slurm_time(begin)}", "--format=JobID,State").splitlines()
            states = dict(row.rsplit("|", 1) for row in rows)
            return len(states) >= accepted and not {"PENDING", "RUNNING"} & set(states.values())

        accepted = sum(bool(number) for number in self.ids.values())
        self.slurm.until(is_complete, "accounting")
        until = self.slurm.now() + 1
        site = site_texts(lambda argv: self.slurm.run(*argv), PERIOD, begin, until)
        assert not site.missing, site.missing
        for name, text in site.texts.items():
            (self.folder / name).write_text(text + "\n")
        self._write("sacct.psv", begin, until)
        return read_site(self.folder)

    def _write(self, name: str, begin: float, until: float = 0.0) -> None:
        argv = SITE_FILES[name].argv(slurm_time(begin), slurm_time(until))
        (self.folder / name).write_text(self.slurm.run(*argv) + "\n")
