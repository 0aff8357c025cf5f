"""Entries: what they match, in every form, and what is refused."""

from ipaddress import IPv4Network, ip_address, ip_network

import pytest
from objects import HERE, probe

import millrace

KIND = {"op": 1, "a": (0x10, 0xF0), "b": (100, 200), "c": (0x0A000000, 8), "d": 5}


def test_a_table_tells_what_it_is(sw):
    table = sw.table("kinds")
    assert table.name == "ObjectsIngress.kinds" and repr(table) == "<Table ObjectsIngress.kinds>"
    assert table.keys == [
        ("hdr.probe.op", "exact", 8),
        ("hdr.probe.a", "ternary", 8),
        ("hdr.probe.b", "range", 16),
        ("hdr.probe.c", "lpm", 32),
        ("hdr.probe.d", "optional", 128),
    ]
    assert table.actions["ObjectsIngress.send"] == [("port", 9)]
    assert table.size == 64 and len(table) == 0 and table


def test_every_kind_matches(sw):
    table = sw.table("kinds")
    handle = table.add(KIND, "send", {"port": 3}, priority=1)
    hit = dict(op=1, a=0x1F, b=150, c=0x0A010203, d=5)
    assert sw.send(0, probe(**hit)) == [(3, probe(**hit))]
    for field, other in dict(op=2, a=0x2F, b=201, c=0x0B010203, d=6).items():
        assert sw.send(0, probe(**{**hit, field: other})) == [], field
    entry = table.entry(handle)
    assert entry.match == {f"hdr.probe.{name}": value for name, value in KIND.items()}
    assert (entry.action, entry.params, entry.priority) == ("ObjectsIngress.send", {"port": 3}, 1)
    assert (entry.member, entry.group, entry.is_const, entry.timeout_ns) == (None, None, False, 0)
    assert entry.counter == (1, len(probe(**hit)))


@pytest.mark.parametrize(
    "match",
    [
        [1, (0x10, 0xF0), (100, 200), (0x0A000000, 8), 5],
        ["0x1", "16&&&0xf0", "100->200", "10.0.0.0/8", "5"],
        [b"\x01", (b"\x10", b"\xf0"), (100, 200), ip_network("10.0.0.0/8"), ip_address("::5")],
        {"hdr.probe.op": True, "probe.a": ("0x10", "0xf0"), "b": ("100", 200), "c": ("10.0.0.0", 8), "d": b"\x00\x05"},
    ],
)
def test_one_match_in_many_forms(sw, match):
    table = sw.table("kinds")
    table.add(match, "drop", priority=7)
    assert table.find(KIND, priority=7) == 0
    assert table.find(KIND, priority=8) is None


def test_what_is_left_out_matches_anything(sw):
    table = sw.table("kinds")
    handle = table.add({"op": 9}, "send", [2], priority=1)
    assert sw.send(0, probe(9, 77, 7777, 77777777, 7)) == [(2, probe(9, 77, 7777, 77777777, 7))]
    assert table.entry(handle).match == {
        "hdr.probe.op": 9,
        "hdr.probe.a": (0, 0),
        "hdr.probe.b": (0, 0xFFFF),
        "hdr.probe.c": (0, 0),
        "hdr.probe.d": None,
    }
    assert table.find([9, None, None, None, None], priority=1) == handle
    # A value alone: all bits, a range of one, the whole address.
    table.add([9, 3, 4, "10.0.0.1", 5], "send", [8], priority=2)
    assert table.entries()[1].match["hdr.probe.a"] == (3, 0xFF)
    assert table.entries()[1].match["hdr.probe.b"] == (4, 4)
    assert table.entries()[1].match["hdr.probe.c"] == (0x0A000001, 32)
    assert sw.send(0, probe(9, 3, 4, 0x0A000001, 5))[0].port == 8, "the largest priority wins"


def test_prefixes_for_masks():
    sw = millrace.Switch.from_source(
        """
        #include <core.p4>
        #include <v1model.p4>
        header h_t { bit<32> f; bit<128> wide; }
        struct headers { h_t h; } struct meta_t {}
        parser P(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata_t s) {
            state start { p.extract(hdr.h); transition accept; }
        }
        control V(inout headers hdr, inout meta_t m) { apply {} }
        control I(inout headers hdr, inout meta_t m, inout standard_metadata_t s) {
            action set(bit<9> port) { s.egress_spec = port; }
            action none() { mark_to_drop(s); }
            table t { key = { hdr.h.f: ternary; hdr.h.wide: ternary; } actions = { set; none; } default_action = none(); }
            apply { t.apply(); }
        }
        control E(inout headers hdr, inout meta_t m, inout standard_metadata_t s) { apply {} }
        control C(inout headers hdr, inout meta_t m) { apply {} }
        control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
        V1Switch(P(), V(), I(), E(), C(), D()) main;
        """
    )
    table = sw.table("t")
    table.add(["10.1.0.0/16", "2001:db8::/32"], "set", [1], priority=1)
    table.add([IPv4Network("10.2.0.0/16"), ip_network("2001:db8::/32")], "set", [2], priority=1)
    assert table.entries()[0].match["hdr.h.f"] == (0x0A010000, 0xFFFF0000)
    assert table.entries()[1].match["hdr.h.wide"] == (0x20010DB8 << 96, 0xFFFFFFFF << 96)
    frame = bytes.fromhex("0a02ffff 20010db8 000000000000000000000001")
    assert sw.send(0, frame) == [(2, frame)]


def test_entries_change_and_go(sw):
    table = sw.table("acts")
    handle = table.add(1, "send", {"port": 3})
    with pytest.raises(millrace.WriteError, match="ObjectsIngress.acts"):
        table.add(1, "send", {"port": 4})
    table.modify(handle, "send", [4])
    assert sw.send(0, probe(1)) == [(4, probe(1))]
    table.delete(handle)
    assert sw.send(0, probe(1)) == [] and table.entries() == []
    for gone in (lambda: table.delete(handle), lambda: table.entry(handle), lambda: table.modify(handle, "NoAction")):
        with pytest.raises(millrace.WriteError):
            gone()
    for op in range(5):
        table.add(op, "NoAction")
    assert len(table) == 5
    table.clear()
    assert len(table) == 0


def test_the_default_action(sw):
    table = sw.table("acts")
    assert table.default == ("NoAction", {})
    table.set_default("send", {"port": 7})
    assert table.default == millrace.Call("ObjectsIngress.send", {"port": 7})
    assert sw.send(0, probe(99)) == [(7, probe(99))]
    table.reset_default()
    assert sw.send(0, probe(99)) == []


def test_what_the_program_fixes_stays(sw):
    table = sw.table("fixed")
    assert [(entry.match, entry.is_const) for entry in table.entries()] == [({"hdr.probe.op": 0xFE}, True)]
    assert sw.send(0, probe(0xFE)) == [(6, probe(0xFE))]
    for write in (
        lambda: table.add(1, "send", [1]),
        lambda: table.delete(0),
        table.clear,
        lambda: table.set_default("send", [1]),
    ):
        with pytest.raises(millrace.WriteError, match="const"):
            write()
    assert sw.send(0, probe(0xFE)) == [(6, probe(0xFE))]


def test_entries_grow_idle():
    text = (HERE / "objects.p4").read_text()
    text = text.replace("        size = 64;", "        size = 64;\n        support_timeout = true;")
    sw = millrace.Switch.from_source(text)
    table = sw.table("kinds")
    handle = table.add({"op": 1}, "send", [1], priority=1, timeout_ns=1_000)
    assert table.entry(handle).timeout_ns == 1_000
    sw.advance(900)
    sw.send(0, probe(1))
    sw.advance(900)
    assert table.expired() == []
    sw.advance(900)
    assert table.expired() == [handle]


@pytest.mark.parametrize(
    ("match", "error", "message"),
    [
        (256, millrace.WriteError, "key field `hdr.probe.op`: the value takes 9 bits, the field has 8"),
        (-1, millrace.WriteError, "a negative value does not fit"),
        (-(1 << 70), millrace.WriteError, "a negative value does not fit"),
        (1 << 200, millrace.WriteError, "the value takes 201 bits"),
        (b"\x01\x00", millrace.WriteError, "the value takes 9 bits"),
        ("10.0.0.1", millrace.WriteError, "an IPv4 address has 32 bits, the field has 8"),
        (ip_address("10.0.0.1"), millrace.WriteError, "an address of 32 bits, the field has 8"),
        ("", millrace.WriteError, "a value is missing"),
        (None, millrace.WriteError, "the exact key field `hdr.probe.op` needs a value"),
        ({}, millrace.WriteError, "the exact key field `hdr.probe.op` needs a value"),
        ((1, 2), TypeError, "a pair does not fit a field that matches by exact"),
        (ip_network("10.0.0.0/8"), millrace.WriteError, "32 bits, the field has 8"),
        (1.5, TypeError, "a number, bytes, an address or a text is expected, not float"),
        ([1, 2], millrace.WriteError, r"the key has 1 field\(s\) \(hdr.probe.op\), 2 given"),
        ({"opp": 1}, millrace.UnknownNameError, "no key field named `opp`.*did you mean `hdr.probe.op`?"),
        ({"op": 1, "probe.op": 1}, millrace.WriteError, "key field `hdr.probe.op` is given twice"),
    ],
)
def test_matches_that_do_not_fit(sw, match, error, message):
    table = sw.table("acts")
    with pytest.raises(error, match=message):
        table.add(match, "send", {"port": 1})
    assert len(table) == 0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("c", ("10.0.0.0", 33), "a prefix length from 0 to 32 is expected, not 33"),
        ("c", "10.0.0.0/x", "a prefix length is a decimal number"),
        ("b", (5, 4), "the low end of the range is above its high end"),
        ("b", "5->4", "the range is empty"),
        ("a", "1&&&0x100", "the value takes 9 bits"),
        ("a", (1, 256), "the value takes 9 bits"),
        ("d", "1&&&1", "all ones or 0"),
        ("b", ip_network("10.0.0.0/8"), "32 bits, the field has 16"),
    ],
)
def test_fields_that_do_not_fit(sw, field, value, message):
    with pytest.raises(millrace.WriteError, match=f"hdr.probe.{field}.*{message}"):
        sw.table("kinds").add({"op": 1, field: value}, "drop", priority=1)


@pytest.mark.parametrize(
    ("action", "params", "error", "message"),
    [
        ("sned", [1], millrace.UnknownNameError, "no action named `sned`.*did you mean `ObjectsIngress.send`?"),
        ("send", None, millrace.WriteError, r"takes 1 parameter\(s\) \(port\), 0 given"),
        ("send", [1, 2], millrace.WriteError, "2 given"),
        ("NoAction", [1], millrace.WriteError, "takes no parameters, 1 given"),
        ("send", {"prot": 1}, millrace.UnknownNameError, "did you mean `port`?"),
        ("send", {}, millrace.WriteError, "needs the parameter `port`"),
        ("send", [512], millrace.WriteError, "parameter `port` of `ObjectsIngress.send`: the value takes 10 bits"),
        ("send", 1, TypeError, "parameters are a dict by name or a list in order"),
        (None, None, TypeError, "an entry has an action with params, or a member=, or a group="),
    ],
)
def test_actions_that_do_not_fit(sw, action, params, error, message):
    table = sw.table("acts")
    with pytest.raises(error, match=message):
        table.add(1, action, params)
    assert len(table) == 0


def test_priorities_that_do_not_fit(sw):
    kinds = sw.table("kinds")
    with pytest.raises(millrace.WriteError, match="an entry needs a priority="):
        kinds.add({"op": 1}, "drop")
    for wrong in (0, -1, 1 << 31):
        with pytest.raises(millrace.WriteError, match="a priority from 1 to 2147483647 is expected"):
            kinds.add({"op": 1}, "drop", priority=wrong)
    with pytest.raises(millrace.WriteError, match="entries have no priority"):
        sw.table("acts").add(1, "NoAction", priority=1)
    with pytest.raises(TypeError, match="a dict or a list is expected"):
        kinds.add(1, "drop", priority=1)
    with pytest.raises(millrace.WriteError, match="default action only"):
        kinds.add({"op": 1}, "NoAction", priority=1)
    assert len(kinds) == 0


def test_profiles_and_selectors(sw):
    table, profile = sw.table("spread_out"), sw.profile("spread")
    assert profile.is_selector and profile.name == "ObjectsIngress.spread"
    one, two = profile.add_member("send", {"port": 1}), profile.add_member("send", [2], id=20)
    assert profile.members() == {one: ("ObjectsIngress.send", {"port": 1}), 20: ("ObjectsIngress.send", {"port": 2})}
    group = profile.add_group([one, (two, 3)])
    assert profile.groups() == {group: [(one, 1), (20, 3)]}
    table.add(1, member=two)
    handle = table.add(2, group=group)
    assert sw.send(0, probe(1)) == [(2, probe(1))]
    ports = {sw.send(0, probe(2, c=c))[0].port for c in range(64)}
    assert ports == {1, 2}
    entry = table.entry(handle)
    assert (entry.action, entry.params, entry.member, entry.group) == (None, None, None, group)

    profile.modify_member(20, "send", [5])
    assert sw.send(0, probe(1)) == [(5, probe(1))]
    profile.modify_group(group, [20])
    assert {sw.send(0, probe(2, c=c))[0].port for c in range(64)} == {5}
    for refused in (
        lambda: profile.delete_member(20),
        lambda: profile.delete_group(group),
        lambda: profile.add_member("send", [1], id=20),
        lambda: profile.add_group([99]),
        lambda: profile.add_group([(one, 0)]),
        lambda: table.add(3, "send", [1]),
        lambda: table.add(3, member=99),
        lambda: sw.table("acts").add(3, member=one),
    ):
        with pytest.raises(millrace.WriteError):
            refused()
    with pytest.raises(TypeError, match="a group has ids or"):
        profile.add_group(["x"])
    table.clear()
    profile.delete_group(group)
    profile.delete_member(20)
    assert list(profile.members()) == [one] and profile.groups() == {}
