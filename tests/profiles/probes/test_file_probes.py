"""File probes under a simulated /proc and /sys: cgroups, pressure, RAPL and a node's power meter."""

import os

import pytest

from pilotfish.profiles.probes.cgroup import Cgroup, parse_flat_keyed, parse_membership, parse_v2
from pilotfish.profiles.probes.node_load import Pressure, parse_total
from pilotfish.profiles.probes.power import Hwmon, Powercap, step, zones
from pilotfish.profiles.probes.process_tree import ProcessTree

TREE = ProcessTree(77)
USE = ("cpu_s", "user_s", "system_s", "throttled_s", "memory_peak")


def put(root, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")


V2 = "usage_usec {}\nuser_usec 1500000\nsystem_usec 500000\nnr_periods 9\nnr_throttled 2\nthrottled_usec 250000"


@pytest.fixture(params=["", "unified/"])
def version2(request, tmp_path):
    where = f"sys/fs/cgroup/{request.param}"
    put(
        tmp_path,
        {
            "proc/self/cgroup": "0::/ours",
            "proc/77/cgroup": "0::/slurm/job_1",
            f"{where}ours/cpu.stat": V2.format(5),
            f"{where}slurm/job_1/cpu.stat": V2.format(2000000),
            f"{where}slurm/job_1/memory.peak": 4096,
        },
    )
    return tmp_path, tmp_path / where / "slurm/job_1"


def test_cgroup_version_2(version2):
    root, group = version2
    probe = Cgroup(root)
    assert probe.available() is None
    probe.start(TREE, 0.0)
    (group / "cpu.stat").write_text(V2.format(3500000))
    probe.sample(1.0)
    (group / "cpu.stat").unlink()  # the group goes with its last process
    probe.sample(2.0, last=True)
    assert probe.stop() == dict(zip(USE, (1.5, 0.0, 0.0, 0.0, 4096.0), strict=True))


def test_a_shared_group_gives_no_use_of_the_job(version2):
    root, _ = version2
    put(root, {"proc/77/cgroup": "0::/ours"})
    probe = Cgroup(root)
    probe.start(TREE, 0.0)
    assert probe.stop() is None


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "separate"])
def test_cgroup_version_1(tmp_path, mount):
    cpu, accounting = ("cpu", "cpuacct") if mount == "separate" else (mount, mount)
    put(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/",
            "proc/77/cgroup": "4:memory:/job\n3:cpu,cpuacct:/job\nrubbish\n:::",
            f"sys/fs/cgroup/{accounting}/cpuacct.usage": 1,
            f"sys/fs/cgroup/{accounting}/job/cpuacct.usage": 0,
            f"sys/fs/cgroup/{accounting}/job/cpuacct.stat": "user 0\nsystem 0",
            f"sys/fs/cgroup/{cpu}/job/cpu.stat": "nr_throttled 0\nthrottled_time 0",
            "sys/fs/cgroup/memory/job/memory.max_usage_in_bytes": 8192,
        },
    )
    probe = Cgroup(tmp_path)
    assert probe.available() is None
    probe.start(TREE, 0.0)
    tick = os.sysconf("SC_CLK_TCK")
    put(
        tmp_path,
        {
            f"sys/fs/cgroup/{accounting}/job/cpuacct.usage": 3 * 10**9,
            f"sys/fs/cgroup/{accounting}/job/cpuacct.stat": f"user {2 * tick}\nsystem {tick}",
            f"sys/fs/cgroup/{cpu}/job/cpu.stat": "nr_throttled 1\nthrottled_time 500000000",
        },
    )
    probe.sample(1.0)
    assert probe.stop() == dict(zip(USE, (3.0, 2.0, 1.0, 0.5, 8192.0), strict=True))


def test_missing_cgroups_are_reported(tmp_path):
    assert "/proc/PID/cgroup" in Cgroup(tmp_path).available()
    put(tmp_path, {"proc/self/cgroup": "0::/gone"})
    assert "no cgroup with CPU accounting" in Cgroup(tmp_path).available()


def test_malformed_cgroup_files_are_skipped():
    assert parse_v2("usage_usec") == parse_v2("usage_usec x") == parse_v2("usage_usec -1") == {}
    assert parse_flat_keyed("a 1\nb 2 3\nc 1.5\n\nd ²") == {"a": 1.0}
    assert parse_membership("0::/a:b\n1:name=systemd:/x\n2:cpu:relative\nx:cpu:/") == {"": "/a:b", "name=systemd": "/x"}


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
