"""Locks and wheels of Python environments: what may be installed, and the files themselves. Runs uv and pip on the controller."""
