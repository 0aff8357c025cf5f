"""A network of an exercise under its own Makefile, driven through the command line of Mininet."""

import os
import re
import selectors
import subprocess
import time

PROMPT = "mininet> "


class Broken(Exception):
    """Something that should be seen was not."""


def need(condition, text):
    if not condition:
        raise Broken(text)


class Net:
    """`make run` in a folder, or another command; commands go to the prompt of Mininet."""

    def __init__(self, folder, env, patience=90, command=("make", "run")):
        self.folder = folder
        self.log = ""
        self.process = subprocess.Popen(
            list(command), cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.start = self._answer(patience)

    def _answer(self, patience):
        """What comes up to the next prompt."""
        text, end = "", time.monotonic() + patience
        while not text.endswith(PROMPT):
            left = end - time.monotonic()
            if left <= 0 or not self.selector.select(left):
                self.log += text
                raise Broken(f"no prompt within {patience} s; the end of what was said:\n{self.log[-3000:]}")
            part = self.process.stdout.read()
            if not part:
                self.log += text
                raise Broken(f"the network ended; the end of what was said:\n{self.log[-3000:]}")
            text += part.decode(errors="replace")
        self.log += text
        return text[:-len(PROMPT)]

    def cli(self, line, patience=60):
        """Gives a line to Mininet and returns its answer."""
        self.log += f"{line}\n"
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()
        return self._answer(patience)

    def background(self, host, command, log, ready=None, patience=20):
        """Starts a command on a host; waits until its log has a text, and half a second more for its socket."""
        self.cli(f"{host} {command} > {log} 2>&1 &")
        if ready:
            self.wait_for(log, ready, patience)
            time.sleep(1.5)

    def read(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return ""
        with open(path, errors="replace") as file:
            return file.read()

    def wait_for(self, log, pattern, patience=20):
        """The first match of a pattern in a log, as soon as it is there."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            found = re.search(pattern, self.read(log), re.M | re.S)
            if found:
                return found
            time.sleep(0.2)
        raise Broken(f"`{pattern}` is not in {log} after {patience} s; it ends with:\n{self.read(log)[-1500:]}")

    def controller(self, script, log):
        """Starts a controller beside the network, as a second terminal would."""
        with open(os.path.join(self.folder, log), "w") as out:
            env = dict(os.environ, PYTHONUNBUFFERED="1")
            return subprocess.Popen(["python3", script], cwd=self.folder, stdout=out, stderr=out, env=env)

    def close(self):
        """Leaves Mininet, which takes its switches and hosts with it."""
        if self.process.poll() is None:
            try:
                self.process.stdin.write(b"exit\n")
                self.process.stdin.close()
                self.process.wait(30)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                os.killpg(self.process.pid, 9)
                self.process.wait()
        self.process.stdout.close()


def ping(net, source, target, count=2):
    """How many of the pings came back, and the TTLs of the answers."""
    said = net.cli(f"{source} ping -c {count} -i 0.3 -W 2 {target}", 30)
    found = re.search(r"(\d+) received", said)
    need(found, f"ping says: {said}")
    return int(found[1]), {int(ttl) for ttl in re.findall(r"ttl=(\d+)", said)}


def switch_cli(thrift_port, command):
    """What the command line of a switch answers to one command, from a terminal beside the network."""
    done = subprocess.run(["simple_switch_CLI", "--thrift-port", str(thrift_port)], input=command + "\n",
                          capture_output=True, text=True, timeout=20)
    return done.stdout + done.stderr
