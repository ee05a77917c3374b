"""Policies for machines whose tasks contend: a rule for the next job, and one for where it goes.

Rule: options only; the job that the rule names is looked at alone, and waited for where it does not fit. Of equals the
first: jobs by their submission, processors and nodes as the cluster file has them.
Source: IRMaSim (Herrera et al., CCGrid 2021), table II; Fomperosa's thesis (2021), table 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .options import choice

JOBS = {
    "random": "any that waits",
    "first": "the one submitted first",
    "shortest": "the least requested time",
    "smallest": "the fewest cores",
    "low_mem": "the least memory",
    "low_mem_bw": "the least memory bandwidth",
}
RESOURCES = {
    "random": "any free core",
    "high_gflops": "of the processor whose cores are the fastest beside what runs there",
    "high_core": "of the processor with the most free cores",
    "high_mem": "of the node with the most memory left",
    "high_mem_bw": "of the processor with the most memory bandwidth left",
    "low_power": "of the processor that draws the least now",
}
RULES = {
    "random": "any node with room",
    "biggest": "the node with the most cores, of those with room",
    "fastest": "the node with the fastest cores, of those with room",
}


@dataclass(frozen=True, slots=True)
class Pairs:
    """One job after the other, and a core for each of its tasks, one after the other; tasks contend for memory."""

    source: ClassVar = "Herrera et al. 2021, table II"
    job: str = choice("first", JOBS, "the job to start next")
    resource: str = choice("high_gflops", RESOURCES, "the core of its next task")


@dataclass(frozen=True, slots=True)
class Nodes:
    """One job after the other, each on the cores of one node; tasks contend for memory."""

    source: ClassVar = "Fomperosa 2021, table 5.1"
    job: str = choice("first", JOBS, "the job to start next")
    rule: str = choice("fastest", RULES, "the node that it goes to")


Contending = Pairs | Nodes
