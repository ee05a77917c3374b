"""Shapes of workflows of real applications, as published by WfCommons.

Rule: the structure is the published one, for about as many jobs as requested; indivisible parts (a chromosome, a lane)
stay whole.
Source: Coleman et al., "WfCommons: a framework for enabling scientific workflow research and development", FGCS 2022.
"""

from __future__ import annotations

from collections.abc import Callable

#: (category, indices of its predecessors) of every task, in order.
Tasks = list[tuple[str, list[int]]]


def genome(jobs: int) -> Tasks:
    """Return 1000genome: per chromosome individuals, their merge, sifting, and two analyses for each population."""
    tasks: Tasks = []
    populations, individuals = 7, 8 if jobs < 400 else 24
    while len(tasks) + individuals + 2 + 2 * populations <= jobs or not tasks:
        first = len(tasks)
        tasks += [("individuals", []) for _ in range(individuals)]
        tasks += [("individuals_merge", list(range(first, first + individuals))), ("sifting", [])]
        ready = [len(tasks) - 2, len(tasks) - 1]
        for _ in range(populations):
            tasks += [("mutation_overlap", ready), ("frequency", ready)]
    return tasks


def montage(jobs: int) -> Tasks:
    """Return Montage: projections, differences of neighbours, a fit and a model, backgrounds, and a mosaic."""
    images = max(3, (jobs - 5) // 4)
    tasks: Tasks = [("mProject", []) for _ in range(images)]
    pairs = [(i, i + 1) for i in range(images - 1)] + [(i, i + 2) for i in range(images - 2)]
    tasks += [("mDiffFit", [a, b]) for a, b in pairs]
    tasks.append(("mConcatFit", list(range(images, images + len(pairs)))))
    tasks.append(("mBgModel", [len(tasks) - 1]))
    model = len(tasks) - 1
    tasks += [("mBackground", [model, i]) for i in range(images)]
    tasks.append(("mImgtbl", list(range(model + 1, model + 1 + images))))
    tasks.append(("mAdd", [len(tasks) - 1]))
    tasks.append(("mViewer", [len(tasks) - 1]))
    return tasks


def blast(jobs: int) -> Tasks:
    """Return BLAST: split, search the parts, gather results and messages."""
    parts = list(range(1, jobs - 2))
    return [("split_fasta", []), *(("blastall", [0]) for _ in parts), ("cat_blast", parts), ("cat", parts)]


def epigenomics(jobs: int) -> Tasks:
    """Return Epigenomics: per lane a split, chains of four steps and a merge; a merge of all, an index and a pileup."""
    tasks: Tasks = []
    chains, merges = 5, list[int]()
    while len(tasks) + 4 * chains + 2 + 3 <= jobs or not merges:
        split = len(tasks)
        tasks.append(("fastqSplit", []))
        ends = []
        for _ in range(chains):
            before = split
            for step in ("filterContams", "sol2sanger", "fast2bfq", "map"):
                tasks.append((step, [before]))
                before = len(tasks) - 1
            ends.append(before)
        tasks.append(("mapMerge", ends))
        merges.append(len(tasks) - 1)
    tasks.append(("mapMerge", merges))
    tasks.append(("maqIndex", [len(tasks) - 1]))
    tasks.append(("pileup", [len(tasks) - 1]))
    return tasks


SHAPES: dict[str, Callable[[int], Tasks]] = {
    "1000genome": genome,
    "montage": montage,
    "blast": blast,
    "epigenomics": epigenomics,
}
