"""TCP connections that send as much as they may, or take it. Run by tests/traffic/linux.

    tcp.py take ADDRESS PORT FLOWS SETTLE SECONDS    says how many bytes came of each, by its source port, in so many seconds after SETTLE
    tcp.py send ADDRESS PORT FLOWS CONTROL           from ports 10001 on, with a congestion control of the kernel, until it is ended
"""
import json
import select
import socket
import sys
import time

FIRST_PORT = 10001


def take(address, port, flows, settle, seconds):
    listener = socket.create_server((address, port), backlog=flows)
    print("ready", flush=True)
    waiting, peers = select.epoll(), {}
    room = bytearray(1 << 18)
    for _ in range(flows):
        peer, (_, source) = listener.accept()
        peer.setblocking(False)
        peers[peer.fileno()] = (peer, source)
        waiting.register(peer.fileno(), select.EPOLLIN)
    begins = time.monotonic() + settle
    ends = begins + seconds
    counts = {source: 0 for _, source in peers.values()}
    while (now := time.monotonic()) < ends:
        for number, _ in waiting.poll(0.1):
            peer, source = peers[number]
            try:
                size = peer.recv_into(room)
            except BlockingIOError:
                continue
            if size == 0:
                sys.exit(f"the connection from port {source} has ended")
            if now >= begins:
                counts[source] += size
    print(json.dumps(counts))


def send(address, port, flows, control):
    waiting, peers = select.epoll(), {}
    for number in range(flows):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        peer.bind(("", FIRST_PORT + number))
        peer.connect((address, port))
        peer.setblocking(False)
        peers[peer.fileno()] = peer
        waiting.register(peer.fileno(), select.EPOLLOUT)
    data = bytes(1 << 16)
    while True:
        for number, _ in waiting.poll():
            try:
                peers[number].send(data)
            except BlockingIOError:
                pass
            except (ConnectionResetError, BrokenPipeError):
                return


if __name__ == "__main__":
    what, address, *rest = sys.argv[1:]
    {"take": take, "send": send}[what](address, *(int(word) if word.isdigit() else word for word in rest))
