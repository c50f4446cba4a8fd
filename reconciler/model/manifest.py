"""The kinds of reconcile/v1 documents. Values only: no file, socket or node is touched here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reconciler.model.base import Model, about
from reconciler.model.cluster import ClusterSpec
from reconciler.model.types import Description, Name
from reconciler.model.versions import VersionsSpec


class Metadata(Model):
    """What a document is called."""

    name: Name
    description: Description | None = about(None, "one line for people")


class Versions(Model):
    """A document of kind Versions."""

    api_version: Literal["reconcile/v1"]
    kind: Literal["Versions"]
    metadata: Metadata
    spec: VersionsSpec


class Cluster(Model):
    """A document of kind Cluster."""

    api_version: Literal["reconcile/v1"]
    kind: Literal["Cluster"]
    metadata: Metadata
    spec: ClusterSpec


KINDS: dict[str, type[Versions] | type[Cluster]] = {"Versions": Versions, "Cluster": Cluster}
LATER_KINDS = frozenset({"TrainingJob", "ModelService"})  # of the language, not of this version
Manifest = Annotated[Versions | Cluster, Field(discriminator="kind")]
