"""A switch and three hosts, each in a network namespace of its own, joined by veth pairs.

    h0 eth0 --- s0 \
    h1 eth0 --- s1  switch
    h2 eth0 --- s2 /

All of it is named after this process and gone when the Lab is closed. Nothing is touched outside these namespaces.
"""
import ctypes
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

PORTS = 3
CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
PACKET_OUTGOING = 4
LIBC = ctypes.CDLL(None, use_errno=True)


def host_mac(n):
    return f"06:00:00:00:00:{n:02x}"


def call(*cmd, check=True, timeout=30):
    done = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(cmd)}: exit {done.returncode}: {done.stdout.strip()}")
    return done


class Inside:
    """`with Inside(namespace):` this thread is in it; sockets made meanwhile stay in it."""

    def __init__(self, namespace):
        self.namespace = namespace

    def __enter__(self):
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/var/run/netns/{self.namespace}", os.O_RDONLY)
        try:
            self._enter(there)
        finally:
            os.close(there)

    def __exit__(self, *_):
        self._enter(self.home)
        os.close(self.home)

    @staticmethod
    def _enter(fd):
        if LIBC.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


class Capture:
    """The frames that pass an interface while this is open: `sent` by the host, `received` by it."""

    def __init__(self, namespace, interface="eth0"):
        with Inside(namespace):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.socket.bind((interface, ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.sent, self.received, self.stopping = [], [], False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while True:
            ready = select.select([self.socket], [], [], 0.1)[0]
            if ready:
                frame, address = self.socket.recvfrom(65536)
                (self.sent if address[2] == PACKET_OUTGOING else self.received).append(frame)
            elif self.stopping:
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True     # once nothing has come for a moment
        self.thread.join(10)
        self.socket.close()


class Lab:
    def __init__(self, queues=1):
        """`queues`: receive queues of each interface of the switch."""
        self.queues = str(queues)
        tag = f"mr{os.getpid()}"
        self.switch_ns = f"{tag}s"
        self.hosts = [f"{tag}h{n}" for n in range(PORTS)]
        self.namespaces, self.processes = [], []

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def plain(namespace, interface):
        """Frames pass as a cable would carry them, and none of the kernel's own are among them."""
        # Without this the kernel hands on segments larger than a frame, with checksums still to be filled in.
        call("ip", "netns", "exec", namespace, "ethtool", "-K", interface, "tx", "off", "rx", "off", "sg", "off", "tso", "off",
             "gso", "off", "gro", "off")
        # No link-local addresses, hence no router solicitations among the frames that we count.
        call("ip", "-n", namespace, "link", "set", interface, "addrgenmode", "none")
        call("ip", "-n", namespace, "link", "set", interface, "up")

    def _build(self):
        for namespace in [self.switch_ns, *self.hosts]:
            self.namespaces.append(namespace)
            call("ip", "netns", "add", namespace)
            call("ip", "-n", namespace, "link", "set", "lo", "up")
        self.quiet(self.switch_ns)
        for n, host in enumerate(self.hosts):
            call("ip", "-n", self.switch_ns, "link", "add", f"s{n}", "numrxqueues", self.queues, "numtxqueues", self.queues,
                 "type", "veth", "peer", "name", "eth0", "netns", host)
            call("ip", "-n", host, "link", "set", "eth0", "address", host_mac(n))
            for namespace, interface in (self.switch_ns, f"s{n}"), (host, "eth0"):
                self.plain(namespace, interface)

    @staticmethod
    def quiet(namespace):
        """The switch's own kernel has no say in what arrives at its ports."""
        call("ip", "netns", "exec", namespace, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")

    def same_subnet(self):
        """Hosts 10.0.0.1, .2 and .3; they find each other by ARP."""
        for n, host in enumerate(self.hosts):
            self._clear(host)
            call("ip", "-n", host, "addr", "add", f"10.0.0.{n + 1}/24", "dev", "eth0")

    def routed(self):
        """Hosts 10.0.N.2 and 2001:db8:0:N::2, each behind a router 02:00:00:00:00:0N that answers no ARP."""
        for n, host in enumerate(self.hosts):
            self._clear(host)
            for address, gateway, option in ((f"10.0.{n}.2/24", f"10.0.{n}.1", []),
                                             (f"2001:db8:0:{n}::2/64", f"2001:db8:0:{n}::1", ["nodad"])):
                call("ip", "-n", host, "addr", "add", address, "dev", "eth0", *option)
                call("ip", "-n", host, "neigh", "replace", gateway, "lladdr", f"02:00:00:00:00:{n:02x}", "dev", "eth0",
                     "nud", "permanent")
                call("ip", "-n", host, "route", "replace", "default", "via", gateway)

    @staticmethod
    def _clear(host):
        call("ip", "-n", host, "addr", "flush", "dev", "eth0")
        call("ip", "-n", host, "neigh", "flush", "all", check=False)

    # ---- The switch ----

    def start(self, *command, namespace=None):
        """Starts a process in the switch's namespace, or another; its output is kept for when something goes wrong."""
        said = tempfile.TemporaryFile("w+", errors="replace")      # a pipe that nobody reads would stop it once full
        process = subprocess.Popen(["ip", "netns", "exec", namespace or self.switch_ns, *command], stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
        process.said = said
        self.processes.append(process)
        return process

    def stop(self, process, how=signal.SIGTERM):
        """Asks it to end, and makes it after five seconds. Returns (exit status, output)."""
        if process.poll() is None:
            process.send_signal(how)
        note = ""
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            note = "\n(killed: it did not end when asked to)"
        if process in self.processes:
            self.processes.remove(process)
        process.said.seek(0)
        with process.said as said:
            return process.returncode, said.read()[-4000:] + note

    # ---- What hosts do ----

    def ping(self, n, address, count=3, ttl=None, size=None, wait=2):
        options = (["-t", str(ttl)] if ttl else []) + (["-s", str(size)] if size else [])
        done = call("ip", "netns", "exec", self.hosts[n], "ping", "-n", "-q", "-c", str(count), "-i", "0.1", "-W", str(wait), *options,
                    address, check=False, timeout=60)
        return done.returncode == 0 and f" {count} received" in done.stdout, done.stdout.strip()

    def reachable(self, n, address, seconds=20):
        """Waits until the switch forwards."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.ping(n, address, count=1, wait=1)[0]:
                return True
            if any(p.poll() is not None for p in self.processes):
                return False
        return False

    def transfer(self, client, server, address, data):
        """Sends the data by TCP and has it sent back; returns what came back."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with Inside(self.hosts[server]):
            listener = socket.socket(family, socket.SOCK_STREAM)
        with Inside(self.hosts[client]):
            caller = socket.socket(family, socket.SOCK_STREAM)
        listener.settimeout(20)
        caller.settimeout(20)
        listener.bind((address, 7007))
        listener.listen(1)

        def echo():
            try:
                peer = listener.accept()[0]
                peer.settimeout(20)
                with peer:
                    while chunk := peer.recv(65536):
                        peer.sendall(chunk)
            except OSError:
                pass    # the client's end tells the story

        server_thread = threading.Thread(target=echo, daemon=True)
        server_thread.start()
        back = bytearray()
        with listener, caller:
            caller.connect((address, 7007))

            def send():
                try:
                    caller.sendall(data)
                    caller.shutdown(socket.SHUT_WR)
                except OSError:
                    pass

            sender = threading.Thread(target=send, daemon=True)
            sender.start()
            while chunk := caller.recv(65536):
                back += chunk
            sender.join(20)
            server_thread.join(20)
        return bytes(back)

    def iperf(self, client, server, address, seconds=2):
        """Mbit/s of one TCP connection, or None."""
        listener = subprocess.Popen(["ip", "netns", "exec", self.hosts[server], "iperf3", "-s", "-1", "-B", address],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(20):     # until it listens
                time.sleep(0.1)
                done = call("ip", "netns", "exec", self.hosts[client], "iperf3", "-c", address, "-t", str(seconds), "-f", "m",
                            check=False, timeout=60)
                if "unable to connect" not in done.stdout:
                    break
            for line in done.stdout.splitlines():
                if line.endswith("receiver"):
                    words = line.split()
                    return float(words[words.index("Mbits/sec") - 1])
            return None
        finally:
            if listener.poll() is None:
                listener.terminate()
            listener.wait()

    def send_raw(self, n, frame):
        with Inside(self.hosts[n]):
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
                s.bind(("eth0", 0))
                s.send(frame)

    # ---- The end ----

    def close(self):
        for process in list(self.processes):
            self.stop(process)
        for namespace in self.namespaces:
            # Whatever a test left running in there (an iperf3 that nobody called) would keep it alive.
            for pid in call("ip", "netns", "pids", namespace, check=False).stdout.split():
                if pid.isdigit() and int(pid) != os.getpid():
                    try:
                        os.kill(int(pid), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            call("ip", "netns", "del", namespace, check=False)
        self.namespaces.clear()
