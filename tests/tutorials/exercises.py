"""What the README of each exercise says should be seen when the solution runs."""

import json
import os
import re
import signal
import time

from net import Broken, Net, need, ping, switch_cli


def packets(log):
    """The packets that a receive.py of the exercises has shown."""
    return log.split("got a packet")[1:]


def field(packet, name):
    """A field as scapy shows it."""
    found = re.search(rf"^[ |]*{name}\s*= (\S+)", packet, re.M)
    return found[1] if found else None


def basic(net):
    said = net.cli("pingall", 90)
    need("0% dropped (12/12 received)" in said, said)
    # Each switch on the way takes one from the TTL of 64: one between h1 and h2, three between h1 and h3.
    need(ping(net, "h1", "h2") == (2, {63}), "h1 to h2 goes through one switch")
    need(ping(net, "h1", "h3") == (2, {61}), "h1 to h3 goes through three switches")


def basic_tunnel(net):
    net.background("h2", "python3 -u receive.py", "h2.log", "sniffing on")
    net.background("h3", "python3 -u receive.py", "h3.log", "sniffing on")

    def arrives(command, tunnelled, destination):
        before = len(packets(net.read("h2.log")))
        net.cli(f"h1 python3 send.py {command}")
        time.sleep(2)
        new = [packet for packet in packets(net.read("h2.log"))[before:] if "P4 is cool" in packet]
        need(len(new) == 1, f"{command}: {len(new)} packets at h2, not 1")
        need(("MyTunnel" in new[0]) == tunnelled, f"{command}: {new[0]}")
        need(field(new[0], "dst_id") == ("2" if tunnelled else None), new[0])
        need(f"dst       = {destination}" in new[0], f"{command}: {new[0]}")

    arrives('10.0.2.2 "P4 is cool"', False, "10.0.2.2")
    arrives('10.0.2.2 "P4 is cool" --dst_id 2', True, "10.0.2.2")
    # The tunnel decides, not the address.
    arrives('10.0.3.3 "P4 is cool" --dst_id 2', True, "10.0.3.3")
    need("P4 is cool" not in net.read("h3.log"), "h3 got a packet of a tunnel to h2")


def calc(net):
    sums = {"1+1": 2, "5-7": 2 ** 32 - 2, "6&3": 2, "6|3": 7, "6^3": 5, "4294967295+2": 1}
    with open(os.path.join(net.folder, "sums"), "w") as file:
        file.write("".join(f"{line}\n" for line in sums) + "quit\n")
    said = net.cli("h1 python3 -W ignore calc.py < sums", 60)
    answers = [int(number) for number in re.findall(r"^(?:> )?(\d+)\s*$", said, re.M)]
    need(answers == list(sums.values()), f"{answers} for {list(sums)}: {said}")


def congested(net):
    """Packets of h1 at h2, one a second, while h11 sends more to h22 than the link between s1 and s2 carries."""
    net.background("h2", "python3 -u receive.py", "h2.log", "sniffing on")
    net.background("h22", "iperf -s -u", "h22.log", "listening")
    net.background("h1", 'python3 send.py 10.0.2.2 "P4 is cool" 30', "h1.log")
    time.sleep(4)
    net.background("h11", "iperf -c 10.0.2.22 -t 12 -u", "h11.log")
    time.sleep(24)
    seen = packets(net.read("h2.log"))
    need(len(seen) >= 15, f"{len(seen)} packets came, about 25 were sent")
    need(all("P4 is cool" in packet for packet in seen), "a packet without the message")
    return seen


def ecn(net):
    marks = [field(packet, "tos") for packet in congested(net)]
    need(set(marks) == {"0x1", "0x3"}, f"tos is {marks}")
    need(marks[0] == "0x1", f"marked before there is other traffic: {marks}")
    first, last = marks.index("0x3"), len(marks) - 1 - marks[::-1].index("0x3")
    need("0x1" not in marks[first:last], f"unmarked while the queue is long: {marks}")


def mri(net):
    depths = []
    for packet in congested(net):
        need(field(packet, "count") == "2", f"not two switches: {packet}")
        need(re.findall(r"swid\s*= (\d+)", packet) == ["2", "1"], f"not s2, s1: {packet}")
        depths.append([int(depth) for depth in re.findall(r"qdepth\s*= (\d+)", packet)])
    # The link from s1 is the narrow one; h2's own is idle.
    need(depths[0] == [0, 0], f"a queue before there is other traffic: {depths}")
    need(max(depth[1] for depth in depths) > 10, f"the queue at s1 is never long: {depths}")
    need(all(depth[0] == 0 for depth in depths), f"a queue at s2: {depths}")


def firewall(net):
    def connects(client, server, address):
        net.background(server, "iperf -s -p 5050", f"{server}.log")
        time.sleep(1)
        said = net.cli(f"{client} timeout -s KILL 6 iperf -c {address} -p 5050 -t 1", 20)
        net.cli(f"{server} kill %iperf")
        time.sleep(0.5)
        return bool(re.search(r"[KMG]bits/sec", said))

    need(connects("h1", "h2", "10.0.2.2"), "h1 cannot connect to h2, inside")
    need(connects("h1", "h3", "10.0.3.3"), "h1 cannot connect to h3, outside")
    need(connects("h2", "h4", "10.0.4.4"), "h2 cannot connect to h4, outside")
    need(not connects("h3", "h1", "10.0.1.1"), "h3 can connect to h1 from outside")
    need(ping(net, "h1", "h3")[0] == 2, "what is no TCP is not the firewall's business")


def link_monitor(net):
    net.background("h1", "python3 -u receive.py", "probes.log", "sniffing on")
    net.background("h1", "python3 send.py", "send.log")
    idle = net.wait_for("probes.log", r"(Switch \d+ - Port \d+: [\d.e-]+ Mbps\n){8,}", 30)
    need("Switch 1 - Port 4" in idle[0], f"the probe did not take its way: {idle[0]}")
    net.background("h4", "iperf -s -u", "h4.log", "listening")
    net.background("h1", "iperf -c 10.0.4.4 -u -b 5M -t 10", "h1.log")
    time.sleep(7)
    rates = {}
    for switch, port, rate in re.findall(r"Switch (\d+) - Port (\d+): ([\d.e-]+) Mbps", net.read("probes.log")):
        rates.setdefault((int(switch), int(port)), []).append(float(rate))
    # 5 Mbit/s of payload are 5.14 on the wire: 1470 bytes in frames of 1512. One of the two ways carries it.
    ways = [rates.get((1, port), [0])[-3:] for port in (3, 4)]
    need(any(min(way) > 4 and max(way) < 6.5 for way in ways), f"5 Mbit/s are sent, ports 3 and 4 of s1 show {ways}")
    need(max(rates.get((3, 1), [0]) + rates.get((4, 1), [0])) < 6.5, f"more than is sent: {rates}")


def load_balance(net):
    net.background("h2", "python3 -u receive.py", "h2.log", "sniffing on")
    net.background("h3", "python3 -u receive.py", "h3.log", "sniffing on")
    for number in range(16):
        net.cli(f'h1 python3 send.py 10.0.0.1 "P4 is cool {number}."')
    time.sleep(2)
    got = {host: {int(n) for n in re.findall(r"P4 is cool (\d+)\.", net.read(f"{host}.log"))} for host in ("h2", "h3")}
    need(got["h2"] and got["h3"], f"one host gets all: {got}")
    need(got["h2"] | got["h3"] == set(range(16)) and not got["h2"] & got["h3"], f"lost or twice: {got}")


def multicast(net):
    def reached():
        said = net.cli("pingall 1", 60)
        return {line.split(" -> ")[0]: set(re.findall(r"h\d", line.split(" -> ")[1]))
                for line in said.splitlines() if re.match(r"h\d -> ", line)}

    got = reached()
    for host in ("h1", "h2", "h3"):
        need(got[host] == {"h1", "h2", "h3"} - {host}, f"{host} reaches {got[host]}: {got}")
    # What h4 asks for reaches the group, and its address is in the table, so that its own pings come back.


def multicast_with_h4(net):
    said = net.cli("pingall 1", 60)
    need("0% dropped (12/12 received)" in said, said)


def put_h4_into_the_group(folder):
    """Step 3.6 of the exercise."""
    path = os.path.join(folder, "sig-topo/s1-runtime.json")
    with open(path) as file:
        runtime = json.load(file)
    runtime["multicast_group_entries"][0]["replicas"].append({"egress_port": 4, "instance": 1})
    with open(path, "w") as file:
        json.dump(runtime, file)


def counts(log, name):
    """What a controller has printed of a counter: (switch, index) to packets, the last."""
    found = re.findall(rf"(s\d) {re.escape(name)} (\d+): (\d+) packets", log)
    return {(switch, int(index)): int(count) for switch, index, count in found}


def p4runtime(net):
    need(ping(net, "h1", "h2")[0] == 0, "pings go without rules")
    controller = net.controller("mycontroller.py", "controller.log")
    try:
        net.wait_for("controller.log", "Reading tunnel counters", 30)
        # A tunnel has no hops for IP: 64 leaves and 64 arrives.
        need(ping(net, "h1", "h2", 5) == (5, {64}), "pings do not go through the tunnel")
        time.sleep(3)
        log = net.read("controller.log")
        into, out = (counts(log, f"MyIngress.{name}TunnelCounter") for name in ("ingress", "egress"))
        need(into == {("s1", 100): 5, ("s2", 200): 5}, f"into the tunnels: {into}")
        need(out == {("s2", 100): 5, ("s1", 200): 5}, f"out of the tunnels: {out}")
        need("MyIngress.myTunnel_exact" in log and "-> MyIngress.myTunnel_egress" in log, "no table rules are read")
    finally:
        controller.send_signal(signal.SIGINT)
        controller.wait(20)
    need("gRPC Error" not in net.read("controller.log"), net.read("controller.log")[-1000:])


def flowcache(net):
    need(ping(net, "h1", "h2")[0] == 0, "pings go without rules")
    controller = net.controller("mycontroller.py", "controller.log")
    try:
        time.sleep(8)
        # The first ones go by way of the controller, which has up to three entries to make before an answer comes back.
        received, _ = ping(net, "h1", "h2", 10)
        need(received >= 7, f"{received} of 10 pings come back")
        log = net.read("controller.log")
        need("Received PacketIn message" in log, "no packet-in came")
        net.wait_for("controller.log", r"egressPktInCounter [12]: [1-9]\d* packets", 20)
        # A packet-out is counted by an address that it has no header for: the index is undefined in P4_16, 0 here.
        for thrift_port in (9090, 9091):
            said = switch_cli(thrift_port, "counter_read MyIngress.ingressPktOutCounter 0")
            need(re.search(r"\(\d+ bytes?, [1-9]\d* packets?\)|packets=[1-9]", said), f"no packet-out was counted: {said}")
        # Entries are removed when they have been idle for three seconds.
        net.wait_for("controller.log", r"Deleted flow_cache entry on s\d\. \(SA=10\.0\.1\.1, DA=10\.0\.2\.2, proto=1\)", 30)
    finally:
        controller.send_signal(signal.SIGINT)
        try:
            controller.wait(20)
        except Exception:
            controller.kill()
            controller.wait()


def qos(net):
    net.background("h2", "python3 -u receive.py", "h2.log", "sniffing on")
    for protocol, mark in (("UDP", "0xb9"), ("TCP", "0xb1")):
        before = len(packets(net.read("h2.log")))
        net.cli(f'h1 python3 send.py --p={protocol} --des=10.0.2.2 --m="P4 is cool" --dur=3')
        time.sleep(2)
        new = packets(net.read("h2.log"))[before:]
        # Nobody listens at h2, which therefore answers with an error around the packet.
        new = [packet for packet in new if "P4 is cool" in packet and "###[ ICMP ]###" not in packet]
        marks = [field(packet, "tos") for packet in new]
        need(marks == [mark] * 3, f"{protocol}: tos is {marks}, not {mark}")


def source_routing(net):
    net.background("h2", "python3 -u receive.py", "h2.log", "sniffing on")
    with open(os.path.join(net.folder, "routes"), "w") as file:
        file.write("2 3 2 2 1\n2 1\nq\n")
    net.cli("h1 python3 send.py 10.0.2.2 < routes")
    time.sleep(2)
    seen = packets(net.read("h2.log"))
    # h1, s1, s2, s3, s1, s2, h2: five switches; then h1, s1, s2, h2: two.
    need([field(packet, "ttl") for packet in seen] == ["59", "62"], f"{len(seen)} packets: {seen}")
    need(not any("SourceRoute" in packet for packet in seen), "headers of the route are left")


# Name, what is checked, and how the folder is changed before.
EXERCISES = [
    ("basic", basic, None),
    ("basic_tunnel", basic_tunnel, None),
    ("calc", calc, None),
    ("ecn", ecn, None),
    ("firewall", firewall, None),
    ("flowcache", flowcache, None),
    ("link_monitor", link_monitor, None),
    ("load_balance", load_balance, None),
    ("mri", mri, None),
    ("multicast", multicast, None),
    ("multicast", multicast_with_h4, put_h4_into_the_group),
    ("p4runtime", p4runtime, None),
    ("qos", qos, None),
    ("source_routing", source_routing, None),
]

__all__ = ["EXERCISES", "Broken", "Net"]
