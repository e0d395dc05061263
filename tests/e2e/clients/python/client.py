"""The Python client of the interoperation tests: http.client, and httpx over both versions.

    python client.py HTTP_URL HTTPS_URL

It prints one line "ok: WAY" for each way, and ends with 1 at the first mistake.
"""

import asyncio
import http.client
import os
import ssl
import sys
from urllib.parse import urlsplit

import httpx

SIZES = [0, 1, 16383, 16384, 16385, 65535, 65536, 65537, 1 << 20, 8 << 20]

# What sockets hold in both directions: http.client, and httpx over HTTP/1.1, read nothing of an echo before they have sent all of it.
UNREAD_BYTES_MAX = 1 << 20


def check_library(way, base):
    """http.client, on one connection; HTTP/1.1 in chunks too."""
    parts = urlsplit(base)
    if parts.scheme == "https":
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(parts.netloc, timeout=60, context=context)
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request("GET", "/ping")
    assert connection.getresponse().read() == b"pong"
    for size in SIZES:
        connection.request("GET", f"/echo?size={size}")
        assert connection.getresponse().read() == b"x" * size, size
        sent = os.urandom(size)
        method, path, status, back = "POST", "/echo", 200, sent
        if size > UNREAD_BYTES_MAX:
            method, path, status, back = "PUT", f"/{size}", 204, b""
        pieces = (sent[at : at + 5000] for at in range(0, size, 5000))
        for body, encode_chunked in [(sent, False), (pieces, True)]:
            connection.request(method, path, body, encode_chunked=encode_chunked)
            response = connection.getresponse()
            assert response.status == status, response.status
            assert response.read() == back, size
    connection.close()
    print(f"ok: {way}")


async def check_httpx(way, base, version, **options):
    async def echo(client, size):
        sent = os.urandom(size)
        response = await client.post(base + "/echo", content=sent)
        assert response.status_code == 200, response
        assert response.content == sent, size

    async with httpx.AsyncClient(verify=False, timeout=60, **options) as client:
        response = await client.get(base + "/ping")
        assert response.text == "pong"
        assert response.http_version == version, response.http_version
        response = await client.head(base + "/ping")
        assert response.headers["content-length"] == "4"
        assert (await client.get(base + "/no/such/path")).status_code == 404
        for size in SIZES:
            response = await client.get(f"{base}/echo?size={size}")
            assert response.content == b"x" * size, size
            if version == "HTTP/2" or size <= UNREAD_BYTES_MAX:
                await echo(client, size)
            else:
                response = await client.put(f"{base}/{size}", content=os.urandom(size))
                assert response.status_code == 204, response
        await asyncio.gather(*(echo(client, 1000 * index) for index in range(100)))
    print(f"ok: {way}")


async def main(plain, secure):
    check_library("http.client", plain)
    check_library("http.client tls", secure)
    one, two = {"http1": True, "http2": False}, {"http1": False, "http2": True}
    await check_httpx("httpx h1", plain, "HTTP/1.1", **one)
    await check_httpx("httpx h2c", plain, "HTTP/2", **two)
    await check_httpx("httpx tls h1", secure, "HTTP/1.1", **one)
    await check_httpx("httpx tls h2", secure, "HTTP/2", **two)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
