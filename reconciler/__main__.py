"""`python -m reconciler`: the same as `reconcile`."""

from reconciler.cli import main

if __name__ == "__main__":
    main()
