"""Facts about hardware and software that do not come from a node, each file with its sources."""
