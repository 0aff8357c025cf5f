"""What the tests of the package share."""

import pytest
from objects import HERE, PROGRAMS

import millrace


@pytest.fixture(params=["jit", "interp"])
def sw(request) -> millrace.Switch:
    """A switch with objects.p4, by both engines."""
    return millrace.Switch(HERE / "objects.p4", engine=request.param)


@pytest.fixture
def router() -> millrace.Switch:
    return millrace.Switch(PROGRAMS / "router.p4", entries=PROGRAMS / "router.entries")
