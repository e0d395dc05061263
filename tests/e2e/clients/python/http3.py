"""The HTTP/3 client of the interoperation tests: aioquic, libcurl with ngtcp2, and frames that are wrong.

    python http3.py HTTPS_URL [early]

It prints one line "ok: WAY" for each way, and ends with 1 at the first mistake. `early`: the server accepts early data, and
only that is tried.
"""

import asyncio
import io
import os
import ssl
import sys
from urllib.parse import urlsplit

import pycurl
from aioquic import tls
from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import (
    ErrorCode,
    H3Connection,
    Setting,
    encode_frame,
    encode_settings,
)
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset
from aioquic.quic.packet import QuicPacketType

SIZES = [0, 1, 16383, 16384, 16385, 65535, 65536, 65537, 1 << 20]
PATIENCE_S = 60

DATA, HEADERS, SETTINGS, GOAWAY, MAX_PUSH_ID = 0x0, 0x1, 0x4, 0x7, 0xD
CONTROL_STREAM = b"\x00"

# Frames of QUIC: a piece of a stream with its place, its length and the stream's end; and a reset.
STREAM_WITH_END, RESET_STREAM = 0x0F, 0x04


class Raw(QuicConnectionProtocol):
    """A connection whose streams carry whatever the test writes; it keeps how the server ends them."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ended = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event):
        if isinstance(event, (ConnectionTerminated, StreamReset)) and not self.ended.done():
            self.ended.set_result((type(event).__name__, event.error_code))

    def write(self, stream, content, end=False):
        self._quic.send_stream_data(stream, content, end)
        self.transmit()

    def one_way(self, content, end=False):
        stream = self._quic.get_next_available_stream_id(is_unidirectional=True)
        self.write(stream, content, end)
        return stream

    def request(self, content, end=False):
        stream = self._quic.get_next_available_stream_id()
        self.write(stream, content, end)


class Client(QuicConnectionProtocol):
    """Requests on one connection, any number at once."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.open = {}

    def quic_event_received(self, event):
        if isinstance(event, (ConnectionTerminated, StreamReset)):
            for _, _, done in self.open.values():
                if not done.done():
                    done.set_exception(AssertionError(str(event)))
        for event in self.http.handle_event(event):
            head, body, done = self.open[event.stream_id]
            if isinstance(event, HeadersReceived):
                head.update(event.headers)
            elif isinstance(event, DataReceived):
                body.append(event.data)
            if event.stream_ended and not done.done():
                done.set_result((head, b"".join(body)))

    async def ask(self, authority, path, method="GET", body=None, fields={}):
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        self.open[stream] = ({}, [], done)
        head = {":method": method, ":scheme": "https", ":authority": authority, ":path": path}
        head |= fields
        head = [(name.encode(), value.encode()) for name, value in head.items()]
        self.http.send_headers(stream, head, end_stream=body is None)
        if body is not None:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        head, body = await asyncio.wait_for(done, PATIENCE_S)
        return int(head[b":status"]), head, body


def open_connection(base, protocol):
    parts = urlsplit(base)
    configuration = QuicConfiguration(alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE)
    return connect(
        parts.hostname, parts.port, configuration=configuration, create_protocol=protocol
    )


async def check_aioquic(base):
    authority = urlsplit(base).netloc
    async with open_connection(base, Client) as client:
        status, head, body = await client.ask(authority, "/ping")
        assert (status, head[b"content-length"], body) == (200, b"4", b"pong"), (head, body)
        # No HEAD: aioquic would compare the length with that of the content.
        assert (await client.ask(authority, "/no/such/path"))[0] == 404
        for size in SIZES:
            _, _, body = await client.ask(authority, f"/echo?size={size}")
            assert body == b"x" * size, size

        async def echo(size):
            sent = os.urandom(size)
            status, _, body = await client.ask(authority, "/echo", "POST", sent)
            assert (status, body == sent) == (200, True), (status, size, len(body))

        for size in SIZES:
            await echo(size)
        await asyncio.gather(*(echo(1000 * index) for index in range(100)))
    print("ok: aioquic")


def frame(opcode, content):
    """A WebSocket frame of a client (RFC 6455 section 5.2), masked."""
    length, mask = len(content), os.urandom(4)
    if length < 126:
        head = bytes([0x80 | opcode, 0x80 | length])
    else:
        head = bytes([0x80 | opcode, 0xFF]) + length.to_bytes(8)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(content))


async def check_websocket(base):
    """Extended CONNECT (RFC 9220): what is sent comes back, and the closing handshake ends the stream."""
    extended = {":protocol": "websocket", "sec-websocket-version": "13"}
    binary = os.urandom(100_000)
    frames = frame(0x1, "grüße".encode()) + frame(0x2, binary) + frame(0x8, b"\x03\xe8")
    async with open_connection(base, Client) as client:
        ask = client.ask(urlsplit(base).netloc, "/ws", "CONNECT", frames, extended)
        status, _, body = await ask
    assert status == 200, status
    assert body.startswith(b"\x81\x07" + "grüße".encode()), body[:20]
    assert body.endswith(b"\x88\x02\x03\xe8") and len(body) > len(binary), len(body)
    print("ok: websocket")


def check_libcurl(base):
    def ask(path, body=None, **options):
        curl, content = pycurl.Curl(), io.BytesIO()
        curl.setopt(pycurl.URL, base + path)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_3ONLY)
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
        curl.setopt(pycurl.TIMEOUT, PATIENCE_S)
        curl.setopt(pycurl.WRITEDATA, content)
        if body is not None:
            curl.setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
            curl.setopt(pycurl.POSTFIELDS, body)
        for name, value in options.items():
            curl.setopt(getattr(pycurl, name), value)
        curl.perform()
        version = curl.getinfo(pycurl.INFO_HTTP_VERSION)
        assert version == pycurl.CURL_HTTP_VERSION_3, version
        return curl.getinfo(pycurl.RESPONSE_CODE), content.getvalue()

    assert ask("/ping") == (200, b"pong")
    assert ask("/ping", NOBODY=1) == (200, b"")
    assert ask("/no/such/path")[0] == 404
    for size in SIZES:
        assert ask(f"/echo?size={size}") == (200, b"x" * size), size
        sent = os.urandom(size)
        assert ask("/echo", sent) == (200, sent), size
    print("ok: libcurl")


def settings(**values):
    return encode_frame(SETTINGS, encode_settings(values or {Setting.QPACK_MAX_TABLE_CAPACITY: 0}))


def second_control_stream(raw):
    raw.one_way(CONTROL_STREAM + settings())
    raw.one_way(CONTROL_STREAM + settings())


def closed_control_stream(raw):
    raw.one_way(CONTROL_STREAM + settings(), end=True)


def on_control_stream(frame):
    return lambda raw: raw.one_way(CONTROL_STREAM + settings() + frame)


def on_request_stream(content, end=False):
    def write(raw):
        raw.one_way(CONTROL_STREAM + settings())
        raw.request(content, end)

    return write


def fields(*pairs):
    """A field section of literals without Huffman code (RFC 9204 section 4.5.6), names below 7 bytes and one byte more."""
    section = b"\x00\x00"
    for name, value in pairs:
        if len(name) < 7:
            section += bytes([0x20 | len(name)])
        else:
            section += bytes([0x27, len(name) - 7])
        section += name + bytes([len(value)]) + value
    return section


GET = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/ping")]

# What is sent, the event that it must lead to, its code, and where RFC 9114 or RFC 9204 says so.
MISTAKES = [
    ("second control stream", second_control_stream, "ConnectionTerminated", "H3_STREAM_CREATION_ERROR"),  # 6.2.1
    ("closed control stream", closed_control_stream, "ConnectionTerminated", "H3_CLOSED_CRITICAL_STREAM"),  # 6.2.1
    (
        "control stream without SETTINGS",
        lambda raw: raw.one_way(CONTROL_STREAM + encode_frame(GOAWAY, b"\x00")),
        "ConnectionTerminated",
        "H3_MISSING_SETTINGS",  # 6.2.1
    ),
    ("second SETTINGS", on_control_stream(settings()), "ConnectionTerminated", "H3_FRAME_UNEXPECTED"),  # 7.2.4
    ("DATA on the control stream", on_control_stream(encode_frame(DATA, b"x")), "ConnectionTerminated", "H3_FRAME_UNEXPECTED"),  # 7.2.1
    (
        "a setting of HTTP/2",
        lambda raw: raw.one_way(CONTROL_STREAM + encode_frame(SETTINGS, b"\x02\x00")),
        "ConnectionTerminated",
        "H3_SETTINGS_ERROR",  # 7.2.4.1
    ),
    (
        "MAX_PUSH_ID that falls",
        on_control_stream(encode_frame(MAX_PUSH_ID, b"\x08") + encode_frame(MAX_PUSH_ID, b"\x04")),
        "ConnectionTerminated",
        "H3_ID_ERROR",  # 7.2.7
    ),
    ("DATA before HEADERS", on_request_stream(encode_frame(DATA, b"x")), "ConnectionTerminated", "H3_FRAME_UNEXPECTED"),  # 4.1
    ("SETTINGS on a request stream", on_request_stream(settings()), "ConnectionTerminated", "H3_FRAME_UNEXPECTED"),  # 7.2.4
    ("a frame type of HTTP/2", on_request_stream(encode_frame(0x8, b"")), "ConnectionTerminated", "H3_FRAME_UNEXPECTED"),  # 7.2.8
    ("HEADERS cut short", on_request_stream(b"\x01\x20\x00\x00", end=True), "ConnectionTerminated", "H3_FRAME_ERROR"),  # 7.1
    (
        "an index outside of the static table",
        on_request_stream(encode_frame(HEADERS, b"\x00\x00\xff\xff\x01")),
        "ConnectionTerminated",
        "QPACK_DECOMPRESSION_FAILED",  # RFC 9204 3.1
    ),
    (
        "no :method",
        on_request_stream(encode_frame(HEADERS, fields(*GET[1:])), end=True),
        "StreamReset",
        "H3_MESSAGE_ERROR",  # 4.3.1
    ),
    (
        "a field name in upper case",
        on_request_stream(encode_frame(HEADERS, fields(*GET, (b"X-A", b"1"))), end=True),
        "StreamReset",
        "H3_MESSAGE_ERROR",  # 4.2
    ),
]


async def check_mistakes(base):
    for name, make, event, code in MISTAKES:
        async with open_connection(base, Raw) as raw:
            make(raw)
            ended, got = await asyncio.wait_for(raw.ended, PATIENCE_S)
            assert (ended, got) == (event, ErrorCode[code]), (name, ended, hex(got))
    # The server is as it was.
    async with open_connection(base, Client) as client:
        assert (await client.ask(urlsplit(base).netloc, "/ping"))[2] == b"pong"
    print("ok: mistakes")


async def check_final_size(base):
    """RFC 9000 section 4.5: ten bytes of a stream, its end after three, and a reset there. Others are served as before."""
    async with open_connection(base, Raw) as raw:
        await raw.ping()
        raw.one_way(CONTROL_STREAM + settings())
        raw.request(b"0123456789")
        write = raw._quic._write_application

        def write_first(builder, *rest):
            raw._quic._write_application = write
            crypto = raw._quic._cryptos[tls.Epoch.ONE_RTT]
            builder.start_packet(QuicPacketType.ONE_RTT, crypto)
            for kind, numbers in [(STREAM_WITH_END, (0, 3, 0)), (RESET_STREAM, (0, 0, 3))]:
                buffer = builder.start_frame(kind, capacity=8)
                for number in numbers:
                    buffer.push_uint_var(number)
            write(builder, *rest)

        raw._quic._write_application = write_first
        raw.transmit()
        async with open_connection(base, Client) as client:
            assert (await client.ask(urlsplit(base).netloc, "/ping"))[2] == b"pong"
    print("ok: final size")


async def check_early(base):
    """RFC 8470: with the first packets, what is safe is served, and anything else repeated later."""
    parts, tickets = urlsplit(base), []

    def open_early():
        ticket = tickets.pop() if tickets else None
        return connect(
            parts.hostname,
            parts.port,
            configuration=QuicConfiguration(
                alpn_protocols=["h3"],
                verify_mode=ssl.CERT_NONE,
                session_ticket=ticket,
            ),
            create_protocol=Client,
            session_ticket_handler=tickets.append,
            wait_connected=ticket is None,
        )

    async with open_early() as client:
        assert (await client.ask(parts.netloc, "/ping"))[0] == 200
    refused = 0
    # What comes together with the end of the handshake is not early any more, and is served.
    for _ in range(50):
        async with open_early() as client:
            get = client.ask(parts.netloc, "/ping")
            post = client.ask(parts.netloc, "/echo", "POST", b"order")
            got, posted = await asyncio.gather(get, post)
            assert got[0] == 200, got
            assert posted[0] == 425 or (posted[0], posted[2]) == (200, b"order"), posted
            assert client._quic.tls.early_data_accepted or not client._quic.tls.session_resumed
            assert (await client.ask(parts.netloc, "/echo", "POST", b"order"))[2] == b"order"
            refused += posted[0] == 425
        if refused == 3:
            break
    assert refused == 3, refused
    print("ok: early data")


base = sys.argv[1]
if sys.argv[2:] == ["early"]:
    asyncio.run(check_early(base))
    sys.exit()
asyncio.run(check_aioquic(base))
asyncio.run(check_websocket(base))
check_libcurl(base)
asyncio.run(check_mistakes(base))
asyncio.run(check_final_size(base))
