"""Builds, signs and indexes RPM repositories."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.errors import LabError
from lab.images.scratch import scratch
from lab.packages.rpmspec import Rpm, render
from lab.shell import run

KEY_FILE = "D42D0685.pub"  # the name that NVIDIA gives its key in this repository
_KEY_NAME = "reconcile lab packages"
_DEFINES = {
    "_build_id_links": "none",
    "debug_package": "%{nil}",
    "__os_install_post": "%{nil}",
    "_binary_payload": "w1.gzdio",
    "_source_filedigest_algorithm": "8",
    "_binary_filedigest_algorithm": "8",
    "_build_name_fmt": "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
}


def signing_home(cache: Path) -> Path:
    """The GnuPG home that holds the lab's package key; made once and kept, so that old images still trust it."""
    home = cache / "gnupg"
    if not (home / KEY_FILE).exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(mode=0o700, parents=True)
        try:
            _gpg(home, "--batch", "--passphrase", "", "--quick-gen-key", _KEY_NAME, "rsa3072", "sign", "never")
            exported = _gpg(home, "--armor", "--export", _KEY_NAME)
        finally:
            run("gpgconf", "--homedir", home, "--kill", "all", check=False)
        (home / KEY_FILE).write_text(exported)
    return home


def _gpg(home: Path, *words: str) -> str:
    return run("gpg", "--homedir", home, "--quiet", *words).stdout


def build_repository(rpms: list[Rpm], out: Path, gnupg: Path) -> None:
    """Build every package into `out`, sign all with the lab's key and write the repodata and the public key."""
    out.mkdir(parents=True)
    with scratch("rpm") as folder:
        workers = min(4, os.cpu_count() or 1)
        with ThreadPoolExecutor(workers) as pool:
            for built in [pool.submit(_build, rpms[i::workers], folder / str(i), out) for i in range(workers)]:
                built.result()
        missing = [rpm.nevra for rpm in rpms if not (out / rpm.filename).exists()]
        if missing:
            raise LabError(f"rpmbuild succeeded and did not make {', '.join(missing)}")
        _sign(sorted(out.glob("*.rpm")), gnupg, folder)
    shutil.copy(gnupg / KEY_FILE, out / KEY_FILE)
    run("createrepo_c", "-q", out)


def _build(rpms: list[Rpm], top: Path, out: Path) -> None:
    top.mkdir()
    specs = []
    for rpm in rpms:
        spec = top / f"{rpm.filename}.spec"
        spec.write_text(render(rpm))
        specs.append(spec)
    defines = [word for name, value in _DEFINES.items() for word in ("--define", f"{name} {value}")]
    run("rpmbuild", "-bb", "--quiet", "--define", f"_topdir {top}", "--define", f"_rpmdir {out}", *defines, *specs)


def _sign(files: list[Path], gnupg: Path, home: Path) -> None:
    # rpmsign waits for a pinentry on a terminal it finds: none here
    defines = {"_gpg_path": str(gnupg), "_gpg_name": _KEY_NAME, "__gpg": shutil.which("gpg") or "gpg"}
    argv = ["rpmsign", "--addsign", *(word for pair in defines.items() for word in ("--define", " ".join(pair)))]
    env = {**os.environ, "GNUPGHOME": str(gnupg), "HOME": str(home)}
    try:
        run(*argv, *files, env=env)
    finally:
        subprocess.run(["gpgconf", "--homedir", str(gnupg), "--kill", "all"], capture_output=True, check=False)
