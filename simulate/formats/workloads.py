"""Workloads of rigid jobs, in whatever format a file has: one entry in FORMATS for each.

Rule: the file's name says which format it is; a name that says nothing leaves it to the first character. JSON is
Batsim's, or IRMaSim's where jobs count instructions.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from ..workload import Workload
from .batsim import parse_batsim
from .batsim_jobs import workload_of
from .documents import parse_json
from .irmasim_jobs import is_irmasim, parse_irmasim
from .reading import GZIP, decode, read_bytes, unpacked
from .swf import read_swf


@dataclass(frozen=True, slots=True)
class Format:
    """A format of workloads.

    Args:
        name: as people call it.
        suffix: of its files' names, before .gz.
        begins: what its files begin with; "" = anything.
        size: what in it says how large the machine is.
        read: what reads them; see `read_workload`.
        kernels: what that loads.
        depends: whether how long its jobs run may depend on the machine.
    """

    name: str
    suffix: str
    begins: bytes
    size: str
    read: Callable[..., Workload]
    kernels: tuple[str, ...] = ()
    depends: bool = False


def _read_swf(
    path: Path, *, speeds: Collection[float], storages: Collection[str] | None = None, skip_invalid: bool
) -> Workload:
    return read_swf(path, skip_invalid=skip_invalid)


def _read_json(
    path: Path, *, speeds: Collection[float], storages: Collection[str] | None = None, skip_invalid: bool
) -> Workload:
    source = str(path)
    text = decode(unpacked(read_bytes(path), source), source)
    data = parse_json(text, source)
    if is_irmasim(data):
        return parse_irmasim(data, path, speeds=speeds, skip_invalid=skip_invalid)
    given = parse_batsim(data, source)
    return workload_of(given, path, speeds=speeds, storages=storages, skip_invalid=skip_invalid)


FORMATS = (
    Format("JSON", ".json", b"{", "nb_res", _read_json, depends=True),
    Format("SWF", ".swf", b"", "MaxProcs", _read_swf, ("batch.swf",)),
)


def format_of(path: Path) -> Format:
    """The format of a file. Raises OSError: it has to be read for that, and cannot be."""
    name = path.name.lower().removesuffix(".gz")
    for each in FORMATS:
        if name.endswith(each.suffix):
            return each
    begin = _beginning(path)
    return next(each for each in FORMATS if begin.startswith(each.begins))


def _beginning(path: Path) -> bytes:
    """What a file begins with, unpacked, without blanks; nothing where it is damaged, or can be read only once."""
    if path.exists() and not path.is_file():
        return b""
    with path.open("rb") as file:
        data = file.read(2**12)
    if data.startswith(GZIP):
        try:
            data = zlib.decompressobj(31).decompress(data, 2**12)
        except zlib.error:
            return b""
    return data.removeprefix(codecs.BOM_UTF8).lstrip()


def read_workload(
    path: Path, *, speeds: Collection[float] = (), storages: Collection[str] | None = None, skip_invalid: bool = False
) -> Workload:
    """The jobs of a file, in the order of submission. O(bytes).

    Args:
        speeds: flop/s of the machine's resources, all that there are; () = not known.
        storages: names of the storages in the machine's network; None = it has no network.
        skip_invalid: leave out, and count, what cannot be replayed.

    Raises:
        ConfigError: it is no workload, or not one that can be replayed.
        OSError: it cannot be read.
    """
    return format_of(path).read(path, speeds=speeds, storages=storages, skip_invalid=skip_invalid)
