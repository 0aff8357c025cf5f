"""A running switch, asked with the tools of net-snmp, and the lines and counts of a test."""
import contextlib
import json
import re
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
MILLRACE = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/millrace").resolve())
MIB = ROOT / "docs/mibs/MILLRACE-AFDX-MIB.txt"
LINKS = 4096
# Asked of an optimised build, next to little else.
WALK_SECONDS = 1.0 if "/release/" in MILLRACE else 30.0
counts = {"passed": 0, "failed": 0, "skipped": 0}


def note(is_ok, what, why=""):
    counts["passed" if is_ok else "failed"] += 1
    print(f"{'ok' if is_ok else 'not ok'} - {what}{'' if is_ok or not why else f': {why}'}", flush=True)


def same(what, got, wanted):
    note(got == wanted, what, f"{got!r}, not {wanted!r}")


def skip(what, why):
    counts["skipped"] += 1
    print(f"skipped - {what}: {why}", flush=True)


class Switch:
    """A switch that runs, with where it is reached."""

    def __init__(self, *args, before=()):
        command = [*before, MILLRACE, "run", *map(str, args), "--metrics", "127.0.0.1:0", "--snmp", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.before, self.said, self.http, self.port, self.thrift = list(before), [], None, None, None
        is_there = False
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.match(r"metrics at (\S+)", line):
                self.http = found[1].rsplit("/", 1)[0]
            if found := re.match(r"SNMP: udp:127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
            if found := re.match(r"Thrift: 127\.0\.0\.1:(\d+)", line):
                self.thrift = found[1]
            is_there = is_there or "is running on" in line
            # It is told last.
            if is_there and (self.thrift or "--thrift" not in args):
                return
        sys.exit(f"the switch has ended: {''.join(self.said)}")

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.stdout.close()
        self.process.stderr.close()

    def status(self):
        # What was asked for a moment ago is told again.
        time.sleep(0.7)
        if self.before:
            address = self.http.split("//")[-1]
            command = [*self.before, sys.executable, "-c",
                       f"import urllib.request; print(urllib.request.urlopen('http://{address}/status').read().decode())"]
            return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        with urllib.request.urlopen(f"{self.http}/status") as answer:
            return json.loads(answer.read())

    def tool(self, name, *args, version="2c", community="public"):
        command = [*self.before, name, f"-v{version}", "-c", community, "-m", "", "-r", "0", "-t", "3", "-OneUQ", *args]
        where = command.index("-OneUQ") + 1
        while where < len(command) and command[where].startswith("-"):
            where += 1
        command.insert(where, f"127.0.0.1:{self.port}")
        done = subprocess.run(command, capture_output=True, text=True)
        values = {}
        for line in done.stdout.splitlines():
            name_of, _, value = line.partition(" = ")
            # The end, by the name of the last object.
            if not value.startswith("No more variables"):
                values[name_of] = value.strip().strip('"')
        return values, done

    def walk(self, name, version="2c", tool="snmpwalk"):
        # In version 1 the end is a line of its own.
        return {object: value for object, value in self.tool(tool, name, version=version)[0].items() if object.startswith(".")}

    def mode(self, *args):
        command = [*self.before, MILLRACE, "mode", *args, "--metrics", self.http.split("//")[-1]]
        return subprocess.run(command, capture_output=True, text=True)


    def shell(self, command):
        """What a client of Thrift is told."""
        arguments = [*self.before, MILLRACE, "shell", "--thrift-port", self.thrift]
        done = subprocess.run(arguments, input=command + "\n", capture_output=True, text=True)
        return done.stdout + done.stderr


@contextlib.contextmanager
def running(*args, before=()):
    switch = Switch(*args, before=before)
    try:
        yield switch
    finally:
        switch.close()


def pcap(path, frames):
    """Writes a capture: time in nanoseconds, bytes."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for at, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 0, at * 1000, len(frame), len(frame)) + frame)


def frame(vl, reason):
    return struct.pack(">IH6sHB", 0x03000000, vl, b"\x02\0\0\0\0\1", 0x0800, reason) + bytes(45)
