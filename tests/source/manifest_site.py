"""Small sites for tests, and short views of what they stand for."""

from __future__ import annotations

from pathlib import Path

from reconciler.model.desired import DesiredNode, DesiredState, FileSpec, PackageSpec
from reconciler.render.problems import problem_text
from reconciler.source import load_desired, validate_path

HEAD = "apiVersion: reconcile/v1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec:\n"


def site(folder: Path, spec: str, versions: str = "", *, name: str = "c", file: str = "c.yaml") -> Path:
    """A folder with one cluster and the stacks of `versions` (`NAME: spec` lines)."""
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "motd").write_text("hello\n")
    (folder / file).write_text(HEAD.format(name=name) + spec)
    stacks = [line.split(": ", 1) for line in versions.splitlines()]
    form = "apiVersion: reconcile/v1\nkind: Versions\nmetadata: {{name: {}}}\nspec: {}\n"
    (folder / "v.yaml").write_text("---\n".join(form.format(n, s) for n, s in stacks))
    return folder


def state(folder: Path) -> DesiredState:
    """The state, where all is right."""
    loaded = validate_path(folder)
    assert [problem_text(p) for p in loaded.problems] == []
    assert loaded.desired is not None
    return loaded.desired


def said(folder: Path, cluster: str | None = None) -> list[str]:
    """Problems, as validate or load says them, without the folder's name."""
    loaded = load_desired(folder, cluster=cluster) if cluster else validate_path(folder)
    return [problem_text(p).replace(str(folder), "SITE") for p in loaded.problems]


def packages(node: DesiredNode, distribution: str | None = None) -> dict[str, str]:
    """What a node of a distribution shall have; a package has one answer there."""
    found: dict[str, str] = {}
    for resource in node.resources:
        if isinstance(resource.spec, PackageSpec) and resource.distribution in (None, distribution):
            assert resource.spec.name not in found
            found[resource.spec.name] = resource.spec.version or resource.spec.ensure
    return found


def files(node: DesiredNode) -> dict[str, tuple[str, int, bytes]]:
    """Files by path: owner, mode, content."""
    specs = [r.spec for r in node.resources if isinstance(r.spec, FileSpec)]
    return {s.path: (s.owner, s.mode, s.content) for s in specs}
