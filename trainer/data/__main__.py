"""`python -m trainer.data`."""

import sys

from trainer.data.cli import main

sys.exit(main(sys.argv[1:]))
