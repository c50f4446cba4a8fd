"""Real Python environments: what the fragment and its parser say, against pip and Python of each environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import pytest

from reconciler.facts.live import About
from reconciler.facts.python_distributions import Damaged, Shadowed, frozen
from reconciler.facts.python_environments import FACT, Environment, Environments
from reconciler.model.fact import Absent, Raw, Unknown, Value
from reconciler.node.fragments import environments as fragment
from tests.node.wheels import project, wheel

QUIET = {
    "PATH": os.environ["PATH"],
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_NO_INDEX": "1",
    "PYTHONNOUSERSITE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def look(*patterns: object, interpreters: tuple[str, ...] = ()) -> Environments:
    said = fragment.look({"patterns": [str(p) for p in patterns], "interpreters": interpreters})
    found = FACT.parse((Raw(json.dumps(said).encode(), status=0),))
    assert isinstance(found, Value)
    assert isinstance(found.value, Environments)
    return found.value


def one(path: Path) -> Environment:
    return look(path).environments[os.path.realpath(path)]


def lines(environment: Environment) -> list[str]:
    return sorted(map(frozen, environment.distributions.values()), key=str.lower)


def freeze(python: Path) -> list[str]:
    """pip's own list, without the comment lines in which it says what it thinks of an editable one."""
    argv = (sys.executable, "-m", "pip", "--python", python, "freeze", "--all")
    done = subprocess.run(argv, env=QUIET, cwd="/", capture_output=True, text=True, check=True)
    return sorted((line for line in done.stdout.splitlines() if not line.startswith("#")), key=str.lower)


def pip(environment: Path, *arguments: str) -> None:
    options = ("-q", "--no-deps", "--no-build-isolation", *arguments)
    argv = (str(environment / "bin/python"), "-I", "-m", "pip", "install", *options)
    subprocess.run(argv, env=QUIET, cwd=environment.parent, check=True)


def site(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with one distribution of each origin, installed by pip itself."""
    root = tmp_path_factory.mktemp("environments")
    env = root / "env"
    venv.create(env, with_pip=True)
    pip(env, str(wheel(root, "alpha", "1.0+cpu")))
    wheel(root, "beta_Two.x", "2.0")
    pip(env, "beta_Two.x", "--find-links", str(root))
    pip(env, "-e", str(project(root / "edit me", "edit_me", "3.0")))
    source = project(root / "source", "vcs", "4.0")
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x")):
        subprocess.run(("git", "-C", source, *words), check=True)
    pip(env, f"git+file://{source}")
    develop(site(env), root / "old")
    return env


def develop(packages: Path, project: Path) -> None:
    """What `setup.py develop` of setuptools 65 leaves; newer ones cannot make this form any more, environments still have it."""
    info = project / "Old_Style.egg-info"
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: Old-Style\nVersion: 0.1\n")
    (packages / "Old-Style.egg-link").write_text(f"{project}\n.")
    (packages / "easy-install.pth").write_text(f"{project}\n")


def test_one_of_each_origin_as_pip_lists_them(made: Path) -> None:
    found = one(made)
    assert lines(found) == freeze(made / "bin/python")
    assert {"alpha", "beta-two-x", "edit-me", "vcs", "old-style", "pip"} <= set(found.distributions)
    assert (found.shadowed, found.damaged) == ((), ())


def test_what_pip_does_not_list(made: Path) -> None:
    found = one(made).distributions
    alpha, beta, old = found["alpha"], found["beta-two-x"], found["old-style"]
    assert (alpha.version, alpha.local, alpha.installer, alpha.requested) == (
        "1.0+cpu",
        Value("cpu"),
        Value("pip"),
        Value(True),
    )
    assert isinstance(alpha.origin, Value)
    assert alpha.origin.value.kind == "archive"
    assert isinstance(alpha.recorded, Value)
    assert abs(alpha.recorded.value - time.time()) < 600
    assert (beta.name, beta.origin, beta.local) == ("beta_Two.x", Absent("FromIndex"), Absent("NoLocalVersion"))
    assert found["edit-me"].editable == Value(str(made.parent / "edit me"))
    assert (old.editable, old.recorded) == (Value(str(made.parent / "old")), Absent("NoRecord"))


def test_this_environment_and_the_system_as_pip_lists_them() -> None:
    """Of editable ones pip asks Git; ours says the directory, which `pip list` says too."""
    mine = Path(sys.prefix)
    found = look(mine, interpreters=("/usr/bin/python3",))
    for target, python in (
        (os.path.realpath(mine), mine / "bin/python"),
        (os.path.realpath("/usr/bin/python3"), Path("/usr/bin/python3")),
    ):
        environment = found.environments[target]
        assert [line for line in lines(environment) if not line.startswith("-e ")] == [
            line for line in freeze(python) if not line.startswith("-e ")
        ]
        listed = subprocess.run(
            (sys.executable, "-m", "pip", "--python", python, "list", "-e", "--format", "json"),
            env=QUIET,
            capture_output=True,
            text=True,
            check=True,
        )
        editable = {d.name: d.editable.value for d in environment.distributions.values() if isinstance(d.editable, Value)}
        assert editable == {row["name"]: row["editable_project_location"] for row in json.loads(listed.stdout)}


def test_names_that_lead_to_one_environment_and_one_that_is_half_built(made: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(made)
    (tmp_path / "half/bin").mkdir(parents=True)
    (tmp_path / "gone/bin").mkdir(parents=True)
    (tmp_path / "gone/bin/python").symlink_to("/nowhere/python3")
    (tmp_path / "file").touch()
    found = look(f"{tmp_path}/*", made)
    real = os.path.realpath(made)
    assert found.names == {
        f"{tmp_path}/current": real,
        str(made): real,
        f"{tmp_path}/half": f"{tmp_path}/half",
        f"{tmp_path}/gone": f"{tmp_path}/gone",
    }
    assert found.environments[f"{tmp_path}/half"].interpreter == Absent("NoInterpreter")
    assert found.environments[f"{tmp_path}/gone"].interpreter == Absent("BrokenInterpreter")
    assert found.environments[real].distributions


def test_an_environment_whose_interpreter_is_gone_still_says_what_is_installed(tmp_path: Path) -> None:
    packages = tmp_path / "env/lib/python3.9/site-packages"
    metadata(packages, "a-1", "Name: a\nVersion: 1\n")
    found = one(tmp_path / "env")
    assert (found.interpreter, found.sites) == (Absent("NoInterpreter"), (str(packages),))
    assert list(found.distributions) == ["a"]


def metadata(packages: Path, stem: str, text: str | None, **files: str) -> Path:
    info = packages / f"{stem}.dist-info"
    info.mkdir(parents=True)
    for name, content in {**({"METADATA": text} if text is not None else {}), **files}.items():
        (info / name).write_text(content)
    return info


def test_damaged_ones_are_named_and_the_others_stay(tmp_path: Path) -> None:
    env = tmp_path / "env"
    venv.create(env, with_pip=False)
    packages = site(env)
    metadata(packages, "good-1.0", "Name: good\nVersion: 1.0\n")
    metadata(packages, "empty-1.0", None)
    metadata(packages, "nometa-1.0", None, RECORD="")
    metadata(packages, "nover-1.0", "Name: nover\n\nVersion: 1\n")
    metadata(packages, "noname-1.0", "Version: 1\n")
    metadata(packages, "strange-1.0", "Name: -x\nVersion: 1\n")
    metadata(packages, "blocked-1.0", None).joinpath("METADATA").mkdir()
    metadata(packages, "~rch-2.11.0", "Name: torch\nVersion: 2.11.0\n")
    (packages / "~orch").mkdir()
    (packages / "Lost.egg-link").write_text("/nowhere\n.\n")
    (packages / "blank.egg-link").write_text("\n")
    found = one(env)
    assert list(found.distributions) == ["good"]
    assert found.damaged == tuple(
        Damaged(f"{packages}/{name}", why)
        for name, why in (
            ("Lost.egg-link", "NoMetadata"),
            ("blank.egg-link", "NotReadable"),
            ("blocked-1.0.dist-info", "NotReadable"),
            ("empty-1.0.dist-info", "EmptyDirectory"),
            ("nometa-1.0.dist-info", "NoMetadata"),
            ("noname-1.0.dist-info", "NoName"),
            ("nover-1.0.dist-info", "NoVersion"),
            ("strange-1.0.dist-info", "NoName"),
            ("~orch", "HalfRemoved"),
            ("~rch-2.11.0.dist-info", "HalfRemoved"),
        )
    )


def test_the_first_of_a_name_counts_as_python_itself_finds_it(tmp_path: Path) -> None:
    env = tmp_path / "env"
    venv.create(env, with_pip=False)
    packages, later = site(env), tmp_path / "later"
    metadata(packages, "Two.One-1.0", "Name: Two.One\nVersion: 1.0\n")
    metadata(later, "two_one-2.0", "Name: two-one\nVersion: 2.0\n")
    for number in range(3, 7):  # an upgrade that was cut short: several in one directory
        metadata(packages, f"many-{number}", f"Name: many\nVersion: {number}\n")
    (packages / "later.pth").write_text(f"{later}\n")
    found = one(env)
    ask = "from importlib.metadata import version as v; print(v('Two.One'), v('many'))"
    first, many = subprocess.check_output((env / "bin/python", "-Ic", ask), text=True).split()
    assert (found.distributions["two-one"].version, found.distributions["many"].version) == (first, many)
    assert Shadowed("two-one", "2.0", str(later)) in found.shadowed
    assert {s.version for s in found.shadowed if s.name == "many"} == {"3", "4", "5", "6"} - {many}


def test_settings_and_system_packages(tmp_path: Path) -> None:
    env = tmp_path / "env"
    venv.EnvBuilder(system_site_packages=True, with_pip=False).create(env)
    found = one(env)
    assert isinstance(found.settings, Value)
    assert found.settings.value.system_packages == Value(True)
    assert found.settings.value.home == Value(str(Path(sys.base_prefix) / "bin"))
    assert isinstance(found.interpreter, Value)
    version = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    assert (found.interpreter.value.version, found.interpreter.value.prefix) == (version, Value(str(env)))


@pytest.mark.parametrize(("mode", "user"), [(0o755, "65534"), (0o700, "12345")])
def test_nothing_is_written_and_code_of_an_environment_does_not_run_as_root(mode: int, user: str) -> None:
    """A line of code in a .pth file runs whenever an interpreter starts. Not in pytest's directory, which only root may enter."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        env, said = root / "env", root / "said"
        subprocess.run(("/usr/bin/python3", "-m", "venv", "--without-pip", env), check=True)
        said.mkdir()
        said.chmod(0o777)
        (site(env) / "code.pth").write_text(f"import os; open({str(said)!r} + '/' + str(os.getuid()), 'w')\n")
        for path in (env, *env.rglob("*")):
            os.chown(path, 12345, 12345, follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o055)
        env.chmod(mode)
        before = sorted(env.rglob("*"))
        assert isinstance(one(env).interpreter, Value)
        assert [path.name for path in said.iterdir()] == [user]
        assert sorted(env.rglob("*")) == before


def test_an_interpreter_that_fails_says_why(tmp_path: Path) -> None:
    python = tmp_path / "env/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 'no module named encodings' >&2; exit 1\n")
    python.chmod(0o755)
    assert one(tmp_path / "env").interpreter == Unknown("InterpreterFailed", "no module named encodings")
    python.write_text("#!/bin/sh\necho hello\n")
    assert one(tmp_path / "env").interpreter == Unknown("InterpreterFailed", "hello")


def test_a_hundred_and_fifty_distributions_cost_little(tmp_path: Path) -> None:
    packages = tmp_path / "env/lib/python3.9/site-packages"
    for number in range(150):
        text = f"Metadata-Version: 2.4\nName: package-{number}\nVersion: {number}.0\n" + "Classifier: x\n" * 400
        metadata(packages, f"package_{number}-{number}.0", text, INSTALLER="pip\n", RECORD="x\n" * 1000, REQUESTED="")
    best = 1.0
    for _ in range(5):
        began = time.process_time()
        found = fragment.look({"patterns": [str(tmp_path / "env")], "interpreters": []})
        best = min(best, time.process_time() - began)
    assert len(found["environments"][str(tmp_path / "env")]["sites"][0]["found"]) == 150
    assert best < 0.05


def test_what_is_asked() -> None:
    (part,) = FACT.parts(About(environments=("/a/*",)))
    assert json.loads(part.arguments) == {"patterns": ["/a/*"], "interpreters": ["/usr/bin/python3", ""]}  # type: ignore[union-attr]
