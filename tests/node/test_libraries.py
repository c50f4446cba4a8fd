"""Which NCCL, cuDNN and CUDA runtime torch loads: small libraries made with gcc, laid out as torch's wheels are, and a real loader.

The layout is that of torch 2.11+cu130: libtorch_global_deps.so needs libcudart, libtorch_cuda.so needs libcudart, libnccl and
libcudnn, both with an RPATH of $ORIGIN/../../nvidia/*/lib; libcudnn.so opens its parts when it is used, by its own RUNPATH.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from reconciler.facts.cuda_libraries import FACT, CudaLibraries, InEnvironment, Loaded
from reconciler.model.fact import Absent, Raw, Unknown, Value
from reconciler.node.fragments import libraries as fragment

SOURCES = {
    "nccl": "int ncclGetVersion(int *v) { *v = VERSION; return 0; }",
    "cudart": "int cudaRuntimeGetVersion(int *v) { *v = VERSION; return 0; }",
    "cudnn_graph": "unsigned long part(void) { return VERSION; }",
    "cudnn": """#include <dlfcn.h>
unsigned long cudnnGetVersion(void) {
  void *graph = dlopen("libcudnn_graph.so.9", RTLD_LAZY);
  unsigned long (*part)(void) = graph ? (unsigned long (*)(void))dlsym(graph, "part") : 0;
  return part ? part() : VERSION;
}""",
}
SONAMES = {"nccl": "libnccl.so.2", "cudart": "libcudart.so.13", "cudnn": "libcudnn.so.9", "cudnn_graph": "libcudnn_graph.so.9"}
RPATH = ":".join(f"$ORIGIN/../../nvidia/{name}/lib" for name in ("cudnn", "nccl", "cu13")) + ":$ORIGIN"


def compiled(target: Path, source: str, *options: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    argv = ("gcc", "-shared", "-fPIC", "-o", str(target), "-Wl,--no-as-needed", "-x", "c", "-", "-x", "none", *options)
    subprocess.run(argv, input=source, text=True, check=True)
    return target


def library(directory: Path, kind: str, version: int) -> Path:
    name = SONAMES[kind]
    paths = ("-Wl,--enable-new-dtags,-rpath,$ORIGIN", "-ldl") if kind == "cudnn" else ()
    return compiled(directory / name, SOURCES[kind], f"-DVERSION={version}", f"-Wl,-soname,{name}", *paths)


def torch(packages: Path, tags: str = "--disable-new-dtags") -> None:
    """`tags`: with --enable-new-dtags the same path is a RUNPATH, which LD_LIBRARY_PATH beats."""
    files = {
        kind: library(packages / "nvidia" / where / "lib", kind, version)
        for kind, where, version in (("cudart", "cu13", 13000), ("nccl", "nccl", 22809), ("cudnn", "cudnn", 91900))
    }
    library(packages / "nvidia/cudnn/lib", "cudnn_graph", 91900)
    lib = packages / "torch/lib"
    options = (f"-Wl,{tags},-rpath,{RPATH}",)
    compiled(lib / "libtorch_global_deps.so", "", *options, str(files["cudart"]))
    compiled(lib / "libtorch_cuda.so", "", *options, *map(str, files.values()))


def environment(root: Path) -> Path:
    venv.create(root, with_pip=False)
    (found,) = root.glob("lib/python3*/site-packages")
    return found


def looked(env: Path, library_path: str = "") -> CudaLibraries:
    said = fragment.look({"patterns": [str(env)], "prefixes": [], "library_path": library_path})
    found = FACT.parse((Raw(json.dumps(said).encode(), status=0),))
    assert isinstance(found, Value)
    assert isinstance(found.value, CudaLibraries)
    return found.value


def inside(env: Path, library_path: str = "") -> InEnvironment:
    return looked(env, library_path).environments[os.path.realpath(env)]


def loaded(env: Path, library_path: str = "") -> dict[str, tuple[str, str]]:
    """(path, version) by kind, each known."""
    found = {}
    for kind, fact in inside(env, library_path).loaded.items():
        assert isinstance(fact, Value), (kind, fact)
        assert isinstance(fact.value.version, Value), (kind, fact)
        found[kind] = (fact.value.path, fact.value.version.value)
    return found


def mapped(env: Path, library_path: str) -> dict[str, str]:
    """The truth: a process of that Python that opens torch's libraries as `import torch` does, and what is in its memory then."""
    lib = next(env.glob("lib/python3*/site-packages")) / "torch/lib"
    code = f"""import ctypes, os
ctypes.CDLL('{lib}/libtorch_global_deps.so', mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL('{lib}/libtorch_cuda.so', mode=os.RTLD_LAZY)
print(open('/proc/self/maps').read())"""
    variables = {"LD_LIBRARY_PATH": library_path} if library_path else {}
    said = subprocess.check_output((env / "bin/python", "-Ic", code), text=True, env=variables)
    return {match[2]: match[1] for match in re.finditer(r"(/\S+/lib(nccl|cudnn|cudart)\.so\S*)", said)}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("libraries") / "env"
    torch(environment(root))
    return root


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other versions, as a system or a job's LD_LIBRARY_PATH may offer."""
    directory = tmp_path_factory.mktemp("others")
    for kind, version in (("cudart", 12080), ("nccl", 22707), ("cudnn", 91400), ("cudnn_graph", 91400)):
        library(directory, kind, version)
    return directory


def test_the_wheels_of_the_environment(env: Path) -> None:
    packages = next(env.glob("lib/python3*/site-packages"))
    assert loaded(env) == {
        "nccl": (f"{packages}/nvidia/nccl/lib/libnccl.so.2", "2.28.9"),
        "cudnn": (f"{packages}/nvidia/cudnn/lib/libcudnn.so.9", "9.19.0"),
        "cudart": (f"{packages}/nvidia/cu13/lib/libcudart.so.13", "13.0"),
    }
    assert {kind: path for kind, (path, _) in loaded(env).items()} == mapped(env, "")


def test_an_rpath_beats_the_path_of_a_job_but_parts_of_cudnn_come_from_it(env: Path, others: Path) -> None:
    """Seen with torch 2.11+cu130 on an H200: its own libcudnn.so.9 of 9.19 over the parts of a system's 9.14."""
    found = loaded(env, str(others))
    assert {kind: path for kind, (path, _) in found.items()} == mapped(env, str(others))
    assert (found["nccl"][1], found["cudart"][1], found["cudnn"][1]) == ("2.28.9", "13.0", "9.14.0")
    cudnn = inside(env, str(others)).loaded["cudnn"]
    assert isinstance(cudnn, Value)
    assert cudnn.value.parts == (str(others / "libcudnn_graph.so.9"),)


def test_the_path_of_a_job_beats_a_runpath(tmp_path: Path, others: Path) -> None:
    torch(environment(tmp_path / "env"), "--enable-new-dtags")
    found = loaded(tmp_path / "env", str(others))
    assert {kind: path for kind, (path, _) in found.items()} == mapped(tmp_path / "env", str(others))
    assert {kind: version for kind, (_, version) in found.items()} == {"nccl": "2.27.7", "cudart": "12.8", "cudnn": "9.14.0"}
    assert loaded(tmp_path / "env")["nccl"][1] == "2.28.9"


def test_what_torch_needs_and_the_loader_does_not_find(tmp_path: Path, others: Path) -> None:
    packages = environment(tmp_path / "env")
    torch(packages)
    (packages / "nvidia/nccl/lib/libnccl.so.2").unlink()
    found = inside(tmp_path / "env").loaded
    assert found["nccl"] == Unknown("NotFoundByLoader", "libnccl.so.2")
    assert isinstance(found["cudnn"], Value)
    assert loaded(tmp_path / "env", str(others))["nccl"] == (str(others / "libnccl.so.2"), "2.27.7")


def test_a_library_that_cannot_say_its_version(tmp_path: Path) -> None:
    packages = environment(tmp_path / "env")
    torch(packages)
    compiled(packages / "nvidia/nccl/lib/libnccl.so.2", "", "-Wl,-soname,libnccl.so.2")
    found = inside(tmp_path / "env").loaded["nccl"]
    assert isinstance(found, Value)
    assert isinstance(found.value, Loaded)
    assert isinstance(found.value.version, Unknown)
    assert found.value.version.why == "NotLoadable"
    assert "ncclGetVersion" in found.value.version.detail


def test_a_build_that_links_no_nccl(tmp_path: Path) -> None:
    packages = environment(tmp_path / "env")
    torch(packages)
    compiled(packages / "torch/lib/libtorch_cuda.so", "")
    assert inside(tmp_path / "env").loaded["nccl"] == Absent("NotLinked")


def test_a_build_without_cuda_and_an_environment_without_torch(tmp_path: Path) -> None:
    packages = environment(tmp_path / "env")
    assert set(inside(tmp_path / "env").loaded.values()) == {Absent("NotInstalled")}
    compiled(packages / "torch/lib/libtorch_cpu.so", "")
    assert set(inside(tmp_path / "env").loaded.values()) == {Absent("NoCudaBuild")}


def test_an_environment_without_its_interpreter(tmp_path: Path) -> None:
    packages = environment(tmp_path / "env")
    torch(packages)
    for python in (tmp_path / "env/bin").glob("python*"):
        python.unlink()
    assert set(inside(tmp_path / "env").loaded.values()) == {Absent("NoInterpreter")}


def test_wheels_and_every_copy_are_named(tmp_path: Path) -> None:
    packages = environment(tmp_path / "env[1]")  # a name that is a pattern itself
    for name in ("nvidia_nccl_cu13-2.28.9", "nvidia_cudnn_cu13-9.19.0.56", "nvidia_cublas-13.1"):
        (packages / f"{name}.dist-info").mkdir()
    copies = [packages / f"nvidia/nccl/lib/{name}" for name in ("libnccl.so.2", "libnccl.so.2.28.9")]
    for copy in (*copies, packages / "torch/lib/libcudart-d0da41ae.so.11.0"):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    said = fragment.look({"patterns": [f"{tmp_path}/env*"], "prefixes": [], "library_path": ""})
    found = FACT.parse((Raw(json.dumps(said).encode(), status=0),))
    assert isinstance(found, Value)
    one = found.value.environments[str(tmp_path / "env[1]")]
    assert one.wheels == {"nvidia-nccl-cu13": "2.28.9", "nvidia-cudnn-cu13": "9.19.0.56"}
    assert one.copies == (*map(str, copies), f"{packages}/torch/lib/libcudart-d0da41ae.so.11.0")


def test_this_machine(tmp_path: Path) -> None:
    """Whatever it has: what the loader's cache names, as `ldconfig -p` says."""
    said = subprocess.check_output(("ldconfig", "-p"), text=True, env={"PATH": "/usr/sbin:/sbin"})
    wanted = re.findall(r"^\s+(lib(?:nccl|cudnn|cudart)\.so[.\d]*) .* => (\S+)$", said, re.MULTILINE)
    system = looked(Path(sys.prefix)).system
    if wanted:
        assert isinstance(system, Value)
        assert [(copy.name, copy.path) for copy in system.value] == wanted
        assert all(Path(copy.real).resolve() == Path(copy.path).resolve() for copy in system.value)
    else:
        assert system == Absent("NotInstalled")
