"""A server of aioquic: GET gives `pong`, POST echoes.

    python http3.py CERTIFICATE KEY

It prints `port: N` and ends with its standard input.
"""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Server(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for event in self.http.handle_event(event):
            stream = event.stream_id
            if isinstance(event, HeadersReceived):
                head = dict(event.headers)
                self.http.send_headers(stream, [(b":status", b"200"), (b"server", b"aioquic")])
                if head[b":method"] == b"GET":
                    self.http.send_data(stream, b"pong", end_stream=False)
                if event.stream_ended:
                    self.http.send_data(stream, b"", end_stream=True)
            elif isinstance(event, DataReceived):
                self.http.send_data(stream, event.data, end_stream=event.stream_ended)
        self.transmit()


async def main(certificate, key):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)
    port = server._transport.get_extra_info("sockname")[1]
    print(f"port: {port}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


asyncio.run(main(*sys.argv[1:3]))
