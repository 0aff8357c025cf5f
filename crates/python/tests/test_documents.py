"""What the documents show runs."""

import re

import pytest
from objects import PROGRAMS

ROOT = PROGRAMS.parent


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


@pytest.mark.parametrize(
    ("page", "number", "names"),
    [("docs/python.md", 0, ["test_a_route"]), ("docs/python.md", 1, []), ("crates/python/README.md", 0, [])],
)
def test_the_examples_run(monkeypatch, page, number, names):
    monkeypatch.chdir(ROOT)
    scope = {"millrace": __import__("millrace")}
    exec(compile(blocks(page)[number], page, "exec"), scope)
    for name in names:
        scope[name]()
