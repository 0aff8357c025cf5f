"""What the tests of the programs share."""

import pytest
from network import PROGRAMS

import millrace

@pytest.fixture
def switch():
    """Makes a switch that runs a program with the entries that lie beside it."""

    def make(name: str, **arguments) -> millrace.Switch:
        path = PROGRAMS / f"{name}.p4"
        return millrace.Switch(path, entries=path.with_suffix(".entries"), **arguments)

    return make
