"""Which versions the repositories offer, asked on private caches below /run: looking must not change the node's own."""

import os
import shutil
from typing import Any, Callable, Dict, List

from reconciler.node import state

Runner = Callable[[List[Dict[str, Any]]], List[Dict[str, Any]]]


def ask(part: Dict[str, Any], run_all: Runner) -> Dict[str, Any]:
    return (_dnf if part["manager"] == "dnf" else _apt)(part, run_all)


def _definitions(part: Dict[str, Any], directory: str) -> str:
    """Repositories that are declared and not on the node yet count as well: a plan is about what will be."""
    os.makedirs(directory, 0o700, exist_ok=True)
    for old in os.listdir(directory):
        os.unlink(os.path.join(directory, old))
    for name, text in part["repositories"]:
        with open(os.path.join(directory, os.path.basename(name)), "w") as f:
            f.write(text)
    return directory


def _dnf(part: Dict[str, Any], run_all: Runner) -> Dict[str, Any]:
    extra = _definitions(part, os.path.join(state.RUN, "dnf", "repos.d"))
    # versionlock hides versions; generate_completion_cache writes below /var/cache whatever cachedir says
    argv = ["dnf", "-q", "repoquery", "--showduplicates", "--disableplugin=versionlock,generate_completion_cache"]
    argv += ["--setopt=cachedir=" + os.path.join(state.RUN, "dnf", "cache"), "--setopt=reposdir=/etc/yum.repos.d," + extra]
    argv += ["--setopt=logdir=/run/reconcile/dnf", "--setopt=persistdir=/run/reconcile/dnf/persist"]
    if part.get("every_stream"):
        argv.append("--disable-modular-filtering")
    argv += ["--qf", "%{name}\\t%{epoch}\\t%{version}\\t%{release}\\t%{arch}", "--"] + part["names"]
    return run_all([{"argv": argv, "deadline": part["deadline"]}])[0]


def _apt(part: Dict[str, Any], run_all: Runner) -> Dict[str, Any]:
    base = os.path.join(state.RUN, "apt")
    for directory in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(base, directory), 0o755, exist_ok=True)
    os.chmod(state.RUN, 0o711)  # apt fetches as the user _apt, who has to reach his folders
    options = ["-o", "Dir::State::lists=" + os.path.join(base, "lists"), "-o", "Dir::Cache=" + os.path.join(base, "cache")]
    if part["repositories"]:
        # apt reads one folder of sources: the node's own go into ours beside what is declared
        sources = _definitions(part, os.path.join(base, "sources.list.d"))
        os.chmod(sources, 0o755)
        for name in os.listdir("/etc/apt/sources.list.d"):
            if not os.path.exists(os.path.join(sources, name)):
                shutil.copy(os.path.join("/etc/apt/sources.list.d", name), os.path.join(sources, name))
        options += ["-o", "Dir::Etc::sourceparts=" + sources]
    update = run_all([{"argv": ["apt-get", "-q"] + options + ["update"], "deadline": part["deadline"]}])[0]
    if update["status"] == 0 and b"Failed to fetch" in update["err"]:
        # a mere warning to apt, which goes on with the lists that it has: what is missing there would look like not on offer
        update["status"] = 100
    if update["status"] != 0:
        return update
    argv = ["apt-cache"] + options + ["madison", "--"] + part["names"]
    return run_all([{"argv": argv, "deadline": part["deadline"]}])[0]
