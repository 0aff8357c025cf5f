#!/usr/bin/env python3
"""An AFDX network in Mininet, written by `millrace network export`: end systems are hosts, and each switch is a namespace in which
Millrace runs programs/afdx.p4.

    millrace network entries NETWORK.toml -o ENTRIES
    sudo python3 THIS --program programs/afdx.p4 --entries ENTRIES

The command line of Mininet follows; hosts are e1, e2 ..., switches s1, s2 ...; `nodes` there lists them."""
import argparse
import os
import sys

# DATA

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millrace", default="millrace", help="the binary")
    parser.add_argument("--program", default="programs/afdx.p4", help="the program of the switches")
    parser.add_argument("--entries", default=".", help="the folder with NAME.entries and NAME.tc of each switch")
    parser.add_argument("--shape", action="store_true", help="have Linux shape links too, up to 1000 Mbit/s; else the plans of the switches do alone")
    parser.add_argument("--run", metavar="COMMAND", action="append", default=[], help="a node and a command for it, instead of the prompt")
    parser.add_argument("--check", action="store_true", help="say what would be built, and end")
    return parser.parse_args()


def interface(node, port):
    return f"{node}-eth{port}"


def switch_command(args, name, file):
    """What runs a switch. The interfaces of a switch have the numbers of its ports."""
    ports = sorted(port for a, a_port, b, b_port, *_ in LINKS for node, port in [(a, a_port), (b, b_port)] if node == name)
    parts = [args.millrace, "run", args.program, "--entries", os.path.join(args.entries, f"{file}.entries"),
             "--tc", os.path.join(args.entries, f"{file}.tc")]
    for port in ports:
        parts += ["-i", f"{port}@packet:{interface(name, port)}"]
    return parts


def main():
    args = arguments()
    commands = {name: switch_command(args, name, file) for name, _, _, file in SWITCHES}
    if args.check:
        for name, label, network, _ in SWITCHES:
            print(f"{name} = {label} of network {network}: {' '.join(commands[name])}")
        print(f"{NAME}: {len(END_SYSTEMS)} end systems, {len(SWITCHES)} switches, {len(LINKS)} links")
        return 0
    from mininet.cli import CLI
    from mininet.link import Link, TCLink
    from mininet.log import setLogLevel
    from mininet.net import Mininet
    from mininet.node import Node

    setLogLevel("info")
    net = Mininet(controller=None, build=False)
    nodes = {}
    for name, *_ in END_SYSTEMS:
        nodes[name] = net.addHost(name, cls=Node, ip=None, inNamespace=True)
    for name, *_ in SWITCHES:
        nodes[name] = net.addHost(name, cls=Node, ip=None, inNamespace=True)
    for a, a_port, b, b_port, mbit, delay in LINKS:
        shape = {"bw": mbit, "delay": f"{delay}us"} if args.shape and mbit <= 1000 else {}
        net.addLink(nodes[a], nodes[b], port1=a_port, port2=b_port, cls=TCLink if shape else Link,
                    intfName1=interface(a, a_port), intfName2=interface(b, b_port), **shape)
    net.build()
    for a, a_port, b, b_port, *_ in LINKS:
        for node, port in [(a, a_port), (b, b_port)]:
            nodes[node].cmd("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
            nodes[node].cmd(f"ip link set {interface(node, port)} up promisc on")
    running = []
    try:
        for name, *_ in SWITCHES:
            running.append(nodes[name].popen(commands[name]))
        if args.run:
            for command in args.run:
                node, _, words = command.partition(" ")
                print(nodes[node].cmd(words), end="")
        else:
            CLI(net)
    finally:
        for process in running:
            process.terminate()
            process.wait()
        net.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
