"""Two environments share this folder: what needs neither numpy nor the trainer's libraries runs in lane fast, the rest in train.

Each file says which by its mark. One that cannot even be imported in the other environment is not collected there; test_lanes.py
demands that every file is in one of the lists.
"""

from __future__ import annotations

import importlib.util

FAST = ("test_cache.py", "test_fuzz.py", "test_lanes.py", "test_page.py", "test_read.py", "test_rows.py", "test_split.py")
TRAIN = ("test_alike.py", "test_call.py", "test_check.py", "test_tables.py", "test_tokens.py")

collect_ignore = [
    *(FAST if importlib.util.find_spec("hypothesis") is None else ()),
    *(TRAIN if importlib.util.find_spec("numpy") is None else ()),
]
