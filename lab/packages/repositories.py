"""All package repositories of the lab, from the cache."""

from dataclasses import dataclass
from pathlib import Path

from lab.images.digest import digest, sources
from lab.images.scratch import scratch
from lab.images.store import obtain
from lab.packages import debbuild, debs, debspec, el9_nvidia, el9_os, rpmbuild, wheels
from lab.packages.debspec import Deb
from lab.packages.rpmspec import Rpm, render
from lab.shell import run

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Repositories:
    """Folders on this machine, each ready to be served."""

    rpms_os: Path
    rpms_nvidia: Path
    debs: Path
    debs_nvidia: Path
    wheels: Path

    def by_url(self) -> dict[str, Path]:
        """URL path below the package server -> folder."""
        return {
            "rpms/os/x86_64": self.rpms_os,
            "rpms/rhel9/x86_64": self.rpms_nvidia,
            "debs": self.debs,
            "debs/nvidia": self.debs_nvidia,
            "wheels": self.wheels,
        }


def repositories(cache: Path, time_server: str) -> Repositories:
    """Build what the cache lacks."""
    gnupg = rpmbuild.signing_home(cache)
    tree = obtain(cache, "chrony", digest({"recipe": "apt-get download chrony"}), _unpack_chrony)
    return Repositories(
        rpms_os=_rpms(cache, "rpms-os", el9_os.rpms(time_server, str(tree)), gnupg),
        rpms_nvidia=_rpms(cache, "rpms-rhel9", el9_nvidia.rpms(), gnupg),
        debs=_debs(cache, "debs", debs.debs(time_server, str(tree))),
        debs_nvidia=_debs(cache, "debs-nvidia", debs.nvidia()),
        wheels=obtain(cache, "wheels", digest(sources([_HERE / "wheels.py"])), wheels.build),
    )


def _rpms(cache: Path, name: str, rpms: list[Rpm], gnupg: Path) -> Path:
    specs = {rpm.filename: render(rpm) for rpm in rpms}
    key = digest({**specs, **sources([_HERE / "rpmbuild.py"]), "key": next(gnupg.glob("*.pub")).read_bytes()})
    return obtain(cache, name, key, lambda out: rpmbuild.build_repository(rpms, out, gnupg))


def _debs(cache: Path, name: str, packages: list[Deb]) -> Path:
    trees = {deb.filename: repr((debspec.tree(deb), deb.copies)) for deb in packages}
    key = digest({**trees, **sources([_HERE / "debbuild.py"])})
    return obtain(cache, name, key, lambda out: debbuild.build_repository(packages, out, name))


def _unpack_chrony(out: Path) -> None:
    with scratch("deb") as folder:
        run("apt-get", "download", "-q", "chrony", cwd=folder)
        run("dpkg-deb", "-x", next(folder.glob("chrony_*.deb")), out)
