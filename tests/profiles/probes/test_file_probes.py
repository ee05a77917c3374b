"""File probes under a simulated /proc and /sys: cgroups, pressure, RAPL and a node's power meter."""

import pytest

from pilotfish.profiles.probes.cgroup import Cgroup, own_groups, parse_membership
from pilotfish.profiles.probes.node_load import Pressure, parse_total
from pilotfish.profiles.probes.power import Hwmon, Powercap, step, zones
from pilotfish.profiles.probes.process_tree import ProcessTree

TREE = ProcessTree(77)


def put(root, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")


V2 = "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 9\nnr_throttled 2\nthrottled_usec 250000"


@pytest.mark.parametrize("mount", ["", "unified/"])
def test_cgroup_version_2(tmp_path, mount):
    group = tmp_path / f"sys/fs/cgroup/{mount}slurm/job_1"
    put(
        tmp_path,
        {
            "proc/self/cgroup": "0::/ours",
            "proc/77/cgroup": "0::/slurm/job_1",
            f"sys/fs/cgroup/{mount}ours/cpu.stat": V2,
            f"sys/fs/cgroup/{mount}slurm/job_1/cpu.stat": V2,
        },
    )
    probe = Cgroup(tmp_path)
    assert probe.available() is None
    probe.start(TREE, 0.0)
    (group / "cpu.stat").unlink()  # the group goes with its last process
    probe.sample(1.0, last=True)


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "separate"])
def test_cgroup_version_1(tmp_path, mount):
    accounting = "cpuacct" if mount == "separate" else mount
    put(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/job\nrubbish\n:::",
            f"sys/fs/cgroup/{accounting}/job/cpuacct.usage": 0,
        },
    )
    assert Cgroup(tmp_path).available() is None


def test_missing_cgroups_are_reported(tmp_path):
    assert "/proc/PID/cgroup" in Cgroup(tmp_path).available()
    put(tmp_path, {"proc/self/cgroup": "0::/gone"})
    assert "no cgroup with CPU accounting" in Cgroup(tmp_path).available()
    put(tmp_path, {"sys/fs/cgroup/gone/cpu.stat": "nr_periods 9"})
    assert "no cgroup with CPU accounting" in Cgroup(tmp_path).available()


def test_malformed_membership_is_skipped():
    assert parse_membership("0::/a:b\n1:name=systemd:/x\n2:cpu:relative\nx:cpu:/") == {"": "/a:b", "name=systemd": "/x"}


def test_a_group_that_we_share_is_not_the_jobs_own(tmp_path):
    put(tmp_path, {"proc/self/cgroup": "0::/ours", "proc/77/cgroup": "0::/slurm/job_1"})
    assert own_groups(77, tmp_path) == {"": "/slurm/job_1"}
    put(tmp_path, {"proc/77/cgroup": "0::/ours"})
    assert own_groups(77, tmp_path) == {}


PSI = "some avg10=0.00 avg60=1.00 avg300=2.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5"


def test_pressure_is_a_share_of_the_time(tmp_path):
    assert "CONFIG_PSI" in Pressure(tmp_path).available()
    put(tmp_path, {f"proc/pressure/{name}": PSI.format(1000000) for name in ("cpu", "memory")})
    probe = Pressure(tmp_path)
    assert probe.available() is None
    probe.start(TREE, 10.0)
    assert probe.stop() == {}
    put(tmp_path, {"proc/pressure/cpu": PSI.format(3000000)})
    probe.sample(12.0)
    assert probe.stop() == {}
    probe.sample(14.0, last=True)
    found = probe.stop()
    assert (found["cpu_some"], found["memory_some"], found["memory_full"]) == (0.5, 0.0, 0.0)


@pytest.mark.parametrize("text", ["", "some", "some total=", "some total=x", "full total=5", "some avg10=1.0 total"])
def test_malformed_pressure_is_unknown(text):
    assert parse_total(text) is None


def rapl(root, zone, name, energy=0, most=262143328850):
    put(
        root,
        {
            f"sys/class/powercap/{zone}/{part}": value
            for part, value in (("name", name), ("energy_uj", energy), ("max_energy_range_uj", most))
        },
    )


def test_packages_and_memory_are_added_and_nothing_counts_twice(tmp_path):
    for socket in (0, 1):
        rapl(tmp_path, f"intel-rapl:{socket}", f"package-{socket}", 1_000_000)
        rapl(tmp_path, f"intel-rapl:{socket}:0", "core")
        rapl(tmp_path, f"intel-rapl:{socket}:1", "dram")
    rapl(tmp_path, "intel-rapl:2", "psys")
    rapl(tmp_path, "intel-rapl-mmio:0", "package-0")
    put(tmp_path, {"sys/class/powercap/intel-rapl/enabled": 1})
    probe = Powercap(tmp_path)
    assert probe.available() is None
    probe.start(TREE, 0.0)
    rapl(tmp_path, "intel-rapl:0", "package-0", 51_000_000)
    rapl(tmp_path, "intel-rapl:1:1", "dram", 7_000_000)
    probe.sample(1.0)
    rapl(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    probe.sample(2.0)
    found = probe.stop()
    assert set(found) == {"package-0", "package-1", "package-0 dram", "package-1 dram"}
    assert found["package-0"] == pytest.approx(262143.32885)
    assert found["package-1 dram"] == pytest.approx(7.0)


def test_a_counter_wraps():
    assert step(90.0, 10.0, 100.0) == 20.0
    assert step(10.0, 90.0, 100.0) == 80.0


def test_missing_or_unreadable_rapl_is_reported(tmp_path):
    assert "no RAPL" in Powercap(tmp_path).available()
    rapl(tmp_path, "intel-rapl:0", "package-0", "")
    assert "may not be read" in Powercap(tmp_path).available()
    rapl(tmp_path, "intel-rapl:0", "package-0", 5, "nonsense")
    assert zones(tmp_path / "sys/class/powercap") == []


def test_the_node_meter(tmp_path):
    assert "no sensors" in Hwmon(tmp_path).available()
    put(tmp_path, {"sys/class/hwmon/hwmon0/name": "coretemp"})
    assert "among the sensors coretemp" in Hwmon(tmp_path).available()
    put(tmp_path, {"sys/class/hwmon/hwmon1/name": "power_meter", "sys/class/hwmon/hwmon1/power1_average": 100_000_000})
    probe = Hwmon(tmp_path)
    assert probe.available() is None
    probe.start(TREE, 0.0)
    assert probe.stop() is None
    put(tmp_path, {"sys/class/hwmon/hwmon1/power1_average": 200_000_000})
    probe.sample(0.5)  # too soon to ask again
    probe.sample(2.0)
    probe.sample(2.5, last=True)
    assert probe.stop() == pytest.approx((2.0 * 150 + 0.5 * 200) / 2.5)
    put(tmp_path, {"sys/class/hwmon/hwmon1/power1_average": "rubbish"})
    assert Hwmon(tmp_path).available() is not None
