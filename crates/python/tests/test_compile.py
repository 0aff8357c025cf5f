"""From source to a switch, and what is said when that does not work."""

import pickle
import threading

import pytest
from objects import HERE, PROGRAMS

import millrace

WRONG = "control c() {\n  apply { x = 1; }\n}\n"


def test_a_wrong_program_says_where(tmp_path):
    path = tmp_path / "wrong.p4"
    path.write_text(WRONG)
    with pytest.raises(millrace.CompileError) as raised:
        millrace.Switch(path)
    [found] = raised.value.diagnostics
    assert (found.severity, found.file, found.line, found.column) == ("error", str(path), 2, 11)
    assert "x = 1" in str(raised.value) and "wrong.p4:2:11" in str(raised.value) and str(found) == str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value) and again.diagnostics == raised.value.diagnostics


def test_a_program_without_a_switch_is_wrong():
    with pytest.raises(millrace.CompileError):
        millrace.Switch.from_source("const bit<8> x = 1;")


def test_check_gives_findings():
    assert millrace.check(PROGRAMS / "router.p4") == []
    [found] = millrace.check(source=WRONG, name="some.p4")
    assert (found.file, found.line) == ("some.p4", 2)
    assert millrace.check(str(PROGRAMS / "nat_14.p4"), std="p4-14") == []
    for arguments in ({}, {"program": "a", "source": "b"}):
        with pytest.raises(TypeError, match="takes the path of a program, or its text"):
            millrace.check(**arguments)


def test_files_that_are_not_there_are_the_errors_of_python(tmp_path):
    for call in (millrace.Switch, millrace.check):
        with pytest.raises(FileNotFoundError) as raised:
            call(tmp_path / "none.p4")
        assert raised.value.filename == str(tmp_path / "none.p4")
    with pytest.raises(FileNotFoundError):
        millrace.Switch(PROGRAMS / "router.p4", entries=tmp_path / "none")


def test_includes_and_macros(tmp_path):
    source = (PROGRAMS / "router.p4").read_text()
    (tmp_path / "port.h").write_text("typedef bit<WIDTH> port_t;\n")
    text = source.replace("typedef bit<9>  port_t;", '#ifdef INCLUDED\n#include "port.h"\n#endif\n')
    assert millrace.check(source=text)[0].severity == "error"
    for defines in ({"INCLUDED": None, "WIDTH": 9}, ["INCLUDED", "WIDTH=9"]):
        sw = millrace.Switch.from_source(text, include=[tmp_path], defines=defines)
        assert sw.table("ipv4_lpm").actions["RouterIngress.set_nhop"] == [("dmac", 48), ("port", 9)]
    for wrong in ("INCLUDED", [1], 5):
        with pytest.raises(TypeError):
            millrace.check(source=text, defines=wrong)


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        ("engine", "fast", ValueError),
        ("std", "p4", ValueError),
        ("ports", [-1], OverflowError),
        ("ports", range(5000), millrace.MillraceError),
        ("queues", 0, millrace.MillraceError),
        ("queues", 9, millrace.MillraceError),
        ("seed", -1, OverflowError),
    ],
)
def test_arguments_that_do_not_fit(argument, value, error):
    with pytest.raises(error):
        millrace.Switch(PROGRAMS / "router.p4", **{argument: value})


def test_wrong_entries_make_no_switch(tmp_path):
    path = tmp_path / "wrong.entries"
    path.write_text("table_add ipv4_lmp set_nhop 10.0.0.0/8 => 06:00:00:00:00:00 1\n")
    with pytest.raises(millrace.CommandError, match="did you mean `RouterIngress.ipv4_lpm`"):
        millrace.Switch(PROGRAMS / "router.p4", entries=path)


def test_deep_programs_compile_on_a_small_stack():
    """Python's threads may have a stack that is too small for the compiler: it brings its own."""
    deep = (HERE / "objects.p4").read_text() + "const bit<8> x = " + "(" * 120 + "1" + ")" * 120 + ";\n"
    found = []
    before = threading.stack_size(64 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(millrace.Switch.from_source(deep).warnings))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [[]]


def test_warnings_are_kept():
    text = (HERE / "objects.p4").read_text()
    sw = millrace.Switch.from_source(text)
    assert sw.warnings == millrace.check(source=text)
