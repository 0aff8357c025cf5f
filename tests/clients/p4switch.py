"""The switches of Mininet that finsy's networks name: Millrace, as its environment has it in place of bmv2 and of Stratum.

Switch N, as they are made, serves gRPC at 50000 + N.
"""

import os
import time

from mininet.node import Switch

GRPC = 50000


class Millrace(Switch):
    """One switch, with the ports of its links."""

    made = 0

    def __init__(self, name, config=None, **options):
        Switch.__init__(self, name, **options)
        Millrace.made += 1
        self.config, self.number, self.switch = config or {}, Millrace.made, None
        self.log = f"{os.environ.get('MILLRACE_LOGS', '/tmp')}/{name}.log"

    def start(self, _controllers):
        command = [os.environ["MILLRACE"], "run", "--device-id", "1", "--grpc", f"127.0.0.1:{GRPC + self.number}",
                   "--cpu-port", str(self.config.get("cpu_port", 255))]
        for port, interface in self.intfs.items():
            if port > 0:
                command += ["-i", f"{port}@{interface.name}"]
                # The kernel has nothing to say on them, and leaves no checksum to a card.
                self.cmd(f"sysctl -qw net.ipv6.conf.{interface.name}.disable_ipv6=1")
        for option, key in (("--grpc-cert", "grpc_cert"), ("--grpc-key", "grpc_private_key"), ("--grpc-client-ca", "grpc_cacert")):
            if self.config.get(key):
                command += [option, self.config[key]]
        if self.config.get("grpc_private_key"):
            os.chmod(self.config["grpc_private_key"], 0o600)    # as git has it, others may read it
        for words in self.config.get("commands", []):
            self.cmd(words)
        log = open(self.log, "w")
        self.switch = self.popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while "P4Runtime" not in open(self.log).read() and time.monotonic() < deadline and self.switch.poll() is None:
            time.sleep(0.05)

    def stop(self, deleteIntfs=True):
        if self.switch:
            self.switch.terminate()
            self.switch.wait()
        Switch.stop(self, deleteIntfs)


SWITCHES = {"bmv2": Millrace, "stratum": Millrace}
switches = SWITCHES
