"""What torch and vLLM collect about a machine: `python -m torch.utils.collect_env`, vLLM's collect_env.py."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from reconciler.facts import raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_GPU = re.compile(r"GPU ([0-9]{1,4}): (.+)")
_MIG = re.compile(r"MIG (\S+) +Device +[0-9]+:")
_PIP = re.compile(r"\[pip3?\] ([A-Za-z0-9._-]+)(?:==| \(| +)([0-9][^\s)]*)")  # pip 9: `torch (0.4.1)`
_CONDA = re.compile(r"\[conda\] ([A-Za-z0-9._-]+) +([0-9]\S*)")
_WARNED = re.compile(r"driver on your system is too old \(found version ([0-9]{4,6})\)")
_PATH = re.compile(r"/|[A-Z]:\\")
_MARK = re.compile(r"[*-] (?=[A-Z])")
_GPUS = "GPU models and configuration"
_KEYS = frozenset(
    (
        *("PyTorch version", "Is debug build", "CUDA used to build PyTorch", "ROCM used to build PyTorch", "OS", "GCC version"),
        *("Clang version", "CMake version", "Libc version", "Python version", "Python platform", "Is CUDA available"),
        *("CUDA runtime version", "CUDA_MODULE_LOADING set to", _GPUS, "Nvidia driver version"),
        *("cuDNN version", "HIP runtime version", "MIOpen runtime version", "Is XNNPACK available", "vLLM Version", "ROCM Version"),
    )
)
_LIBRARIES = "Versions of relevant libraries"
# collect_env.py's words for nothing: a tool that failed, torch without CUDA that finds no driver either, torch not installed
_NOTHING: dict[str, Absent | Unknown] = {
    "Could not collect": Unknown("CouldNotCollect"),
    "No CUDA": Absent("NoCuda"),
    "None": Absent("NotBuiltWith"),
    "N/A": Absent("NotApplicable"),
    "": Unknown("Missing"),
}
# what has to fit together
_CORE = ("numpy", "torch", "torchvision", "transformers", "triton", "nvidia-nccl-cu", "flashinfer")


@dataclass(frozen=True, slots=True)
class Environment:
    """`said`: the report's own words by its keys; the other fields are what they mean.

    `driver`: of WSL a Windows version. `driver_cuda`: the driver's CUDA, which only a warning tells. `gpus` in order; Unknown where
    the report does not reach them. `gpu_names`: the different ones, sorted. `core`: of `pip`, what has to fit together.
    `complete`: the report reaches its list of libraries.
    """

    said: dict[str, str]
    torch: Fact[str]
    cuda_build: Fact[str]
    rocm_build: Fact[str]
    cuda_available: Fact[bool]
    cuda_runtime: Fact[str]
    driver: Fact[str]
    driver_cuda: Fact[str]
    cudnn: tuple[str, ...]
    python: Fact[str]
    os: Fact[str]
    gpus: Fact[tuple[str, ...]]
    gpu_count: Fact[int]
    gpu_names: Fact[tuple[str, ...]]
    mig_profiles: tuple[str, ...]
    pip: dict[str, str]
    core: dict[str, str]
    conda: dict[str, str]
    complete: bool


@dataclass(slots=True)
class _Found:
    said: dict[str, str] = field(default_factory=dict)
    gpus: list[str] = field(default_factory=list)
    migs: list[str] = field(default_factory=list)
    cudnn: list[str] = field(default_factory=list)
    pip: dict[str, str] = field(default_factory=dict)
    conda: dict[str, str] = field(default_factory=dict)
    last: str = ""
    complete: bool = False


def _library(found: _Found, line: str) -> None:
    if pip := _PIP.match(line):
        found.pip.setdefault(pip[1], pip[2])
    elif conda := _CONDA.match(line):
        found.conda.setdefault(conda[1], conda[2])


def _bare(line: str) -> str:
    """Without the mark of a list, that people put before it in a report of an issue."""
    bare = line.strip()
    return bare[2:] if _MARK.match(bare) else bare


def _continued(found: _Found, line: str) -> None:
    """Lines that belong to the key before them: GPUs, their MIG devices, several cuDNN libraries."""
    if found.last == _GPUS:
        gpu, mig = _GPU.match(line), _MIG.match(line)
        if gpu:
            found.gpus.append(gpu[2].strip())
        elif mig:
            found.migs.append(mig[1])
    elif found.last == "cuDNN version" and _PATH.match(line):
        found.cudnn.append(line)


def _take(found: _Found, line: str) -> None:
    """One line: a key that we know, something of the key before, or a library."""
    if line.startswith("["):
        _library(found, line)
        return
    key, colon, value = line.partition(":")
    key, value = key.rstrip(), value.strip()
    if line.startswith(_LIBRARIES):
        found.complete, found.last = True, ""
    elif colon and key in _KEYS:
        found.last = key if key not in found.said else ""
        found.said.setdefault(key, value)
        _continued(found, value)
    elif line:
        _continued(found, line)
    elif found.last == "cuDNN version":
        found.last = ""


def _meant(said: dict[str, str], key: str) -> Fact[str]:
    if key not in said:
        return Unknown("Missing", key)
    found = said[key]
    return _NOTHING.get(found, Value(found))


def _available(said: dict[str, str]) -> Fact[bool]:
    """True with a ROCm build says that HIP is. Torch up to 1.5 says Yes and No."""
    found = _meant(said, "Is CUDA available")
    if not isinstance(found, Value):
        return found
    known = {"True": True, "False": False, "Yes": True, "No": False}.get(found.value)
    return Unknown("Unreadable", raw.clean(found.value[:400], 80)) if known is None else Value(known)


def _gpus(found: _Found) -> Fact[tuple[str, ...]]:
    """Unknown(Truncated) where the text ends in it; torch for ROCm names one GPU, the current one, however many there are."""
    if found.last == _GPUS:
        return Unknown("Truncated", _GPUS)
    if found.gpus:
        return Value(tuple(found.gpus))
    said = _meant(found.said, _GPUS)
    return Unknown("OnlyCurrentDevice", raw.clean(said.value[:400], 120)) if isinstance(said, Value) else said


def _driver_cuda(lines: list[str]) -> Fact[str]:
    """11040 is CUDA 11.4 (CUDA_VERSION in cuda.h)."""
    for line in lines:
        if "too old" in line and (warned := _WARNED.search(line)):
            return Value(f"{int(warned[1]) // 1000}.{int(warned[1]) % 1000 // 10}")
    return Unknown("NotSaid")


def _summed(found: _Found, lines: list[str]) -> Environment:
    python, gpus = _meant(found.said, "Python version"), _gpus(found)
    return Environment(
        said=found.said,
        torch=_meant(found.said, "PyTorch version"),
        cuda_build=_meant(found.said, "CUDA used to build PyTorch"),
        rocm_build=_meant(found.said, "ROCM used to build PyTorch"),
        cuda_available=_available(found.said),
        cuda_runtime=_meant(found.said, "CUDA runtime version"),
        driver=_meant(found.said, "Nvidia driver version"),
        driver_cuda=_driver_cuda(lines),
        cudnn=tuple(found.cudnn),
        python=Value(python.value.split(None, 1)[0]) if isinstance(python, Value) else python,
        os=_meant(found.said, "OS"),
        gpus=gpus,
        gpu_count=Value(len(gpus.value)) if isinstance(gpus, Value) else gpus,
        gpu_names=Value(tuple(sorted(set(gpus.value)))) if isinstance(gpus, Value) else gpus,
        mig_profiles=tuple(found.migs),
        pip=found.pip,
        core={name: version for name, version in found.pip.items() if name in _CORE or name.startswith(_CORE[-2:])},
        conda=found.conda,
        complete=found.complete,
    )


def parse(said: str) -> Fact[Environment]:
    """Either form, with whatever was logged before it; Unknown(NoReport) where it is none."""
    whole, cut = text.ended(said)
    lines = [_bare(line) for line in whole.split("\n")]
    found = _Found()
    for line in lines:
        _take(found, line)
    if not {"PyTorch version", "Python version", "Nvidia driver version"} & set(found.said):
        return Unknown("NoReport", raw.clean((whole + cut)[:400], 120))
    return Value(_summed(found, lines))
