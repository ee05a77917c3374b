"""The files of a site: which command prints each, what it gives, and what a replay loses without it.

Rule: one list, for the reader, the recorder, the page of commands and the reports. Times in the files are UTC where
`site record` made them, because it runs the commands with TZ=UTC.
Source: scontrol(1), sacctmgr(1), sacct(1), sshare(1), sprio(1), sdiag(1) of Slurm 22.05.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Columns of sacct. What users wrote stands last, because it may hold bars and line ends. DBIndex names a record.
SACCT_COLUMNS = (
    "JobID,JobIDRaw,DBIndex,User,Account,QOS,Partition,State,ExitCode,Submit,Eligible,Start,End,ElapsedRaw,"
    "TimelimitRaw,ReqNodes,AllocNodes,ReqCPUS,AllocCPUS,ReqMem,ReqTRES,AllocTRES,NodeList,Priority,Reason,Flags,"
    "Reservation,Constraints,ConsumedEnergyRaw,JobName,SubmitLine"
)
#: Columns of `sacctmgr show qos`, which leaves some of them out unless they are asked for.
QOS_COLUMNS = (
    "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThres,UsageFactor,LimitFactor,"
    "MinPrioThres,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpJobsAccrue,GrpSubmit,GrpWall,MaxTRES,"
    "MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxTRESRunMinsPU,MaxJobsPU,MaxJobsAccruePU,MaxSubmitPU,"
    "MaxTRESPA,MaxTRESRunMinsPA,MaxJobsPA,MaxJobsAccruePA,MaxSubmitPA,MinTRES"
)
#: Columns of `sacctmgr show assoc`.
ASSOC_COLUMNS = (
    "Cluster,ID,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,"
    "MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins,ParentName,"
    "GrpJobsAccrue,MaxJobsAccrue"
)


@dataclass(frozen=True, slots=True)
class SiteFile:
    """A file of a site.

    Args:
        name: its name in the folder; it may end in `.gz`, too.
        command: what prints it, words divided by blanks; T0 and T1 are the begin and the end of the period.
        gives: what it is used for.
        cost: what a replay loses without it; "": nothing, or another file has the same.
    """

    name: str
    command: str
    gives: str
    cost: str = ""

    def argv(self, since: str = "", until: str = "") -> list[str]:
        """Return the command for a period, times such as 2026-03-01T00:00:00."""
        return [word.replace("T0", since).replace("T1", until) for word in self.command.split()]


#: The settings in force, and the switches: the command fails where Slurm has no switches.
CONFIGURATION, TOPOLOGY = "scontrol_config.txt", "scontrol_topo.txt"
#: The files, by name.
SITE_FILES = {
    file.name: file
    for file in (
        SiteFile(
            CONFIGURATION,
            "scontrol show config",
            "settings as they are in force, and the version of Slurm",
            "no file says which version Slurm has: the rules of 25.11 hold, the newest that is known",
        ),
        SiteFile("scontrol_node.txt", "scontrol -ao show node", "nodes", "slurm.conf must describe them"),
        SiteFile("scontrol_part.txt", "scontrol -ao show partition", "partitions", "slurm.conf must describe them"),
        SiteFile("scontrol_res.txt", "scontrol -ao show reservation", "reservations that the database does not have"),
        SiteFile(
            TOPOLOGY,
            "scontrol show topology",
            "switches of topology/tree, if topology.conf is not there",
            "without topology.conf, TopologyPlugin is not followed: jobs may start elsewhere, or sooner",
        ),
        SiteFile("scontrol_job.txt", "scontrol -ao show job", "jobs that run and wait now"),
        SiteFile(
            "assoc.psv",
            f"sacctmgr -P show assoc format={ASSOC_COLUMNS}",
            "accounts, users, shares, limits",
            "there are no shares and no limits of associations",
        ),
        SiteFile(
            "qos.psv",
            f"sacctmgr -P show qos format={QOS_COLUMNS}",
            "priorities and limits of QOS",
            "QOS have no priority and no limits",
        ),
        SiteFile(
            "sshare.psv",
            "sshare -a -l -P",
            "usage when the period begins",
            "usage is 0 when the period begins; fair share is wrong at first",
        ),
        SiteFile(
            "sshare_end.psv",
            "sshare -a -l -P",
            "usage when the period ends; that at its begin is calculated from it, and shares are compared with it",
        ),
        SiteFile(
            "sacct_before.psv",
            f"sacct -a -X -D -P --noconvert -S B0 -E T0 --format={SACCT_COLUMNS}",
            "jobs from B0, some half lives of usage before the period: usage when it begins is calculated from them",
        ),
        SiteFile(
            "events.psv",
            "sacctmgr -P show event start=T0 end=T1",
            "times in which nodes took no jobs",
            "nodes are treated as working all the time",
        ),
        SiteFile(
            "reservations.psv",
            "sacctmgr -P show reservation start=T0 end=T1 format=Name,TimeStart,TimeEnd,NodeNames,Flags,Associations",
            "reservations",
            "reservations that ended before the dump are not known",
        ),
        SiteFile("sprio.txt", "sprio -l", "priorities of the jobs that wait now, by factor"),
        SiteFile("sdiag.txt", "sdiag", "how long the passes of the scheduler take"),
        SiteFile(
            "sacct.psv",
            f"sacct -a -X -D -P --noconvert -S T0 -E T1 --format={SACCT_COLUMNS}",
            "jobs and what happened to them",
            "there is nothing to replay",
        ),
        SiteFile(
            "scripts.txt",
            "sacct -a -B -j JOBS",
            "options in scripts (`#SBATCH`), where Slurm stores scripts; JOBS are ids, divided by commas",
            "options in scripts are seen only where sacct shows their effect",
        ),
    )
}
#: What a recording of a period has, in the order in which it is written; jobs of accounting come last.
PERIOD = (
    CONFIGURATION,
    "scontrol_node.txt",
    "scontrol_part.txt",
    "scontrol_res.txt",
    "assoc.psv",
    "qos.psv",
    "sshare_end.psv",
    "events.psv",
    "reservations.psv",
    "sprio.txt",
    "sdiag.txt",
)
#: What a look at a running site needs: eight requests, and one more where switches decide; see `is_needed`.
PRESENT = (
    CONFIGURATION,
    "scontrol_node.txt",
    "scontrol_part.txt",
    "scontrol_res.txt",
    TOPOLOGY,
    "scontrol_job.txt",
    "assoc.psv",
    "qos.psv",
    "sshare.psv",
)


def is_needed(name: str, configuration: str) -> bool:
    """Return whether a look at a running site needs a file.

    Args:
        name: of the file, one of PRESENT.
        configuration: what `scontrol show config` printed; "": not known yet.
    """
    return name != TOPOLOGY or "topology/tree" in configuration
