"""The stub says what there is: the same classes, methods, properties and keywords as the compiled part."""

import ast
import inspect
from pathlib import Path

import millrace
from millrace import _millrace

STUB = Path(millrace.__file__).with_name("_millrace.pyi")
# What Python gives to every class, or makes of what is in the stub.
IMPLIED = {"__doc__", "__module__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__delitem__", "__weakref__"}


def stub_classes():
    tree = ast.parse(STUB.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}


def test_the_stub_has_every_name():
    functions = [node.name for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.FunctionDef)]
    there = {name for name in vars(_millrace) if not name.startswith("__")}
    assert there == {*stub_classes(), *functions}
    assert set(millrace.__all__) >= there and STUB.with_name("py.typed").exists()


def test_the_stub_has_every_member():
    for name, node in stub_classes().items():
        typed = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        there = set(vars(getattr(_millrace, name))) - IMPLIED
        assert typed - {"__new__"} == there - {"__new__", "__repr__"}, name


def test_the_stub_has_the_same_arguments():
    for name, node in stub_classes().items():
        for item in node.body:
            function = getattr(getattr(_millrace, name), item.name, None)
            if not isinstance(item, ast.FunctionDef) or item.name.startswith("__") or not callable(function):
                continue
            there = list(inspect.signature(function).parameters)
            typed = [argument.arg for argument in (*item.args.args, *item.args.kwonlyargs)]
            assert typed == there, f"{name}.{item.name}"


def test_everything_is_documented():
    for name in millrace.__all__:
        thing = getattr(millrace, name)
        assert thing.__doc__, name
        if thing.__module__ in ("millrace", "_millrace"):
            for member in (member for member in vars(thing) if not member.startswith("_")):
                assert getattr(thing, member).__doc__, f"{name}.{member}"
