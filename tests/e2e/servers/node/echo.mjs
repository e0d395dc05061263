// Echoes what it is sent: over HTTP/1.1, h2c, and TLS with both. Its arguments are a key and a certificate; it
// prints the three ports and ends with its standard input.

import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";

const [keyFile, certFile] = process.argv.slice(2);

function echo(request, response) {
  response.setHeader("x-version", request.httpVersion);
  if (request.method === "POST") {
    request.pipe(response);
  } else {
    response.end(`hello from ${request.httpVersion} for ${request.headers["x-forwarded-for"]}`);
  }
}

const tls = { allowHTTP1: true, key: readFileSync(keyFile), cert: readFileSync(certFile) };
const servers = [http.createServer(echo), http2.createServer(echo), http2.createSecureServer(tls, echo)];
const ports = servers.map(
  (server) => new Promise((told) => server.listen(0, "127.0.0.1", () => told(server.address().port))),
);
Promise.all(ports).then((all) => console.log(all.join(" ")));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
