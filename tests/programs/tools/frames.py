"""Builds and takes apart frames with nothing but struct and zlib, so that what tests expect of the switch does not come from it."""
import struct


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip(text):
    return bytes(int(part) for part in text.split("."))


def ip6(text):
    import socket
    return socket.inet_pton(socket.AF_INET6, text)


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def eth(dst, src, kind, payload=b""):
    return mac(dst) + mac(src) + struct.pack(">H", kind) + payload


def ipv4(src, dst, payload=b"", *, proto=253, ttl=64, tos=0, ident=0, flags=0, offset=0, version=4, options=b"", ihl=None,
         total=None, bad_checksum=False):
    """Protocol 253 is for experiments (RFC 3692). `ihl` and `total` override what the contents say."""
    words = 5 + len(options) // 4 if ihl is None else ihl
    length = 20 + len(options) + len(payload) if total is None else total
    head = struct.pack(">BBHHHBBH", version << 4 | words, tos, length, ident, flags << 13 | offset, ttl, proto, 0)
    tail = ip(src) + ip(dst) + options
    value = checksum(head + tail) ^ (1 if bad_checksum else 0)
    return head[:10] + struct.pack(">H", value) + tail + payload


def ipv6(src, dst, payload=b"", *, proto=59, hops=64, version=6):
    """Next header 59 is none."""
    return struct.pack(">IHBB", version << 28, len(payload), proto, hops) + ip6(src) + ip6(dst) + payload


def pseudo(src, dst, proto, segment):
    return ip(src) + ip(dst) + struct.pack(">BBH", 0, proto, len(segment))


def udp(src, dst, sport, dport, payload=b"", *, check=True, wrong=0):
    head = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0)
    if not check:
        return head + payload
    value = (checksum(pseudo(src, dst, 17, head + payload) + head + payload) or 0xffff) ^ wrong
    return head[:6] + struct.pack(">H", value) + payload


def tcp(src, dst, sport, dport, payload=b"", *, seq=1, ack=0, flags=0x18, options=b"", wrong=0):
    head = struct.pack(">HHIIBBHHH", sport, dport, seq, ack, (5 + len(options) // 4) << 4, flags, 8192, 0, 0)
    segment = head + options + payload
    value = checksum(pseudo(src, dst, 6, segment) + segment) ^ wrong
    return head[:16] + struct.pack(">H", value) + head[18:] + options + payload


def pcap(frames, interval_us=1000):
    """A capture file: Ethernet, microseconds; frame n at n times the interval."""
    parts = [struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)]
    for n, frame in enumerate(frames):
        at = n * interval_us
        parts.append(struct.pack("<IIII", at // 1000000, at % 1000000, len(frame), len(frame)) + frame)
    return b"".join(parts)
