"""NVIDIA's RPM repository for EL9 (`rpms/rhel9`): real names, epochs and version patterns; contents are stand-ins.

Names and patterns: reconciler's compatibility facts, section el9.packages. The driver packages carry epoch 3 and
require each other at exactly one version, so a mixture is refused by the resolver as it is on a real node.
"""

from lab.packages.rpmspec import Rpm, logged

DRIVERS = ("570.172.08", "580.65.06", "580.82.07", "580.95.05", "580.126.20")
EPOCH = 3
DRIVER_VERSION = "/usr/share/nvidia/driver-version"  # of the module's source; DKMS builds it for the running kernel
_STANDIN = "/usr/lib/lab-gpus"


def _driver_set(version: str) -> list[Rpm]:
    def rpm(name: str, *requires: str, arch: str = "x86_64", **more: dict[str, str]) -> Rpm:
        exact = tuple(f"{other} = {EPOCH}:{version}" for other in requires)
        provides = (f"nvidia-kmod = {EPOCH}:{version}",) if name.startswith("kmod-") else ()
        return Rpm(name, version, "1.el9", arch, EPOCH, exact, provides, **more)  # type: ignore[arg-type]

    post = logged(f"kmod-nvidia-open-dkms {version} (loaded at the next boot)")
    dkms = {"post": f"{_STANDIN}/lab-gpus install {version}\n{post}", "preun": f'[ "$1" != 0 ] || {_STANDIN}/lab-gpus remove'}
    library = f"/usr/lib64/libnvidia-ml.so.{version}"
    return [
        rpm("nvidia-open", "nvidia-driver", "nvidia-driver-cuda", "kmod-nvidia-open-dkms", arch="noarch"),
        rpm("nvidia-driver", "nvidia-driver-libs", "nvidia-kmod-common", "nvidia-kmod"),
        rpm("nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-kmod-common", "nvidia-persistenced",
            links={"/usr/bin/nvidia-smi": f"{_STANDIN}/nvidia-smi"}),
        rpm("nvidia-driver-cuda-libs", "libnvidia-ml"),
        rpm("nvidia-driver-libs", "libnvidia-ml", "nvidia-kmod-common"),
        rpm("libnvidia-ml", files={library: "stand-in of the lab\n"},
            links={"/usr/lib64/libnvidia-ml.so.1": library.rpartition("/")[2]}),
        rpm("nvidia-kmod-common", "nvidia-kmod", "nvidia-modprobe", arch="noarch"),
        rpm("kmod-nvidia-open-dkms", "nvidia-kmod-common", arch="noarch",
            files={DRIVER_VERSION: version + "\n"}, scriptlets=dkms),
        rpm("nvidia-persistenced"),
        rpm("nvidia-modprobe"),
    ]  # fmt: skip


def _toolkit(major: int, minor: int, patch: str) -> Rpm:
    version = f"{major}.{minor}.{patch}"
    path = f"/usr/local/cuda-{major}.{minor}/version.json"
    text = f'{{"cuda": {{"name": "CUDA SDK", "version": "{version}"}}}}\n'
    return Rpm(f"cuda-toolkit-{major}-{minor}", version, "1", files={path: text})


def rpms() -> list[Rpm]:
    """The whole repository."""
    packages = [rpm for version in DRIVERS for rpm in _driver_set(version)]
    packages += [_toolkit(12, 8, patch) for patch in ("0", "1")] + [_toolkit(13, 0, patch) for patch in ("1", "2")]
    packages += [Rpm("libcudnn9-cuda-13", version, "1") for version in ("9.13.0.50", "9.26.0.51")]
    for version, cuda in (("2.28.3", "13.0"), ("2.29.7", "13.0")):
        release = f"1+cuda{cuda}"
        packages.append(Rpm("libnccl", version, release))
        packages.append(Rpm("libnccl-devel", version, release, requires=(f"libnccl = {version}-{release}",)))
    for version in ("4.5.2", "4.7.0"):
        core = f"datacenter-gpu-manager-4-core = 1:{version}"
        packages.append(Rpm("datacenter-gpu-manager-4-core", version, "1", epoch=1))
        packages.append(Rpm("datacenter-gpu-manager-4-cuda13", version, "1", epoch=1, requires=(core,)))
    return packages
