"""Git revision and YAML in, desired state out, every problem at once with file:line:column."""

from reconciler.source.api import Loaded, load_desired, validate_commit, validate_path

__all__ = ["Loaded", "load_desired", "validate_commit", "validate_path"]
