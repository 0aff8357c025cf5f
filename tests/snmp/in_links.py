"""The switch's own end system answers in its virtual links: ICMP echo by frames made by hand, SNMP by the tools of net-snmp over a gateway.

    a process: `millrace es` ES1 -- b0 a0 \
    frames of this test: ES2     -- b1 a1  switch S1 -- port 9: M1, its own end system

All is in one network namespace; tests/snmp/managed.toml is the network. Needs root and `ip`."""
import copy
import json
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from asking import HERE, LINKS, MILLRACE, ROOT, WALK_SECONDS, note, running, same, skip

sys.path[:0] = [str(ROOT / "tests/e2e")]
from lab import Inside  # noqa: E402

FILE = HERE / "managed.toml"
ETH_P_ALL = 3
ES1, ES2, M1 = 0x0101, 0x0102, 0x0109
VLS = ".1.3.6.1.3.6647.1.4"
# Of the virtual links of managed.toml by which is asked and answered.
BAG_SECONDS = 500e-6


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def address(es):
    return bytes([10, es >> 8, es & 0xff, 0])


class Sender:
    """An end system whose frames are made here."""

    def __init__(self, namespace, interface, es):
        with Inside(namespace):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.socket.bind((interface, ETH_P_ALL))
        self.es, self.numbers, self.identification = es, {}, 0

    def send(self, vl, payload, protocol=1, to=address(M1), room=1472, step=1, damage=None):
        """One IP packet, in fragments of at most `room` bytes: their account holds some frames at a time."""
        self.identification += 1
        for offset in range(0, len(payload), room):
            part = payload[offset:offset + room]
            more = 0x2000 if offset + room < len(payload) else 0
            header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(part), self.identification, more | offset // 8, 1, protocol, 0,
                                 address(self.es), to)
            header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
            # 0, then 1 to 255 and again from 1.
            number = self.numbers.get(vl, -step) + step
            number = (number - 1) % 255 + 1 if number > 0 else 0
            self.numbers[vl] = number
            body = (header + part).ljust(45, b"\0")
            frame = struct.pack(">IH3sHBH", 0x03000000, vl, b"\x02\0\0", self.es, 0x20, 0x0800) + body + bytes([number])
            self.socket.send(damage(frame) if damage else frame)
        time.sleep(0.003)

    def received(self, vl, seconds=3.0):
        """The IP packet that comes next by a virtual link, fragments put together: frames, protocol, source, destination, payload."""
        frames, until = [], time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], rest)[0]:
                break
            frame, info = self.socket.recvfrom(2000)
            if info[2] == socket.PACKET_OUTGOING or frame[:6] != struct.pack(">IH", 0x03000000, vl):
                continue
            frames.append(frame)
            flags = struct.unpack(">H", frame[20:22])[0]
            if not flags & 0x2000:
                length = lambda frame: struct.unpack(">H", frame[16:18])[0]
                payload = b"".join(frame[34:14 + length(frame)] for frame in frames)
                return frames, frame[23], frame[26:30], frame[30:34], payload
        return None


def echo(data, kind=8):
    message = struct.pack(">BBHHH", kind, 0, 0, 0x1234, 7) + data
    return message[:2] + struct.pack(">H", checksum(message)) + message[4:]


def udp(source, port, data):
    return struct.pack(">HHHH", source, port, 8 + len(data), 0) + data


def echoes(one, two):
    one.send(1, echo(b"are you there?"))
    answer = one.received(2)
    note(answer is not None, "an echo request is answered")
    if answer:
        frames, protocol, source, destination, payload = answer
        same("the reply's addresses", (frames[0][:12].hex(), source, destination), ("030000000002" "020000010920", address(M1), address(ES1)))
        same("the reply repeats the request", (protocol, payload, len(frames)), (1, echo(b"are you there?", 0), 1))
        same("its first sequence number", frames[0][-1], 0)
        same("the checksum of its IP header", checksum(frames[0][14:34]), 0)
    one.send(1, echo(b"all"), to=bytes([224, 224, 0, 1]))
    answer = one.received(2)
    same("so is one to the address of the virtual link", answer and answer[4], echo(b"all", 0))
    data = bytes(range(256)) * 12
    one.send(1, echo(data))
    answer = one.received(2)
    same("one in fragments is answered in fragments", answer and (len(answer[0]), answer[4]), (3, echo(data, 0)))
    # Each is dropped with a reason of its own.
    one.send(1, echo(b"damaged")[:-1] + b"?")
    one.send(1, echo(b"no request", 13))
    one.send(1, echo(b"")[:6])
    one.send(1, echo(b"another"), to=address(ES2))
    one.send(1, b"tcp", protocol=6)
    one.send(1, udp(1000, 162, b"a trap"), protocol=17)
    one.send(1, echo(b"header"), damage=lambda frame: frame[:24] + bytes([frame[24] ^ 1]) + frame[25:])
    one.send(1, echo(b"out of window"), step=9)
    one.send(1, udp(1000, 161, b"\x30\x80no message of SNMP"), protocol=17)
    one.send(1, udp(1000, 161, b"\x30\x26\x02\x01\x01\x04\x07private"), protocol=17)
    same("what is wrong is not answered", one.received(2, 0.7), None)
    # Policing has the switch drop what comes too fast, so what the end system gets is a trickle.
    two.send(5, echo(b"no way back"))
    two.send(5, udp(1000, 161, b"\x30\x00"), protocol=17)
    same("an end system without a virtual link back gets no answer", two.received(2, 0.7), None)


def numbers(switch, inside):
    """The rows of all links but those that the questions themselves pass."""
    rows = {}
    for name, value in inside.walk(VLS, tool="snmpbulkwalk").items():
        port, vl = map(int, name.split(".")[-2:])
        if vl not in (1, 2):
            rows[name] = value
    status = {(link["port"], link["vl"]): link for link in switch.status()["afdx"]["virtual_links"]}
    columns = {4: "frames", 6: "bytes", 7: "too_short", 8: "too_long", 9: "policed", 10: "mode", 11: "aged"}
    wanted = {f"{VLS}.1.{column}.{port + 1}.{vl}": str(link[key]) for (port, vl), link in status.items() if vl not in (1, 2)
              for column, key in columns.items()}
    wrong = [(name, rows.get(name), value) for name, value in wanted.items() if rows.get(name) != value]
    same("through a virtual link each number of each link is that of /status", wrong[:5], [])
    note(len(wanted) == 7 * (LINKS - 2) and any(int(value) for value in wanted.values()), "those of all links, and not all 0", f"{len(wanted)}")


def walks(switch, namespace, interface):
    """Asks by a gateway: `millrace es` as ES1."""
    command = ["ip", "netns", "exec", namespace, MILLRACE, "es", FILE, "--name", "ES1", "-i", f"A@{interface}", "--silent", "--udp", "1161=M1:161", "--json"]
    es = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = es.stderr.readline()
        note(re.match(r"udp:127\.0\.0\.1:1161 leads to M1:161", said) is not None, "the gateway says where it leads", said)
        es.stderr.readline()
        inside = copy.copy(switch)
        inside.port = 1161
        same("a name", inside.walk(".1.3.6.1.2.1.1.5"), {".1.3.6.1.2.1.1.5.0": "managed"})
        same("part number and CRC", inside.walk(".1.3.6.1.3.6647.1.1.5"), switch.walk(".1.3.6.1.3.6647.1.1.5"))
        begun = time.monotonic()
        walked = inside.walk(VLS, tool="snmpbulkwalk")
        took = time.monotonic() - begun
        print(f"    snmpbulkwalk through a virtual link, {len(walked)} objects: {took:.2f} s")
        same("a walk through a virtual link finds all links", len(walked), LINKS * 9)
        # A virtual link lets one request pass in each BAG, and an answer of one frame has nine objects or more.
        most = WALK_SECONDS + LINKS * BAG_SECONDS
        note(took < most, f"within {most:.1f} s", f"{took:.2f} s")
        numbers(switch, inside)
        some = {name: value for name, value in inside.walk(VLS + ".1.4", tool="snmpwalk").items()}
        same("snmpwalk finds the rows of all links", len(some), LINKS)
        _, done = inside.tool("snmpget", ".1.3.6.1.2.1.1.3.0", community="private")
        note("Timeout" in done.stderr, "another community hears nothing", done.stderr)
        same("a wrong community, and messages that are none, are counted",
             [inside.walk(f".1.3.6.1.2.1.11.{number}").popitem()[1] for number in (4, 6)], ["1", "2"])
        two_at_once(inside)
        # What managers do in the other modes.
        before = switch.status()
        same("a passive switch", switch.mode("set", "passive").stdout.split(" ")[0], "passive")
        same("answers in virtual links", inside.walk(".1.3.6.1.3.6647.1.1.1").popitem()[1], "4")
        forwarded(switch, namespace, before)
        switch.mode("set", "quiet")
        same("a quiet one does not", inside.walk(".1.3.6.1.3.6647.1.1.1"), {})
        switch.mode("set", "init")
    finally:
        es.terminate()
        out, error = es.communicate(timeout=20)
    report = json.loads(out)
    [gateway] = report["gateways"]
    note(gateway["sent"] >= gateway["received"] > 100, "the gateway counts", f"{gateway} {error}")


def two_at_once(inside):
    """Two programs at one gateway get their own answers."""
    names = [".1.3.6.1.2.1.2.2.1.2", ".1.3.6.1.2.1.31.1.1.1.1"]
    alone = [inside.walk(name) for name in names]
    command = [*inside.before, "snmpwalk", "-v2c", "-c", "public", "-m", "", "-r", "0", "-t", "3", "-OneUQ", "127.0.0.1:1161"]
    both = [[subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in names] for _ in range(3)]
    for pair in both:
        for tool, wanted in zip(pair, alone):
            lines = tool.communicate(timeout=30)[0].splitlines()
            same("two programs at once: each has its own answers", len(lines), len(wanted))


def forwarded(switch, namespace, before):
    two = Sender(namespace, "b1", ES2)
    two.send(4, udp(1, 2, b"measured"), protocol=17)
    status = switch.status()
    link = lambda status: next(link for link in status["afdx"]["virtual_links"] if link["vl"] == 4)
    same("and forwards nothing", link(status)["mode"] - link(before)["mode"], 1)


def build(namespace):
    run = lambda *args: subprocess.run(args, check=True, capture_output=True)
    run("ip", "netns", "add", namespace)
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    for port in "01":
        run("ip", "-n", namespace, "link", "add", f"a{port}", "type", "veth", "peer", "name", f"b{port}")
        for end in "ab":
            run("ip", "netns", "exec", namespace, "sysctl", "-q", f"net.ipv6.conf.{end}{port}.disable_ipv6=1")
            run("ip", "-n", namespace, "link", "set", f"{end}{port}", "up")


def entries(folder):
    """What the switch needs for the network, and links enough for a long walk."""
    done = subprocess.run([MILLRACE, "network", "entries", FILE, "--switch", "S1"], capture_output=True, text=True, check=True)
    path = Path(folder) / "S1.entries"
    more = [f"table_add vls forward 1 {1000 + row} => {5 + row} {5 + row} 64 1518 0x02 0x1 0\n" for row in range(LINKS - 5)]
    path.write_text(done.stdout + "".join(more))
    same("management passes in three modes", re.findall(r"table_add vls forward \d (\d) => \d \d 64 \d+ (0x\w+)", done.stdout),
         [("1", "0x0e"), ("2", "0x0e"), ("3", "0x02"), ("4", "0x02"), ("5", "0x0e")])
    return path


def without_entries(namespace, folder):
    """A switch whose entries are wrong has those of its management alone."""
    wrong, management = Path(folder) / "S1.entries", Path(folder) / "management.entries"
    command = [MILLRACE, "network", "entries", FILE, "--switch", "S1", "--management"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    management.write_text(text)
    # Virtual links and accounts have the numbers that they have in the other file.
    numbers = re.findall(r"table_add vls forward \d (\d) => (\d) (\d) ", text)
    same("the entries of management have its virtual links alone", numbers, [("1", "0", "0"), ("2", "1", "1"), ("5", "4", "4")])
    same("and their accounts", re.findall(r"account_set accounts (\d) ", text), ["0", "1", "4"])
    ports = ["-i", "0@packet:a0", "-i", "1@packet:a1", "-i", f"9@es:{FILE},M1,management=on"]
    with running("programs/afdx.p4", "--entries", wrong, "--entries-crc", "00000000", "--management-entries", management, *ports,
                 before=["ip", "netns", "exec", namespace]) as switch:
        status = switch.status()
        entries = {table["table"]: table["entries"] for table in status["tables"]}
        same("a switch without valid entries is passive", (status["mode"]["mode"], entries["AfdxIngress.vls"]), ("passive", len(numbers)))
        one = Sender(namespace, "b0", ES1)
        one.send(1, echo(b"passive"))
        answer = one.received(2)
        same("and answers in the virtual links of its management", answer and answer[4], echo(b"passive", 0))
        one.send(3, udp(1, 2, b"measured"), protocol=17)
        note(switch.status()["ports"][1]["tx_packets"] == 0, "others are not forwarded")
        one.socket.close()


def test():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return skip("answers in virtual links", "needs root and `ip`")
    namespace = f"snmpvl{os.getpid()}"
    try:
        build(namespace)
    except subprocess.CalledProcessError as error:
        return skip("answers in virtual links", f"no network namespace: {error.stderr.decode().strip()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            ports = ["-i", "0@packet:a0", "-i", "1@packet:a1", "-i", f"9@es:{FILE},M1,management=on,report={report}"]
            with running("programs/afdx.p4", "--entries", entries(folder), *ports, "--snmp-name", "managed",
                         before=["ip", "netns", "exec", namespace]) as switch:
                one, two = Sender(namespace, "b0", ES1), Sender(namespace, "b1", ES2)
                echoes(one, two)
                for _ in range(7):
                    two.send(4, udp(1, 2, b"measured"), protocol=17)
                one.socket.close()
                two.socket.close()
                walks(switch, namespace, "b0")
                own = switch.status()["own_end_system"]
                walked = switch.walk(".1.3.6.1.3.6647.1.6")
                same("the end system's own counters in SNMP", [int(value) for value in walked.values()], list(own.values()))
            told = json.loads(report.read_text())
            discards, management = told["discards"], told["management"]
            reasons = {"icmp-checksum": 1, "icmp-type": 1, "icmp-length": 1, "echo-address": 1, "protocol": 1, "no-port": 1, "ip-checksum": 1,
                       "out-of-window": 1}
            same("its counters in /status are those of the report", own, management)
            note(own["frames"] > own["requests"] and own["discarded"] == sum(discards.values()) > 7, "frames and discards", f"{own} {discards}")
            same("each reason has its counter", {reason: discards.get(reason, 0) for reason in reasons}, reasons)
            same("echo replies, and those without a way back", (management["echoes"], management["no_way"]), (3, 2))
            note(management["requests"] == management["answers"] + 3 > 1000, "each request is answered, but for those that are wrong", f"{management}")
            without_entries(namespace, folder)
    finally:
        subprocess.run(["ip", "netns", "del", namespace], capture_output=True)
