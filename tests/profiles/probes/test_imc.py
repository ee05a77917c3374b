"""Traffic of the memory controllers of Intel, AMD and NVIDIA: events, and bytes per count.

The outputs of perf are composed from perf-stat(1), "CSV FORMAT", and the events' published units.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.probes.imc import FABRIC, conclude, events

UMC = """\
# started on Mon Nov  2 10:00:00 2026

1000,,amd_umc_0/umc_cas_cmd.rd/,1000000,100.00,,
500,,amd_umc_0/umc_cas_cmd.wr/,1000000,100.00,,
S1,1,3000,,amd_umc_1/umc_cas_cmd.rd/,1000000,100.00,,
S1,1,700,,amd_umc_1/umc_cas_cmd.wr/,1000000,100.00,,
"""
GRACE = "10,,nvidia_scf_pmu_0/cmem_rd_data/,1,100.00,,\n640,,nvidia_scf_pmu_0/cmem_wr_total_bytes/,1,100.00,,\n"
#: Eight events on the four counters of the fabric: each was counted for half of the time and scaled by perf.
ROME = "".join(f"{100 + i},,amd_df/{name}/,500,50.00,,\n" for i, name in enumerate(FABRIC))
ICE_LAKE = "30.5,MiB,uncore_imc_0/cas_count_read/,9,100.00,,\n10,MiB,uncore_imc_0/cas_count_write/,9,100.00,,\n"


def put(root, **files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def devices(root, *names, **files):
    for name in names:
        (root / "sys/bus/event_source/devices" / name).mkdir(parents=True)
    put(root / "sys/bus/event_source/devices", **files)
    return events(root)


def test_intel_events_with_a_known_unit(tmp_path):
    found = devices(
        tmp_path,
        **{
            "uncore_imc_0/events/cas_count_read.unit": "MiB\n",
            "uncore_imc_0/events/cas_count_write.unit": "MiB\n",
            "uncore_imc_1/events/cas_count_read.unit": "MiB\n",
            "uncore_imc_2/events/data_reads.unit": "\n",
        },
    )
    assert found == ["uncore_imc_0/cas_count_read/", "uncore_imc_0/cas_count_write/"]


def test_amd_by_its_memory_controllers(tmp_path):
    found = devices(tmp_path, "amd_umc_0", "amd_umc_1", "amd_df")
    assert found == [f"amd_umc_{i}/umc_cas_cmd.{way}/" for i in (0, 1) for way in ("rd", "wr")]


@pytest.mark.parametrize(
    ("processor", "known"),
    [("AMD EPYC 7742 64-Core Processor", True), ("AMD EPYC 9654 96-Core Processor", False), ("AMD Ryzen 7", False)],
)
def test_amd_data_fabric_only_on_published_servers(tmp_path, processor, known):
    put(tmp_path, **{"proc/cpuinfo": f"processor\t: 0\nmodel name\t: {processor}\ncpu MHz\t: 2250.0\n"})
    assert (devices(tmp_path, "amd_df") == [f"amd_df/{name}/" for name in FABRIC]) == known


def test_grace_fabric_events_named_by_the_kernel(tmp_path):
    files = {f"nvidia_scf_pmu_0/events/{name}": "event=0x1\n" for name in ("cmem_rd_data", "cmem_wr_total_bytes")}
    found = devices(tmp_path, "nvidia_scf_pmu_1", **files)
    assert found == ["nvidia_scf_pmu_0/cmem_rd_data/", "nvidia_scf_pmu_0/cmem_wr_total_bytes/"]


def test_a_machine_without_controllers(tmp_path):
    assert events(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        (UMC, 64.0 * (1000 + 500 + 3000 + 700)),
        (GRACE, 10 * 32 + 640.0),
        (ROME, 64.0 * sum(range(100, 108))),
        (ICE_LAKE, 40.5 * 2**20),
    ],
)
def test_bytes_of_the_counts(text, moved):
    assert conclude(text).moved_bytes == pytest.approx(moved)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it printed nothing"),
        ("event syntax error: 'amd_umc_0/umc_cas_cmd.rd/'\n", "event syntax error"),
        (UMC.partition("500,,")[0], "it counted only umc_cas_cmd.rd"),
        (UMC.replace("700,,", "<not counted>,,").replace("500,,", "<not counted>,,"), "umc_cas_cmd.wr is not counted"),
        (UMC.replace("100.00", "60.00"), "stepped back"),
        (ROME.rpartition("107,,")[0], "it counted only dram_channel_data_controller_0, "),
        (ROME.replace("50.00", "20.00"), "stepped back"),
        (GRACE.replace("640,,", "<not supported>,,"), "cmem_wr_total_bytes is not supported"),
        (GRACE[: len(GRACE) // 2 + 8], "it counted only cmem_rd_data"),
    ],
)
def test_incomplete_counts_are_unknown(text, says):
    found = conclude(text)
    assert found.moved_bytes is None and says in found.problem


@given(st.text(alphabet="0123456789,.<>/:%_ \nMiBamdufcstwr", max_size=300))
def test_any_output_is_traffic_or_a_problem(text):
    found = conclude(text)
    assert (found.moved_bytes is None) == bool(found.problem)
