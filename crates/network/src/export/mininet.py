#!/usr/bin/env python3
"""An AFDX network in Mininet, written by `millrace network export`: end systems are hosts, and each switch is a namespace in which
Millrace runs programs/afdx.p4.

    millrace network entries NETWORK.toml -o ENTRIES
    sudo python3 THIS --program programs/afdx.p4 --entries ENTRIES --network NETWORK.toml

The command line of Mininet follows; hosts are e1, e2 ..., switches s1, s2 ...; `nodes` there lists them, and `--check` says what each is.
With --network it says the command of each end system, for example

    mininet> e1 millrace es NETWORK.toml --name NAME -i A@e1-eth0 -i B@e1-eth1 --seconds 10 &"""
import argparse
import json
import os
import shlex
import sys
import tempfile
import time

# DATA

# What a switch says when it forwards, and how long it may take until then, in seconds.
RUNS, STARTS_WITHIN = "is running on", 60


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millrace", default="millrace", help="the binary")
    parser.add_argument("--program", default="programs/afdx.p4", help="the program of the switches")
    parser.add_argument("--entries", default=".", help="the folder with NAME.entries and NAME.tc of each switch")
    parser.add_argument("--network", metavar="FILE", help="the file of the network, for the commands of end systems")
    parser.add_argument("--options", metavar="WORDS", default="", help="more options of each switch, such as `--snmp 1161`: each has an own 127.0.0.1")
    parser.add_argument("--logs", metavar="FOLDER", help="where NAME.log of each switch is written; else a new folder")
    parser.add_argument("--shape", action="store_true", help="have Linux shape links too, up to 1000 Mbit/s; else the plans of the switches do alone")
    parser.add_argument("--run", metavar="COMMAND", action="append", default=[], help="a node and a command for it, instead of the prompt")
    parser.add_argument("--ready", metavar="FILE", help="when all switches run, write there what each node is, as JSON with its process")
    parser.add_argument("--check", action="store_true", help="say what would be built, and end")
    return parser.parse_args()


def interface(node, port):
    return f"{node}-eth{port}"


def ports_of(name):
    """The ports of a node, each with the network of its link."""
    ends = [(node, port, network) for a, a_port, b, b_port, network, *_ in LINKS for node, port in [(a, a_port), (b, b_port)]]
    return sorted((port, network) for node, port, network in ends if node == name)


def switch_command(args, name, file):
    """What runs a switch. The interfaces of a switch have the numbers of its ports."""
    parts = [args.millrace, "run", args.program, "--entries", os.path.join(args.entries, f"{file}.entries"),
             "--tc", os.path.join(args.entries, f"{file}.tc"), *shlex.split(args.options)]
    for port, _ in ports_of(name):
        parts += ["-i", f"{port}@packet:{interface(name, port)}"]
    return parts


def end_system_command(args, name, label):
    """What runs an end system, to which options can be added."""
    parts = [args.millrace, "es", args.network or "NETWORK.toml", "--name", label]
    for port, network in ports_of(name):
        parts += ["-i", f"{network}@packet:{interface(name, port)}"]
    return parts


def build():
    """The nodes and cables of both networks, without anything that runs."""
    from mininet.link import Link, TCLink
    from mininet.net import Mininet
    from mininet.node import Node

    net = Mininet(controller=None, build=False)
    nodes = {name: net.addHost(name, cls=Node, ip=None, inNamespace=True) for name, *_ in [*END_SYSTEMS, *SWITCHES]}
    return net, nodes, Link, TCLink


def connect(args, net, nodes, plain, shaped):
    for a, a_port, b, b_port, _, mbit, delay in LINKS:
        shape = {"bw": mbit, "delay": f"{delay}us"} if args.shape and mbit <= 1000 else {}
        net.addLink(nodes[a], nodes[b], port1=a_port, port2=b_port, cls=shaped if shape else plain,
                    intfName1=interface(a, a_port), intfName2=interface(b, b_port), **shape)
    net.build()
    for name, node in nodes.items():
        # Nothing on these cables is the kernel's own.
        node.cmd("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
        for port, _ in ports_of(name):
            node.cmd(f"ip link set {interface(name, port)} up promisc on")


def wait_until_they_run(running):
    """Waits for what each switch says; ends with the log of one that does not run."""
    ends = time.monotonic() + STARTS_WITHIN
    for label, log, process in running:
        while True:
            with open(log, encoding="utf-8", errors="replace") as file:
                said = file.read()
            if RUNS in said:
                break
            if process.poll() is not None or time.monotonic() > ends:
                sys.exit(f"switch {label} does not run:\n{said}")
            time.sleep(0.1)


def tell(args, nodes, commands, logs):
    """Writes what each node is. Its namespaces are those of the process: `nsenter -t PID -n` is inside."""
    told = {name: {"name": label, "pid": nodes[name].pid, "command": end_system_command(args, name, label)} for name, label, _ in END_SYSTEMS}
    for name, label, network, file in SWITCHES:
        told[name] = {"name": label, "pid": nodes[name].pid, "network": network, "file": file, "command": commands[name],
                      "log": os.path.join(logs, f"{file}.log")}
    links = [{"between": [[a, a_port], [b, b_port]], "network": network} for a, a_port, b, b_port, network, *_ in LINKS]
    with open(f"{args.ready}.new", "w", encoding="utf-8") as file:
        json.dump({"nodes": told, "links": links}, file)
    os.replace(f"{args.ready}.new", args.ready)


def main():
    args = arguments()
    commands = {name: switch_command(args, name, file) for name, _, _, file in SWITCHES}
    if args.check:
        for name, label, network, _ in SWITCHES:
            print(f"{name} = {label} of network {network}: {shlex.join(commands[name])}")
        for name, label, _ in END_SYSTEMS:
            print(f"{name} = {label}: {shlex.join(end_system_command(args, name, label))}")
        print(f"{NAME}: {len(END_SYSTEMS)} end systems, {len(SWITCHES)} switches, {len(LINKS)} links")
        return 0
    from mininet.cli import CLI
    from mininet.log import setLogLevel

    setLogLevel("info")
    net, nodes, plain, shaped = build()
    logs = args.logs or tempfile.mkdtemp(prefix="millrace-mininet-")
    running = []
    try:
        connect(args, net, nodes, plain, shaped)
        for name, label, _, file in SWITCHES:
            log = os.path.join(logs, f"{file}.log")
            with open(log, "wb") as said:
                running.append((label, log, nodes[name].popen(commands[name], stdout=said, stderr=said)))
        wait_until_they_run(running)
        if args.ready:
            tell(args, nodes, commands, logs)
        if args.run:
            for command in args.run:
                node, _, words = command.partition(" ")
                print(nodes[node].cmd(words), end="")
        else:
            CLI(net)
    finally:
        for *_, process in running:
            process.terminate()
        for *_, process in running:
            process.wait()
        net.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
