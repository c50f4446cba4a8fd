"""Each resource kind through the planner: every change, and every step down to its arguments, as tests/data/golden says."""

from __future__ import annotations

import pytest

from tests import golden
from tests.cases import values
from tests.plan.worlds import Case, lines, node_plan

FILES = ("hostname", "hosts", "package_dnf", "package_apt", "file", "python_environment", "units", "gpu_driver")
CASES = [pytest.param(name, case, id=f"{name}-{case['name']}") for name in FILES for case in values(f"plan/{name}.yaml")]


@pytest.mark.parametrize(("file", "case"), CASES)
def test_plan_of_one_node(file: str, case: Case) -> None:
    golden.check(file, case["name"], lines(node_plan(case)))


@pytest.mark.parametrize("file", FILES)
def test_no_golden_text_without_its_case(file: str) -> None:
    assert golden.cases(file) == {case["name"] for case in values(f"plan/{file}.yaml")}
