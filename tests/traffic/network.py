"""Two hosts and what forwards between them, each in a network namespace of its own, joined by two veth pairs.

    host 10.0.0.1 source === s0 -- forwarder -- s1 === sink 10.0.0.2 host

All of it is named after this process and gone at the end. Programs that send and receive run on processor 0, a switch on processor 1; all go before
other programs of the machine.
"""
import json
import os
import struct
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

SOURCE, SINK = "10.0.0.1", "10.0.0.2"
# An address that nobody has: frames for it end at the sink without an answer.
NOBODY = "10.0.0.9"
MACS = {"source": "06:00:00:00:00:01", "sink": "06:00:00:00:00:02"}
OFFLOADS = ["tx", "off", "rx", "off", "sg", "off", "tso", "off", "gso", "off", "gro", "off"]


def call(*command, check=True):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout.strip()}")
    return done


def on(core, how=("chrt", "-f", "10")):
    """What has a program run on a processor, before others."""
    return [*how, "taskset", "-c", core]


def knows(*words):
    """Whether the kernel has a queueing discipline."""
    namespace = f"mr{os.getpid()}probe"
    call("ip", "netns", "add", namespace)
    try:
        # More than one queue, which taprio asks for.
        call("ip", "-n", namespace, "link", "add", "v0", "numtxqueues", 4, "type", "veth", "peer", "name", "v1")
        return call("tc", "-n", namespace, "qdisc", "add", "dev", "v0", "root", *words, check=False).returncode == 0
    finally:
        call("ip", "netns", "del", namespace)


class Network:
    def __init__(self, stream):
        """`stream`: the program that sends and takes frames."""
        self.stream, self.processes = stream, []
        tag = f"mr{os.getpid()}"
        self.source, self.switch, self.sink = (f"{tag}{kind}" for kind in ("a", "s", "b"))
        self.namespaces = [self.source, self.switch, self.sink]

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _build(self):
        for namespace in self.namespaces:
            call("ip", "netns", "add", namespace)
            call("ip", "-n", namespace, "link", "set", "lo", "up")
            self.inside(namespace, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        for number, (host, address, mac) in enumerate(((self.source, SOURCE, MACS["source"]), (self.sink, SINK, MACS["sink"]))):
            # A queue of the device for each class, for qdiscs that want one.
            call("ip", "-n", self.switch, "link", "add", f"s{number}", "numtxqueues", 4, "type", "veth", "peer", "name", "eth0", "netns", host)
            call("ip", "-n", host, "link", "set", "eth0", "address", mac)
            call("ip", "-n", host, "addr", "add", f"{address}/24", "dev", "eth0")
            for namespace, interface in ((self.switch, f"s{number}"), (host, "eth0")):
                self.inside(namespace, "ethtool", "-K", interface, *OFFLOADS)
                call("ip", "-n", namespace, "link", "set", interface, "up")
        for host, address, mac in ((self.source, SINK, MACS["sink"]), (self.source, NOBODY, MACS["sink"]), (self.sink, SOURCE, MACS["source"])):
            call("ip", "-n", host, "neigh", "replace", address, "lladdr", mac, "dev", "eth0", "nud", "permanent")

    def inside(self, namespace, *command, check=True):
        return call("ip", "netns", "exec", namespace, *command, check=check)

    def start(self, namespace, *command, core=0, how=("chrt", "-f", "10")):
        said = tempfile.TemporaryFile("w+", errors="replace")
        words = [str(word) for word in ("ip", "netns", "exec", namespace, *on(core, how), *command)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT)
        process.said = said
        self.processes.append(process)
        return process

    def end(self, process):
        """Waits for a process whose input ends, or ends it; what it said."""
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait(20)
        self.processes.remove(process)
        return self.said(process)

    @staticmethod
    def said(process):
        process.said.seek(0)
        return process.said.read()

    def wait_for(self, process, word, seconds=30):
        until = time.monotonic() + seconds
        while word not in self.said(process):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"it does not say `{word}`: {self.said(process)}")
            time.sleep(0.02)

    def pass_streams(self, seconds, streams):
        """Sends streams of (port, class, bytes, rate, burst). Gives how many frames of each were sent, and what came of each: lists of
        (number, sent, taken) in nanoseconds."""
        with tempfile.NamedTemporaryFile() as file:
            taking = self.start(self.sink, self.stream, "take", "eth0", file.name)
            self.wait_for(taking, "ready")
            words = [":".join(str(word) for word in stream) for stream in streams]
            said = self.inside(self.source, *on(0), self.stream, "send", NOBODY, seconds, *words).stdout
            # What waits in queues.
            time.sleep(0.5)
            missed = int(self.end(taking).split()[-1])
            if missed:
                raise RuntimeError(f"the sink itself missed {missed} frames")
            sent = dict(map(int, line.split()) for line in said.splitlines())
            came = defaultdict(list)
            for port, _, number, sent_ns, taken_ns in struct.iter_unpack("=HHIQQ", file.read()):
                came[port].append((number, sent_ns, taken_ns))
        return sent, came

    def pass_frames(self, seconds, rate, sent, wanted, at):
        """Sends the frames of a list, which are equally long, in turn, as many a second in all; each has a stamp of 12 bytes at `at`. Gives how many
        were sent, and what came: whether it is not as wanted, number, sent and taken in nanoseconds."""
        with tempfile.TemporaryDirectory() as folder:
            into, out, notes = (Path(folder) / name for name in ("into", "out", "notes"))
            into.write_bytes(b"".join(sent))
            out.write_bytes(b"".join(wanted))
            taking = self.start(self.sink, self.stream, "expect", "eth0", out, len(wanted[0]), at, notes)
            self.wait_for(taking, "ready")
            said = self.inside(self.source, *on(0), self.stream, "frames", "eth0", into, len(sent[0]), at, seconds, rate).stdout
            # What still waits.
            time.sleep(0.3)
            missed = int(self.end(taking).split()[-1])
            if missed:
                raise RuntimeError(f"the sink itself missed {missed} frames")
            return int(said), [(bool(other), *rest) for other, _, *rest in struct.iter_unpack("=HHIQQ", notes.read_bytes())]

    def close(self):
        for process in list(self.processes):
            process.terminate()
            self.end(process)
        for namespace in self.namespaces:
            call("ip", "netns", "del", namespace, check=False)


class Bridge:
    """The kernel forwards; `commands` are those of `tc`, without `dev`."""

    def __init__(self, network, commands):
        self.network, self.commands = network, commands

    def __enter__(self):
        inside = self.network.switch
        call("ip", "-n", inside, "link", "add", "name", "br0", "type", "bridge", "forward_delay", 0)
        for interface in ("s0", "s1"):
            call("ip", "-n", inside, "link", "set", interface, "master", "br0")
        call("ip", "-n", inside, "link", "set", "br0", "up")
        for command in self.commands:
            what, action, *rest = command.split()
            call("tc", "-n", inside, what, action, "dev", "s1", *rest)
        return self

    def __exit__(self, *_):
        call("tc", "-n", self.network.switch, "qdisc", "del", "dev", "s1", "root", check=False)
        call("ip", "-n", self.network.switch, "link", "del", "br0")

    def queues(self):
        return None


class Millrace:
    """The switch forwards by a plan of port 1."""

    def __init__(self, network, binary, program, plan, poll="interrupt"):
        self.network, self.binary, self.program, self.plan, self.poll = network, binary, program, plan, poll

    def __enter__(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tc") as file:
            file.write(self.plan)
            file.flush()
            self.process = self.network.start(
                self.network.switch, self.binary, "run", self.program, "-i", "0@s0", "-i", "1@s1", "--tc", file.name, "--clock", "system",
                "--cores", "1", "--poll", self.poll, "--metrics", "9560", core="0,1", how=())
            until = time.monotonic() + 30
            while self._show(check=False) is None:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the switch does not run: {self.network.said(self.process)}")
                time.sleep(0.1)
        self._go_first()
        return self

    def _go_first(self):
        """The worker, which is the thread of processor 1, goes before others. One that never sleeps leaves them a little: the system would
        take the processor from it for long else."""
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            if "Cpus_allowed_list:\t1\n" in (task / "status").read_text():
                if self.poll == "busy":
                    os.setpriority(os.PRIO_PROCESS, int(task.name), -20)
                else:
                    os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(10))

    def _show(self, check=True):
        done = self.network.inside(self.network.switch, self.binary, "tc", "show", "--json", "1", check=check)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def queues(self):
        """What `millrace tc show` tells of the port's queues."""
        return self._show()

    def __exit__(self, *_):
        self.process.terminate()
        self.network.end(self.process)
