"""The controller: one process that keeps a cluster as the newest revision declares it."""
