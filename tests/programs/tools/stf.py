"""A test in STF under construction."""


class Stf:
    def __init__(self, about):
        self.lines = ["# SPDX-License-Identifier: Apache-2.0", "#"] + [f"# {line}" for line in about.splitlines()]
        self.lines += ["# Written by tests/programs/tools/make_stf.py."]

    def say(self, text):
        self.lines += ["", f"# {text}"]

    def do(self, *commands):
        self.lines += commands

    def packet(self, port, frame):
        self.lines.append(f"packet {port} {self.hex(frame)}")

    def expect(self, port, frame):
        self.lines.append(f"expect {port} {self.hex(frame)} $")

    def forward(self, text, port, frame, *out):
        """A frame in, and (port, frame) for each that must come out; none: it is dropped."""
        self.say(text)
        self.packet(port, frame)
        for to, sent in out:
            self.expect(to, sent)

    @staticmethod
    def hex(frame):
        """Ethernet header, then groups of 16 bytes."""
        parts = [frame[:6], frame[6:12], frame[12:14]] + [frame[i:i + 16] for i in range(14, len(frame), 16)]
        return " ".join(p.hex() for p in parts if p)

    def text(self):
        return "\n".join(self.lines) + "\n"
