"""The choice of nodes, and what a job whose nodes are not available does to its partition."""

from __future__ import annotations

from dataclasses import replace

from pilotfish.simulate.slurm.site import PriorityRules, Site, SiteJob, SiteNode, SitePartition, SiteRules, SiteSwitch
from pilotfish.simulate.slurm.twin import SiteStart, replay_site
from tests.simulate.slurm.small_sites import T0

#: Jobs come in the order of their submission, and main passes alone start them.
IN_TURN = SiteRules(is_backfilling=False, priority=PriorityRules(is_multifactor=False))


def job(number: int, partition: str = "main", **changes: object) -> SiteJob:
    plain = {"limit_min": 60, "run_s": 600.0, "min_nodes": 1, "max_nodes": 1}
    return SiteJob(
        str(number), f"j{number}", "alice", "physics", "normal", (partition,), T0 + number, **(plain | changes)
    )


def starts(site: Site) -> dict[int, SiteStart]:
    return {start.job: start for start in replay_site(site).starts}


def test_small_nodes_are_dropped_until_as_many_are_left_as_a_job_needs() -> None:
    sizes = {"n1": 2, "n2": 1, "n3": 1, "n4": 2, "n5": 2, "n13": 12}
    nodes = tuple(SiteNode(name, cpus=size, cores=size, weight=50 if size > 2 else 1) for name, size in sizes.items())
    main = SitePartition("main", ("n1", "n4", "n5", "n13"), is_default=True)
    wide = job(0, min_nodes=3, max_nodes=3, tasks=12, min_cpus=12)
    assert starts(Site(IN_TURN, nodes, (main,), jobs=(wide,)))[0].nodes == ("n4", "n5", "n13")


def test_free_cpus_that_are_no_whole_task_count_unless_memory_is_by_cpu() -> None:
    """Of two runs of one node, that with fewer free CPUs is tighter: 7 and 5, or, in whole tasks of 4, both 4."""
    nodes = tuple(SiteNode(name, cpus=8, cores=8, memory_mib=8000) for name in ("n1", "n2", "n3"))
    main = SitePartition("main", ("n1", "n3"), is_default=True)
    for per_cpu, name in ((None, "n3"), (1000, "n1")):
        fillers = tuple(
            job(number, tasks=cpus, min_cpus=cpus, required_nodes=(node,), memory_per_cpu_mib=per_cpu)
            for number, (node, cpus) in enumerate({"n1": 1, "n3": 3}.items())
        )
        wide = job(9, cpus_per_task=4, min_cpus=4, memory_per_cpu_mib=per_cpu)
        rules = replace(IN_TURN, counts_memory=per_cpu is not None)
        assert starts(Site(rules, nodes, (main,), jobs=(*fillers, wide)))[2].nodes == (name,)


def test_a_job_whose_featured_nodes_are_closed_closes_no_partition() -> None:
    nodes = tuple(SiteNode(f"n{i}", cpus=4, cores=4, features=("fat",) if i > 2 else ()) for i in range(1, 5))
    main = SitePartition("main", ("n1", "n2", "n3", "n4"), is_default=True)
    fat = SitePartition("fat", ("n3", "n4"))
    both = {"min_nodes": 2, "max_nodes": 2, "is_exclusive": True}
    jobs = (job(0, "fat", is_exclusive=True), job(1, "fat", **both), job(2, constraint="fat", **both), job(3))
    replayed = starts(Site(IN_TURN, nodes, (main, fat), jobs=jobs))
    assert replayed[3].start < T0 + 100 < replayed[1].start < replayed[2].start


def test_a_job_that_has_enough_nodes_takes_no_more_cpus_than_it_needs() -> None:
    nodes = tuple(SiteNode(f"n{i}", cpus=size, cores=size) for i, size in enumerate((1, 4, 2)))
    main = SitePartition("main", ("n0", "n1", "n2"), is_default=True)
    wide = job(0, min_nodes=2, max_nodes=None, tasks=6, min_cpus=6)
    assert starts(Site(IN_TURN, nodes, (main,), jobs=(wide, job(1))))[1].nodes == ("n2",)


def test_the_last_node_that_a_job_may_have_is_one_that_suffices() -> None:
    sizes = {"n1": 1, "n3": 4, "n5": 1, "n6": 1, "n8": 12}
    nodes = tuple(
        SiteNode(f"n{i}", cpus=sizes.get(f"n{i}", 1), cores=sizes.get(f"n{i}", 1), weight=50 if i == 8 else 1)
        for i in range(1, 9)
    )
    main = SitePartition("main", tuple(sizes), is_default=True)
    wide = job(0, min_nodes=3, max_nodes=3, tasks=12, min_cpus=12)
    assert starts(Site(IN_TURN, nodes, (main,), jobs=(wide,)))[0].nodes == ("n3", "n5", "n8")


def test_a_job_takes_the_leaf_switch_that_fits_it_best_and_then_the_nearest() -> None:
    nodes = tuple(SiteNode(f"n{i}", cpus=4, cores=4) for i in range(12))
    all_names = [node.name for node in nodes]
    leaves = tuple(
        SiteSwitch(f"s{i}", tuple(all_names[a:b])) for i, (a, b) in enumerate(((0, 3), (3, 5), (5, 9), (9, 11)))
    )
    upper = (SiteSwitch("left", switches=("s0", "s1")), SiteSwitch("right", switches=("s2", "s3")))
    tree = (*leaves, *upper, SiteSwitch("top", switches=("left", "right")))
    main = SitePartition("main", tuple(all_names), is_default=True)
    for number, names in (
        (1, "n3"),
        (2, "n3 n4"),
        (3, "n0 n1 n2"),
        (4, "n5 n6 n7 n8"),
        (5, "n0 n1 n2 n3 n4"),
        (12, ""),
    ):
        wide = job(0, min_nodes=number, max_nodes=number, min_cpus=number, tasks=number, is_exclusive=True)
        replayed = starts(Site(IN_TURN, nodes, (main,), jobs=(wide,), switches=tree))
        assert [one.nodes for one in replayed.values()] == ([tuple(names.split())] if names else [])


def test_no_job_crosses_from_one_tree_to_another() -> None:
    nodes = tuple(SiteNode(f"n{i}", cpus=4, cores=4) for i in range(4))
    main = SitePartition("main", tuple(node.name for node in nodes), is_default=True)
    apart = (SiteSwitch("a", ("n0", "n1")), SiteSwitch("b", ("n2", "n3")))
    wide = job(0, min_nodes=3, max_nodes=3, min_cpus=3, tasks=3)
    assert not starts(Site(IN_TURN, nodes, (main,), jobs=(wide,), switches=apart))
    together = (*apart, SiteSwitch("top", switches=("a", "b")))
    assert starts(Site(IN_TURN, nodes, (main,), jobs=(wide,), switches=together))[0].nodes == ("n0", "n1", "n2")
