"""The entries of an example network (runtime commands of bmv2), written by a client of P4Runtime."""

import contextlib
import io

import p4runtime_sh.shell as sh
from p4.config.v1 import p4info_pb2

MATCH = p4info_pb2.MatchField
# The smallest priority of a command wins, of P4Runtime the largest.
HIGHEST = 1 << 20


def write_entries(path):
    nodes = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if words:
                # The client tells of matches that it leaves out.
                with contextlib.redirect_stdout(io.StringIO()):
                    COMMANDS[words[0]](words[1:], nodes)


def table_add(words, _):
    table, action, *rest = words
    arrow = rest.index("=>")
    matches, parameters = rest[:arrow], rest[arrow + 1:]
    fields = sh.context.get_table(table).match_fields
    entry = sh.TableEntry(table)(action=action)
    for field, word in zip(fields, matches, strict=True):
        value = match(field, word)
        if value is not None:
            entry.match[field.name] = value
    if any(field.match_type in (MATCH.TERNARY, MATCH.RANGE, MATCH.OPTIONAL) for field in fields):
        entry.priority = HIGHEST - int(parameters.pop())
    for parameter, word in zip(sh.context.get_action(action).params, parameters, strict=True):
        entry.action[parameter.name] = word
    entry.insert()


def match(field, word):
    """A match as the client writes it; none when it matches everything, which P4Runtime has left out."""
    if field.match_type == MATCH.RANGE:
        low, high = word.split("->")
        everything = int(low, 0) == 0 and int(high, 0) == (1 << field.bitwidth) - 1
        return None if everything else f"{low}..{high}"
    if field.match_type == MATCH.TERNARY:
        return None if int(word.split("&&&")[1], 0) == 0 else word
    if field.match_type == MATCH.LPM:
        return None if word.endswith("/0") else word
    return word


def mirroring_add(words, _):
    session, port = map(int, words)
    sh.CloneSessionEntry(session).add(port, 1).insert()


def mc_mgrp_create(_, __):
    """P4Runtime makes a group with its replicas: at mc_node_associate."""


def mc_node_create(words, nodes):
    replica, *ports = map(int, words)
    nodes.append((replica, ports))


def mc_node_associate(words, nodes):
    number, node = map(int, words)
    known = [group for group in sh.MulticastGroupEntry().read() if group.group_id == number]
    group = sh.MulticastGroupEntry(number)
    for replica in known[0].replicas if known else []:
        group.replicas.append(replica)
    replica, ports = nodes[node]
    for port in ports:
        group.add(port, replica)
    group.modify() if known else group.insert()


def meter_set_rates(words, _):
    meter, index, *rates = words
    entry = sh.MeterEntry(meter)
    entry.index = int(index)
    (committed, committed_burst), (peak, peak_burst) = (rate.split(":") for rate in rates)
    # Units a microsecond, as units a second.
    entry.cir, entry.cburst = round(float(committed) * 1e6), int(committed_burst)
    entry.pir, entry.pburst = round(float(peak) * 1e6), int(peak_burst)
    entry.modify()


COMMANDS = {command.__name__: command for command in (
    table_add, mirroring_add, mc_mgrp_create, mc_node_create, mc_node_associate, meter_set_rates)}
