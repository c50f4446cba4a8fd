"""What DeepSpeed finds on a machine: `ds_report`, `python -m deepspeed.env_report`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_MARK = re.compile(r"\[(NO|YES|OKAY|FAIL)\]")
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) *([KMGT]?B)")
_MIB = {"B": 1 / (1 << 20), "KB": 1 / 1024, "MB": 1.0, "GB": 1024.0, "TB": 1024.0 * 1024}
_WHEEL = re.compile(r"torch ([0-9][^\s,]*), (?:cuda|hip) ([0-9][^\s,]*)")
_MAJOR = re.compile(r"([0-9]{1,3})\.")
_GOOD = {"YES": True, "OKAY": True, "NO": False, "FAIL": False}


@dataclass(frozen=True, slots=True)
class Op:
    """One extension. `installed` False is normal: it is built at its first use. `compatible` False: that would fail."""

    installed: Fact[bool]
    compatible: Fact[bool]


@dataclass(frozen=True, slots=True)
class DsReport:
    """`shm_mib`: /dev/shm, in DeepSpeed's MB and GB, which are powers of 1024. `wheel_torch`, `wheel_cuda`: 0.0 for a source wheel.

    `mismatch`: torch's CUDA and nvcc differ in their major version, so that no extension can be built.
    """

    torch: Fact[str]
    torch_cuda: Fact[str]
    torch_hip: Fact[str]
    nvcc: Fact[str]
    deepspeed: Fact[str]
    wheel_torch: Fact[str]
    wheel_cuda: Fact[str]
    shm_mib: Fact[float]
    mismatch: Fact[bool]
    ninja: Fact[bool]
    ops: dict[str, Op]
    warnings: tuple[str, ...]


def _version(fields: dict[str, str], key: str) -> Fact[str]:
    """First part of a value: `0.14.0, unknown, unknown`; None is DeepSpeed's word for nothing."""
    found = fields.get(key, "").partition(",")[0].strip()
    if found in ("None", "N/A", "not installed", "[NO]"):
        return Absent("NotInstalled")
    return Value(found) if found else Unknown("Missing", key)


def _major(found: Fact[str]) -> str | None:
    told = _MAJOR.match(found.value) if isinstance(found, Value) else None
    return told[1] if told else None


def _differ(torch_cuda: Fact[str], nvcc: Fact[str]) -> Fact[bool]:
    one, other = _major(torch_cuda), _major(nvcc)
    return Value(one != other) if one and other else Unknown("NotComparable")


def _mebibytes(fields: dict[str, str]) -> Fact[float]:
    cell = fields.get("shared memory (/dev/shm) size", "")
    found = _SIZE.fullmatch(cell)
    return Value(float(found[1]) * _MIB[found[2]]) if found else scalars.strange(cell, "UnreadableSize")


def _op(marks: list[str], value: str) -> Op:
    """`[NO] ....... [OKAY]`: a mark that is cut off is Missing."""
    known: list[Fact[bool]] = [Value(_GOOD[mark]) for mark in marks[:2]]
    known += [Unknown("Missing", raw.clean(value[:400], 80))] * (2 - len(known))
    return Op(known[0], known[1])


def _fields(lines: list[str]) -> tuple[dict[str, str], dict[str, Op]]:
    """`name ..... value`, and under the heading `op name` the extensions."""
    fields: dict[str, str] = {}
    ops: dict[str, Op] = {}
    in_ops = False
    for line in lines:
        name, dots, value = line.strip().partition(" ..")
        value = value.lstrip(".").strip()
        if name == "op name":
            in_ops = True
        elif "general environment info" in line:
            in_ops = False
        elif dots and in_ops and " " not in name:
            ops.setdefault(name, _op(_MARK.findall(value[:400]), value))
        elif dots and name:
            fields.setdefault(name, value)
    return fields, ops


def parse(said: str) -> Fact[DsReport]:
    """The report, coloured or not; Unknown(NoReport) where it is none."""
    whole, cut = text.ended(said)
    lines = whole.split("\n")
    fields, ops = _fields(lines)
    if absent := scalars.no_command((whole + cut).split("\n"), "ds_report"):
        return absent
    if not (ops or {"torch version", "deepspeed info", "nvcc version"} & set(fields)):
        return Unknown("NoReport", raw.clean((whole + cut)[:400], 120))
    wheel = _WHEEL.search(fields.get("deepspeed wheel compiled w.", "")[:400])
    torch_cuda, nvcc = _version(fields, "torch cuda version"), _version(fields, "nvcc version")
    ninja = _MARK.search(fields.get("ninja", "")[:400])
    return Value(
        DsReport(
            torch=_version(fields, "torch version"),
            torch_cuda=torch_cuda,
            torch_hip=_version(fields, "torch hip version"),
            nvcc=nvcc,
            deepspeed=_version(fields, "deepspeed info"),
            wheel_torch=Value(wheel[1]) if wheel else Unknown("Missing"),
            wheel_cuda=Value(wheel[2]) if wheel else Unknown("Missing"),
            shm_mib=_mebibytes(fields),
            mismatch=_differ(torch_cuda, nvcc),
            ninja=Value(_GOOD[ninja[1]]) if ninja else Unknown("Missing"),
            ops=ops,
            warnings=tuple(raw.clean(line[:1000]) for line in lines if "[WARNING]" in line[:200]),
        )
    )
