"""Counters, registers, meters, value sets, replication, digests, the log."""

import pytest
from objects import probe

import millrace


def test_names_of_all_objects(sw):
    name = "ObjectsIngress."
    assert sw.objects == {
        "tables": [name + table for table in ("kinds", "acts", "painted", "spread_out", "fixed")],
        "counters": [name + "seen", name + "kinds_hits"],
        "registers": [name + "cells"],
        "meters": [name + "shared_rates", name + "rates"],
        "profiles": [name + "spread"],
        "value_sets": ["ObjectsParser.probe_types"],
    }
    assert sw.name == "objects" and sw.engine in ("jit", "interp") and repr(sw) == "<Switch objects>"
    assert 'name: "ObjectsIngress.kinds"' in sw.p4info


@pytest.mark.parametrize(
    ("kind", "name", "near"),
    [
        ("table", "kidns", "ObjectsIngress.kinds"),
        ("counter", "sean", "ObjectsIngress.seen"),
        ("register", "cell", "ObjectsIngress.cells"),
        ("meter", "rate", "ObjectsIngress.rates"),
        ("profile", "spraed", "ObjectsIngress.spread"),
        ("value_set", "probe_type", "ObjectsParser.probe_types"),
    ],
)
def test_a_name_that_is_nearly_right_is_put_right(sw, kind, name, near):
    with pytest.raises(KeyError) as raised:
        getattr(sw, kind)(name)
    assert isinstance(raised.value, millrace.UnknownNameError)
    assert f"named `{name}`" in str(raised.value) and f"did you mean `{near}`?" in str(raised.value)


def test_counters(sw):
    counter = sw.counter("seen")
    assert len(counter) == 4 and not counter.is_direct and counter
    sw.table("acts").add(1, "remember", [2])
    sw.send_many([(0, probe(1))] * 3)
    size = len(probe(1))
    assert counter[2] == (3, 3 * size) and counter[-2] == counter[2] and counter[2].packets == 3
    assert counter.all() == {0: (0, 0), 1: (0, 0), 2: (3, 3 * size), 3: (0, 0)}
    assert [value.packets for value in counter] == [0, 0, 3, 0]
    counter[0] = (7, 70)
    assert counter[0] == millrace.CounterValue(7, 70)
    counter.reset()
    assert set(counter.all().values()) == {(0, 0)}
    for index in (4, -5, 1 << 40):
        with pytest.raises(IndexError, match="no cell"):
            counter[index]
        with pytest.raises(IndexError, match="no cell"):
            counter[index] = (0, 0)
    with pytest.raises((OverflowError, TypeError)):
        counter[0] = (-1, 0)


def test_direct_counters(sw):
    counter, table = sw.counter("kinds_hits"), sw.table("kinds")
    one = table.add({"op": 1}, "send", [1], priority=1)
    two = table.add({"op": 2}, "send", [1], priority=1)
    sw.send_many([(0, probe(2))] * 5)
    assert counter.is_direct and counter.all() == {one: (0, 0), two: (5, 5 * len(probe(2)))}
    counter[one] = (9, 0)
    assert counter[one].packets == 9 and counter[two].packets == 5
    for index in (7, -1, 1 << 33):
        with pytest.raises(IndexError):
            counter[index]
    with pytest.raises(TypeError, match="entry handles"):
        len(counter)


def test_registers(sw):
    register = sw.register("cells")
    assert (len(register), register.width, register.all()) == (8, 40, [0] * 8)
    sw.table("acts").add(1, "remember", [3])
    sw.send(0, probe(1, src=0x020304050607))
    assert register[3] == 0x0304050607
    register[7] = (1 << 40) - 1
    register[0] = "0x10"
    register[1] = b"\x01\x02"
    assert list(register) == [0x10, 0x102, 0, 0x0304050607, 0, 0, 0, (1 << 40) - 1] and register[-1] == register[7]
    with pytest.raises(millrace.WriteError, match="the value takes 41 bits, the field has 40"):
        register[0] = 1 << 40
    with pytest.raises(IndexError):
        register[8]
    with pytest.raises(IndexError):
        register[-9] = 1
    with pytest.raises(TypeError):
        register[0] = 1.5
    register.reset()
    assert register.all() == [0] * 8


def test_direct_meters(sw):
    """RFC 2698: of packets at one moment, the committed burst is green, what the peak burst has more is yellow."""
    meter, table = sw.meter("rates"), sw.table("painted")
    sw.table("acts").add(1, "send", [1])
    handle = table.add(1, "paint")
    assert meter.is_direct and meter.unit == "packets" and meter[handle] is None
    meter[handle] = (1, 2, 10, 4)
    assert meter[handle] == millrace.MeterRates(1, 2, 10, 4) == table.entry(handle).meter
    colors = [sw.send(0, probe(1))[0].bytes[15] for _ in range(6)]
    assert colors == [0, 0, 1, 1, 2, 2]
    sw.advance(1_000_000_000)
    assert sw.send(0, probe(1))[0].bytes[15] == 0, "a second later there is a token"
    meter.set_all(None)
    assert meter[handle] is None
    with pytest.raises(TypeError, match="entry handles"):
        len(meter)
    with pytest.raises(millrace.WriteError):
        meter[77] = (1, 1, 1, 1)


def test_indexed_meters(sw):
    meter = sw.meter("shared_rates")
    assert (meter.unit, len(meter), meter[1]) == ("bytes", 2, None)
    meter.set_all((0.5, 100, 1000, 200))
    assert meter[1] == (0.5, 100, 1000, 200) and isinstance(meter[1].pir, int)
    with pytest.raises(millrace.WriteError, match="peak"):
        meter[0] = (10, 1, 5, 1)
    for wrong in ((-1.0, 1, 1, 1), (float("nan"), 1, 1, 1), (1e30, 1, 1e30, 1)):
        with pytest.raises(millrace.WriteError, match="a rate from 0"):
            meter[0] = wrong
    with pytest.raises(IndexError, match="no cell 2"):
        meter[2]
    with pytest.raises((TypeError, ValueError)):
        meter[0] = (1, 2)


def test_value_sets(sw):
    types = sw.value_set("probe_types")
    sw.table("acts").add(1, "send", [1])
    frame = probe(1)[:12] + b"\x12\x34" + probe(1)[14:]
    assert sw.send(0, frame) == []
    types.add(0x1234)
    assert sw.send(0, frame) == [(1, frame)] and [list(member.values()) for member in types.members()] == [[0x1234]]
    types.remove(0x1234)
    assert sw.send(0, frame) == []
    with pytest.raises(millrace.WriteError):
        types.add(1 << 16)
    for value in range(4):
        types.add(value)
    with pytest.raises(millrace.WriteError):
        types.add(4)
    types.clear()
    assert types.members() == []


def test_multicast(sw):
    sw.table("acts").add(1, "flood", [5])
    assert [drop.reason for drop in sw.inject(0, probe(1)).drops] == ["no_multicast_group"]
    sw.set_multicast_group(5, [1, 2, (2, 7)])
    assert sw.multicast_groups == {5: [(1, 0), (2, 0), (2, 7)]}
    assert sorted(packet.port for packet in sw.send(0, probe(1))) == [1, 2, 2]
    with pytest.raises(millrace.WriteError, match="listed twice"):
        sw.set_multicast_group(5, [1, 1])
    with pytest.raises(millrace.WriteError, match="listed twice"):
        sw.set_multicast_group(6, [1, 1])
    assert sw.multicast_groups == {5: [(1, 0), (2, 0), (2, 7)]}, "a refused group leaves nothing"
    with pytest.raises(millrace.WriteError, match="group 0"):
        sw.set_multicast_group(0, [1])
    with pytest.raises(TypeError, match="a copy is a port"):
        sw.set_multicast_group(6, ["x"])
    sw.delete_multicast_group(5)
    with pytest.raises(millrace.WriteError, match="no multicast group 5"):
        sw.delete_multicast_group(5)


def test_clones(sw):
    sw.table("acts").add(1, "copy_to", [9])
    sw.set_clone_session(9, [3, (4, 1)], truncate=20)
    assert sw.clone_sessions == {9: ([(3, 0), (4, 1)], None, 20, 0)}
    # The packet itself is dropped, its clones come as it came in.
    assert sorted(sw.send(0, probe(1)), key=lambda packet: packet.port) == [(3, probe(1)[:20]), (4, probe(1)[:20])]
    sw.set_multicast_group(2, [6])
    sw.set_clone_session(9, group=2)
    assert sw.send(0, probe(1)) == [(6, probe(1))]
    sw.delete_clone_session(9)
    with pytest.raises(millrace.WriteError, match="no clone session 9"):
        sw.delete_clone_session(9)


def test_digests_and_log(sw):
    sw.table("acts").add(1, "tell")
    sw.send(4, probe(1, a=77))
    sw.send_many([(5, probe(1, a=78))])
    outcome = sw.inject(6, probe(1, a=79))
    source = 0x020000000099
    [digest] = outcome.digests
    assert digest.name == "seen_t" and list(digest.fields.values()) == [source, 6, True]
    assert outcome.log == ["a is 79"]
    digests = sw.digests()
    assert [tuple(digest.fields.items()) for digest in digests] == [
        (("src", source), ("port", 4), ("known", True)),
        (("src", source), ("port", 5), ("known", True)),
    ]
    assert sw.log() == ["a is 77", "a is 78"]
    assert sw.digests() == [] and sw.log() == []


def test_commands(sw):
    """Handles and priorities of commands are those of the same entries here; of priorities the smallest wins there."""
    assert sw.run_commands("table_add acts send 1 => 3\ntable_num_entries acts\n") == "1\n"
    assert sw.table("acts").entry(0).params == {"port": 3}
    with pytest.raises(millrace.CommandError) as raised:
        sw.run_commands("table_add acts send 2 => 4\ntable_add acts sned 3 => 5\n")
    [found] = raised.value.diagnostics
    assert (found.file, found.line, found.help) == ("commands", 2, "did you mean `ObjectsIngress.send`?")
    assert "table_add acts sned" in str(raised.value) and isinstance(raised.value, ValueError)
    assert len(sw.table("acts")) == 1, "all or nothing"


def test_p4runtime_json(sw, tmp_path):
    path = tmp_path / "entries.json"
    entry = '{"table": "ObjectsIngress.acts", "match": {"hdr.probe.op": 4}, "action_name": "ObjectsIngress.send", "action_params": {"port": 2}}'
    path.write_text(f'{{"target": "bmv2", "table_entries": [{entry}]}}')
    sw.load_entries(path)
    assert sw.send(0, probe(4)) == [(2, probe(4))]
    path.write_text('{"table_entries": [{"table": "nothing"}]}')
    with pytest.raises(millrace.CommandError, match="nothing"):
        sw.load_entries(path)
    with pytest.raises(FileNotFoundError):
        sw.load_entries(tmp_path / "none")
