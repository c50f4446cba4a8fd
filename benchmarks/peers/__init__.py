"""reconcile beside ansible-core, Mitogen for Ansible and pyinfra on equal work. `python -m benchmarks.peers`."""
