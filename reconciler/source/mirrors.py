"""The package repository definition that follows from `mirrors`."""

from __future__ import annotations

from reconciler.model.desired import FileSpec, PackageManager

_NOTE = "# Managed by reconcile (mirrors.nvidia of the Cluster): changes made here are undone.\n"
# Both below https://developer.download.nvidia.com/compute/cuda/repos/: the key that signs the rpm repositories of EL 9,
# and where the package cuda-keyring puts the key of the deb repositories.
_RPM_KEY = "D42D0685.pub"
_DEB_KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"


def nvidia_repository(mirror: str, manager: PackageManager, folder: str) -> FileSpec:
    """The file that makes NVIDIA's packages available from a mirror.

    `mirror` is the URL of what mirrors https://developer.download.nvidia.com/compute/cuda/repos, `folder` the
    distribution's name there (rhel9, debian12).
    """
    url = f"{mirror.rstrip('/')}/{folder}/x86_64/"
    if manager == "dnf":
        path = "/etc/yum.repos.d/reconcile-nvidia.repo"
        text = (
            f"[reconcile-nvidia]\nname=NVIDIA packages for {folder}, from this site's mirror\nbaseurl={url}\n"
            f"enabled=1\ngpgcheck=1\ngpgkey={url}{_RPM_KEY}\n"
        )
    else:
        path = "/etc/apt/sources.list.d/reconcile-nvidia.sources"
        text = f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: {_DEB_KEYRING}\n"
    return FileSpec(path, (_NOTE + text).encode(), repository=True)
