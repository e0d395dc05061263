"""A collector of OTLP over HTTP that takes one request, read with the definitions of opentelemetry-proto.

It prints `port: N`, and then a line of JSON: the path, the field x-scope, and the body.
"""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        assert self.headers["content-type"] == "application/x-protobuf"
        body = self.rfile.read(int(self.headers["content-length"]))
        request = ExportMetricsServiceRequest.FromString(body)
        found = {"path": self.path, "x-scope": self.headers["x-scope"], "body": MessageToDict(request)}
        print(json.dumps(found), flush=True)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"port: {server.server_port}", flush=True)
server.handle_request()
