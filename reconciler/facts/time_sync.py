"""Whether a node's clock follows a time source: `chronyc tracking`, for people or with -c."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Fact, Unknown, Value

# what `chronyc waitsync` takes for no source: nothing, and 127.127.1.1, chronyd's own clock (chrony, client.c)
_NO_SOURCE = {"00000000", "7F7F0101"}
_FOLLOWS = {"Normal": True, "Insert second": True, "Delete second": True, "Not synchronised": False}
_REFERENCE = re.compile(r"([0-9A-Fa-f]{1,8})(?:\s+\((.*)\))?")
_REPLY = re.compile(r"^(5[0-9][0-9]) ", re.MULTILINE)  # chronyc's own refusals: 506 Cannot talk to daemon, 501 Not authorised
_SIGN = {"fast": 1.0, "slow": -1.0}
# `chronyc -c tracking`: 14 cells in the order of the lines for people (chrony, client.c, process_cmd_tracking)
_CELLS = re.compile(r"[0-9A-F]{8},[^,\n]{0,255}(?:,[^,\n]{1,40}){12}$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tracking:
    """One answer of `chronyc tracking`: seconds and parts per million.

    Offsets and frequency are positive where the node's clock is ahead or runs fast. `reference_id` has 8 hexadecimal digits.
    `synced`: leap status and reference both say that a source is followed; offsets are old numbers where it is False.
    """

    synced: Fact[bool]
    leap: Fact[str]
    reference_id: Fact[str]
    reference_name: Fact[str]
    reference_time_utc: Fact[str]
    stratum: Fact[int]
    system_offset_s: Fact[float]
    last_offset_s: Fact[float]
    rms_offset_s: Fact[float]
    frequency_ppm: Fact[float]
    residual_frequency_ppm: Fact[float]
    skew_ppm: Fact[float]
    root_delay_s: Fact[float]
    root_dispersion_s: Fact[float]
    update_interval_s: Fact[float]


def _amount(fields: dict[str, str], key: str, unit: str) -> Fact[float]:
    """`0.000004709 seconds fast of NTP time`, `20.837 ppm slow`, `+0.003 ppm`: the sign may be a word."""
    words = fields.get(key, "").split()
    if not words:
        return Unknown("Missing", key)
    if len(words) < 2 or words[1] != unit:
        return scalars.strange(fields[key], "NoUnit")
    found = scalars.real(words[0])
    if not isinstance(found, Value) or len(words) == 2:
        return found
    sign = _SIGN.get(words[2])
    return Value(sign * found.value) if sign else scalars.strange(fields[key], "UnknownDirection")


def _reference(fields: dict[str, str]) -> tuple[Fact[str], Fact[str]]:
    """The source's identifier, filled up to 8 digits, and its name or address: nothing in the brackets is no name."""
    if "Reference ID" not in fields:
        return Unknown("Missing", "Reference ID"), Unknown("Missing", "Reference ID")
    found = _REFERENCE.fullmatch(fields["Reference ID"])
    if not found:
        unread = scalars.strange(fields["Reference ID"], "UnreadableReference")
        return unread, unread
    name: Fact[str] = Value(found[2]) if found[2] else Unknown("NotNamed")
    return Value(found[1].upper().zfill(8)), name


def _synced(leap: Fact[str], reference: Fact[str]) -> Fact[bool]:
    if not isinstance(leap, Value):
        return Unknown("NoLeapStatus")
    follows = _FOLLOWS.get(leap.value)
    if follows is None:
        return Unknown("UnknownLeapStatus", raw.clean(leap.value, 80))
    if not follows or not isinstance(reference, Value):
        return Value(False) if not follows else Unknown("NoReference")
    return Value(reference.value not in _NO_SOURCE)


def _utc(cell: str) -> Fact[str]:
    """Seconds since 1970 as chronyc writes them for people."""
    seconds = scalars.real(cell)
    if not isinstance(seconds, Value) or not 0 <= seconds.value < 1 << 33:
        return scalars.strange(cell, "UnreadableTime")
    return Value(datetime.fromtimestamp(int(seconds.value), UTC).strftime("%a %b %d %H:%M:%S %Y"))


def _from_cells(line: str) -> Tracking:
    """Seconds and ppm. The clock's own offset is printed as the correction that it needs, which is positive where it is slow."""
    cells = line.split(",")
    leap: Fact[str] = Value(cells[13]) if cells[13] in _FOLLOWS else Unknown("UnknownLeapStatus", raw.clean(cells[13], 80))
    reference: Fact[str] = Value(cells[0])
    correction, last, rms, frequency, residual, skew, delay, dispersion, interval = map(scalars.real, cells[4:13])
    return Tracking(
        synced=_synced(leap, reference),
        leap=leap,
        reference_id=reference,
        reference_name=Value(cells[1]) if cells[1] else Unknown("NotNamed"),
        reference_time_utc=_utc(cells[3]),
        stratum=scalars.whole(cells[2]),
        system_offset_s=Value(0.0 - correction.value) if isinstance(correction, Value) else correction,
        last_offset_s=last,
        rms_offset_s=rms,
        frequency_ppm=frequency,
        residual_frequency_ppm=residual,
        skew_ppm=skew,
        root_delay_s=delay,
        root_dispersion_s=dispersion,
        update_interval_s=interval,
    )


def parse(said: str) -> Fact[Tracking]:
    """`chronyc tracking`; Unknown(DaemonDown) where chronyd does not answer, Absent(NotInstalled) where there is no chronyc."""
    found, last = text.ended(said)
    if last.rpartition(" : ")[2] in _FOLLOWS or last.rpartition(",")[2] in _FOLLOWS:
        found += last  # the last line of the output: the word is whole
    fields = {key.strip(): value.strip() for line in found.split("\n") for key, colon, value in [line.partition(" : ")] if colon}
    if reply := _REPLY.search(found + last):
        return Unknown("DaemonDown" if reply[1] == "506" else "Refused", raw.clean(found + last, 120))
    if absent := scalars.no_command((found + last).split("\n"), "chronyc"):
        return absent
    if cells := _CELLS.search(found):
        return Value(_from_cells(cells[0]))
    if not {"Leap status", "Reference ID", "Stratum"} & set(fields):
        return Unknown("NotTracking", raw.clean((found + last)[:400], 120))
    leap = scalars.wanted(fields, "Leap status")
    reference, name = _reference(fields)
    return Value(
        Tracking(
            synced=_synced(leap, reference),
            leap=leap,
            reference_id=reference,
            reference_name=name,
            reference_time_utc=scalars.wanted(fields, "Ref time (UTC)"),
            stratum=scalars.wanted_whole(fields, "Stratum"),
            system_offset_s=_amount(fields, "System time", "seconds"),
            last_offset_s=_amount(fields, "Last offset", "seconds"),
            rms_offset_s=_amount(fields, "RMS offset", "seconds"),
            frequency_ppm=_amount(fields, "Frequency", "ppm"),
            residual_frequency_ppm=_amount(fields, "Residual freq", "ppm"),
            skew_ppm=_amount(fields, "Skew", "ppm"),
            root_delay_s=_amount(fields, "Root delay", "seconds"),
            root_dispersion_s=_amount(fields, "Root dispersion", "seconds"),
            update_interval_s=_amount(fields, "Update interval", "seconds"),
        )
    )
