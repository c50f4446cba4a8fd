"""Git revision and YAML in, desired state out, every problem at once with file:line:column."""
