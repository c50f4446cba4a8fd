"""How fast the parsers of saved output are, format by format, in MB a second of CPU time: `python -m benchmarks.parsers`.

Inputs: the samples of the corpus as they are, one after the other; each sample repeated to a megabyte; the same with all numbers of
two digits or more different in each copy; for lists also the shortest rows that a program prints, all different. Last a kernel log
of 200 MB, once with few lines of interest and once a storm of them, in a process of its own. The garbage collector is off, as in
`reconcile facts parse`. The aim is 20 MB/s. Writes benchmarks/results/parsers.md.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from reconciler.facts.formats import FORMATS
from tests.corpus.cases import Case, cases

WANTED = 20.0  # MB/s
LARGE = 1_000_000
RESULTS = Path(__file__).parent / "results" / "parsers.md"
_NUMBER = re.compile(r"[1-9][0-9]+")
_TABLE = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n"
ROWS: dict[str, tuple[str, Callable[[int], str]]] = {
    "rpm-qa": ("", lambda n: f"lib{n}-{n % 9}.{n % 70}-{n % 30}.el9.x86_64\n"),
    "pip": ("", lambda n: f"pkg{n}=={n % 9}.{n % 70}.{n % 30}\n"),
    "df": ("Filesystem 1K-blocks Used Available Use% Mounted on\n", lambda n: f"/dev/sd{n} {n}7 {n}5 {n}2 {n % 100}% /d{n}\n"),
    "slurm": ("", lambda n: f"node{n},{('idle', 'mixed', 'down*')[n % 3]}\n"),
    "nccl-tests": (_TABLE, lambda n: f"{n}8 {n}2 float sum -1 {n % 999}.1 {n % 97}.21 {n % 89}.77 0 {n}.1 {n}.21 {n}.77 0\n"),
    "lspci": ("", lambda n: f"{n % 256:02x}:{n % 32:02x}.0 3D controller: NVIDIA Corporation Device {n:04x} (rev a1)\n"),
    "nvsmi-csv": ("index, uuid, temperature.gpu\n", lambda n: f"{n}, GPU-{n}, {n % 90}\n"),
    "kernel-log": ("", lambda n: f"[{n}.123456] usb 1-1: new device number {n}\n"),
    "vllm-metrics": ("", lambda n: f'vllm:num_requests_running{{engine="{n}"}} {n}.0\n'),
    "dcgm-metrics": ("", lambda n: f'DCGM_FI_DEV_GPU_TEMP{{gpu="{n}",UUID="GPU-{n}"}} {n % 90}\n'),
}
QUIET = "2026-01-02T03:04:05.{n:06d}+00:00 gpu01 kernel: [{n}.000001] audit: type=1400 apparmor=ALLOWED operation=open pid={n}\n"
XID = (
    "2026-01-02T03:04:05.{n:06d}+00:00 gpu01 kernel: [{n}.000001] NVRM: Xid (PCI:0000:3b:00): 31, pid={n}, name=python3, "
    "Ch 0000000{k}\n"
)
_LOG = """
import resource, sys, time
from benchmarks.parsers import kernel_log
from reconciler.facts.kernel_log import parse
text = kernel_log(int(sys.argv[1]), int(sys.argv[2]))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, began = peak(), time.process_time()
found = parse(text).value
took = time.process_time() - began
print(len(text) / 1e6, took, before, peak(), len(found.events), found.unlisted)
"""


def kernel_log(size: int, every: int) -> str:
    """A log of about `size` characters; each `every`th line is an Xid."""
    lines = (XID.format(n=n, k=n % 10) if n % every == 0 else QUIET.format(n=n) for n in range(size // len(QUIET) + 1))
    return "".join(lines)


def speed(name: str, texts: Iterable[str]) -> float:
    """MB/s of CPU over all texts, the better of two runs of each."""
    size = spent = 0.0
    for text in texts:
        took = []
        for _ in range(2):
            began = time.process_time()
            found = FORMATS[name](text)
            took.append(time.process_time() - began)
            del found  # to give the memory back is not parsing
        size += len(text.encode())
        spent += min(took)
    return size / spent / 1e6


def as_they_are(name: str, samples: list[Case]) -> float:
    """Real sizes: each sample a hundred times, so that the clock's steps do not count."""
    texts = [sample.text() for sample in samples]
    began = time.process_time()
    for _ in range(100):
        for text in texts:
            FORMATS[name](text)
    return 100 * sum(len(text.encode()) for text in texts) / (time.process_time() - began) / 1e6


def repeated(sample: Case) -> str:
    text = sample.text()
    return (text if text.endswith("\n") else text + "\n") * (LARGE // max(len(text), 1) + 1)


def varied(sample: Case) -> str:
    """The same size, but no two copies alike."""
    chance = random.Random(sample.name)
    text = sample.text()
    whole = text if text.endswith("\n") else text + "\n"

    def other(found: re.Match[str]) -> str:
        length = len(found[0])
        return str(chance.randrange(10 ** (length - 1), 10**length)) if length < 20 else found[0]

    return "".join(_NUMBER.sub(other, whole) for _ in range(LARGE // max(len(text), 1) + 1))


def row(name: str, samples: list[Case]) -> list[str]:
    """One format's line of the table."""
    single = {sample.sample: speed(name, [repeated(sample)]) for sample in samples}
    slowest = min(single, key=lambda sample: single[sample])
    short = ""
    if name in ROWS:
        head, make = ROWS[name]
        body = [make(n) for n in range(LARGE // len(make(5000)))]
        found = speed(name, [head + "".join(body)])
        size = len("".join(body)) / len(body)
        short = f"{found:.0f} ({size:.0f} bytes a row, {found * 1e6 / size:,.0f} rows/s)"
    cells = [
        name,
        f"{as_they_are(name, samples):.0f}",
        f"{speed(name, map(repeated, samples)):.0f}",
        f"{single[slowest]:.0f} {slowest}",
    ]
    return [*cells, f"{speed(name, map(varied, samples)):.0f}", short]


def log_line(every: int) -> str:
    argv = (sys.executable, "-c", _LOG, "200000000", str(every))
    said = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent).stdout.split()
    size, took, before, peak, events, unlisted = map(float, said)
    what = "one line of 10,000 is an Xid" if every > 1 else "every line is an Xid"
    cells = (
        what,
        f"{size:.0f}",
        f"{took:.1f}",
        f"{size / took:.0f}",
        f"{before:.0f}",
        f"{peak:.0f}",
        f"{events:.0f}",
        f"{unlisted:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="only these; nothing is written then")
    wanted = parser.parse_args().formats
    gc.disable()
    out = [
        "| format | as they are | repeated | slowest sample | all different | short rows, all different |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(out))
    for name in wanted or FORMATS:
        out.append(f"| {' | '.join(row(name, [case for case in cases() if case.format == name]))} |")
        print(out[-1], flush=True)
        gc.collect()
    if wanted:
        return 0
    logs = [
        "| kernel log | MB | CPU s | MB/s | RSS MB before | peak RSS MB | events | unlisted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    logs += [log_line(every) for every in (10_000, 1)]
    print("\n".join(logs))
    machine = f"2 cores shared with other work, 24 GiB, Debian 12, Python {platform.python_version()}"
    about = (__doc__ or "").split("\n\n")[1].replace("\n", " ")
    head = ["# Speed of the parsers", "", f"`python -m benchmarks.parsers`, MB a second of CPU time; {machine}.", "", about, ""]
    RESULTS.write_text("\n".join([*head, *out, "", *logs, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
