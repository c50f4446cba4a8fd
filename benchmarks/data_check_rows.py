"""What is done after reading, with as many rows as asked for and nothing read: `python -m benchmarks.data_check_rows 10000000`.

Random records stand for rows, so no two are alike and every one is sorted sixteen times. Prints one JSON object: rows, resident
(MB), cpu (s).
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np

from trainer.data import judge
from trainer.data.groups import groups
from trainer.data.ledger import RECORD, Ledger

_AT_ONCE = 20_000


def main(rows: int) -> int:
    draw = np.random.default_rng(1)
    with Ledger() as ledger:
        while left := rows - len(ledger):
            count = min(_AT_ONCE, left)
            ledger.append(np.frombuffer(draw.bytes(count * RECORD.itemsize), RECORD), [b""] * count)
        began = time.process_time()
        found = groups(ledger)
        validation = np.arange(rows) < rows // 20
        judge.sides(found, validation)
        cpu = time.process_time() - began
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "resident": resident, "cpu": cpu}))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
