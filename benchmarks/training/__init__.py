"""Training on one GPU: the plain loop, TRL with its defaults and ours, in one call: `python -m benchmarks.training`."""
