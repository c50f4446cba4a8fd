"""All manifests of a tree: which files are read, and what each document is by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import ValidationError

from reconciler.model.desired import Origin
from reconciler.model.hostlist import is_node_name
from reconciler.model.manifest import KINDS, LATER_KINDS, Cluster, Versions
from reconciler.source.explain import explain
from reconciler.source.parse import MAX_BYTES, Document, parse
from reconciler.source.report import Report
from reconciler.source.tree import Failure, Tree

_NOT_MANIFESTS = ("secrets", "locks", "files")  # folders at the root whose YAML is something else


@dataclass(frozen=True, slots=True)
class Declared:
    """A document that is valid by itself."""

    document: Document
    manifest: Versions | Cluster

    @property
    def name(self) -> str:
        return self.manifest.metadata.name


@dataclass(slots=True)
class Documents:
    """What a tree declares. `broken` names documents with mistakes, as (kind, name); what refers to them is not blamed.
    `unjudged` is the same for people.

    Not `complete`: a name may be missing that somebody meant to declare, since a file could not be read to its end, or
    a document has no valid name, or that of another one.
    """

    versions: dict[str, Declared] = field(default_factory=dict)
    clusters: dict[str, Declared] = field(default_factory=dict)
    broken: set[tuple[str, str]] = field(default_factory=set)
    unjudged: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    complete: bool = True


def is_manifest(path: str) -> bool:
    """Whether a file of the tree is read as manifests: YAML that is not below secrets/, locks/ or files/."""
    return path.endswith((".yaml", ".yml")) and path.split("/", 1)[0] not in _NOT_MANIFESTS


def load(tree: Tree, report: Report, root: str, only: str | None = None) -> Documents:
    """Read and validate all manifests of `tree`, or the one file `only`; what is wrong goes to `report`."""
    found = Documents()
    files = tree.files() if only is None else (only,)
    if isinstance(files, Failure):
        report.say(Origin(root, 0, 0), f"folder-{files.code}", detail=files.detail)
        found.complete = False
        return found
    manifests = [f for f in files if only is not None or is_manifest(f)]
    documents = [d for file in manifests for d in _read(tree, file, report, found)]
    if not documents and not report.problems:
        report.say(Origin(root, 0, 0), "nothing-declared", files=len(manifests))
    for document in documents:
        _add(document, report, found)
    return found


def _read(tree: Tree, file: str, report: Report, found: Documents) -> tuple[Document, ...]:
    content = tree.read(file, MAX_BYTES)
    if isinstance(content, Failure):
        report.say(Origin(file), f"manifest-{content.code}", detail=content.detail, size=content.size, limit=MAX_BYTES)
        found.complete = False
        return ()
    parsed = parse(content, file)
    report.problems += parsed.problems
    found.complete &= parsed.complete
    return parsed.documents


def _add(document: Document, report: Report, found: Documents) -> None:
    """Validate one document and put it among the others."""
    kind, name = _label(document)
    manifest = _validate(document, report)
    if kind in KINDS:
        found.counts[kind] = found.counts.get(kind, 0) + 1
    if manifest is None or document.repeated:
        meant = (kind,) if kind in KINDS or kind in LATER_KINDS else tuple(KINDS)
        found.broken |= {(k, name) for k in meant}
        if kind in KINDS and name:
            found.unjudged.add(f"{kind} {name}")
        found.complete &= is_node_name(name) or kind in LATER_KINDS
        return
    group = found.versions if isinstance(manifest, Versions) else found.clusters
    declared = Declared(document, manifest)
    first = group.setdefault(declared.name, declared)
    if first is not declared:
        place, path = first.document.value(("metadata", "name")), ("metadata", "name")
        data = {"kind": kind, "file": place.file}
        report.say(document.value(path), "document-twice", data=data, found=name, line=place.line)
        found.complete = False


def _label(document: Document) -> tuple[str, str]:
    """Kind and name, also of a document with mistakes."""
    data = document.data
    if not isinstance(data, dict):
        return "", ""
    metadata = data.get("metadata")
    return str(data.get("kind", "")), str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _validate(document: Document, report: Report) -> Versions | Cluster | None:
    data = document.data
    if not isinstance(data, dict):
        report.say(document.value(()), "not-a-manifest")
        return None
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        _unknown_kind(document, kind, report)
        return None
    try:
        return KINDS[kind].model_validate(data)
    except ValidationError as caught:
        explain(document, KINDS[kind], caught, report)
        return None


def _unknown_kind(document: Document, kind: object, report: Report) -> None:
    if kind is None:
        report.say(document.value(("kind",)), "missing-key", found="kind")
    elif not isinstance(kind, str):
        report.say(document.value(("kind",)), "not-text", ("kind",), block="mapping" if isinstance(kind, dict) else "list")
    elif kind in LATER_KINDS:
        report.say(document.value(("kind",)), "kind-not-yet", data=report.choice(kind, KINDS))
    else:
        report.say(document.value(("kind",)), "unknown-kind", data=report.choice(kind, (*KINDS, *LATER_KINDS)))
