"""The WebSocket client of the interoperation tests: the package websockets, by threads and by asyncio.

    python websocket.py HTTP_URL HTTPS_URL

It prints one line "ok: WAY" for each way, and ends with 1 at the first mistake.
"""

import asyncio
import os
import ssl
import sys
from urllib.parse import urlsplit

import websockets
import websockets.sync.client

SIZES = [0, 1, 125, 126, 65535, 65536, 1 << 20, 8 << 20]


def contexts(base):
    if not base.startswith("https:"):
        return {}
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}


def url(base):
    scheme = "wss" if base.startswith("https:") else "ws"
    return f"{scheme}://{urlsplit(base).netloc}/ws"


def by_threads(way, base, compression):
    options = dict(compression=compression, max_size=1 << 24, max_queue=None, **contexts(base))
    with websockets.sync.client.connect(url(base), subprotocols=["echo"], **options) as socket:
        assert socket.subprotocol == "echo"
        agreed = socket.response.headers.get("Sec-WebSocket-Extensions")
        assert (agreed is not None) == (compression is not None), agreed
        for size in SIZES:
            binary = os.urandom(size)
            socket.send(binary)
            assert socket.recv() == binary, size
            text = ("grüße" + os.urandom(size // 2 + 1).hex())[:size]
            socket.send(text)
            assert socket.recv() == text, size
        socket.send(["in ", "th", "ree"])
        assert socket.recv() == "in three"
        assert socket.ping().wait(10)
    assert socket.protocol.close_code == 1000, socket.protocol.close_code
    print(f"ok: {way}")


async def by_asyncio(way, base, compression):
    options = dict(compression=compression, max_size=1 << 24, **contexts(base))

    async def talk(number):
        async with websockets.connect(url(base), **options) as socket:
            assert socket.subprotocol is None
            sent = [os.urandom(number * 1000) for _ in range(20)]

            async def send():
                for message in sent:
                    await socket.send(message)

            sending = asyncio.create_task(send())
            for message in sent:
                assert await socket.recv() == message
            await sending
            await (await socket.ping())

    async with websockets.connect(url(base), **options) as socket:
        for size in SIZES:
            text = ("grüße" + os.urandom(size // 2 + 1).hex())[:size]
            await socket.send(text)
            assert await socket.recv() == text, size
    await asyncio.gather(*(talk(number) for number in range(50)))
    print(f"ok: {way}")


def refusals(way, base):
    authority = urlsplit(base).netloc
    try:
        websockets.sync.client.connect(f"ws://{authority}/ping").close()
    except websockets.exceptions.InvalidStatus as refused:
        assert refused.response.status_code == 200, refused
    else:
        raise AssertionError("/ping is no WebSocket endpoint")
    print(f"ok: {way}")


plain, secure = sys.argv[1:3]
for name, compression in [("plain", None), ("deflate", "deflate")]:
    # Not over TLS: the library uses one SSL object in two threads, and now and then hangs.
    by_threads(f"ws threads {name}", plain, compression)
    asyncio.run(by_asyncio(f"ws asyncio {name}", plain, compression))
    asyncio.run(by_asyncio(f"wss asyncio {name}", secure, compression))
refusals("refusals", plain)
