// The Node client of the interoperation tests: http, https and http2.
//
//     node client.mjs HTTP_URL HTTPS_URL
//
// It prints one line "ok: WAY" for each way, and ends with 1 at the first mistake.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";

const SIZES = [0, 1, 16383, 16384, 16385, 65535, 65536, 65537, 1 << 20, 8 << 20];

/** Asks over HTTP/1.1; the agent keeps its connections. */
function byAgent(module, base) {
  const agent = new module.Agent({ keepAlive: true, maxSockets: 20, rejectUnauthorized: false });
  const ask = (method, path, body) =>
    new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { "content-length": body.length };
      const request = module.request(base + path, { method, agent, headers }, (response) => {
        const content = [];
        response.on("data", (chunk) => content.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode,
            length: response.headers["content-length"],
            content: Buffer.concat(content),
          }),
        );
      });
      request.on("error", reject);
      request.end(body);
    });
  return { ask, end: () => agent.destroy() };
}

/** Asks over one connection of HTTP/2. */
function bySession(base) {
  const session = http2.connect(base, { rejectUnauthorized: false });
  const failed = new Promise((_, reject) => session.on("error", reject));
  const ask = (method, path, body) =>
    Promise.race([
      failed,
      new Promise((resolve, reject) => {
        const stream = session.request({ ":method": method, ":path": path }, { endStream: body === undefined });
        let fields = {};
        const content = [];
        stream.on("response", (headers) => (fields = headers));
        stream.on("data", (chunk) => content.push(chunk));
        stream.on("error", reject);
        stream.on("end", () =>
          resolve({
            status: fields[":status"],
            length: fields["content-length"],
            content: Buffer.concat(content),
          }),
        );
        if (body !== undefined) stream.end(body);
      }),
    ]);
  return { ask, end: () => session.close() };
}

async function check(way, { ask, end }) {
  const ping = await ask("GET", "/ping");
  assert.equal(ping.status, 200);
  assert.equal(ping.content.toString(), "pong");
  const head = await ask("HEAD", "/ping");
  assert.equal(head.length, "4");
  assert.equal(head.content.length, 0);
  assert.equal((await ask("GET", "/no/such/path")).status, 404);
  for (const size of SIZES) {
    const got = await ask("GET", `/echo?size=${size}`);
    assert.ok(got.content.equals(Buffer.alloc(size, "x")), `GET ${size}`);
    const sent = randomBytes(size);
    const echoed = await ask("POST", "/echo", sent);
    assert.ok(echoed.content.equals(sent), `POST ${size}: ${echoed.content.length} bytes`);
  }
  const together = Array.from({ length: 100 }, async (_, index) => {
    const sent = randomBytes(1000 * index);
    const echoed = await ask("POST", "/echo", sent);
    assert.ok(echoed.content.equals(sent), `request ${index} of a hundred`);
  });
  await Promise.all(together);
  end();
  console.log(`ok: ${way}`);
}

const [plain, secure] = process.argv.slice(2);
await check("http", byAgent(http, plain));
await check("https", byAgent(https, secure));
await check("http2 h2c", bySession(plain));
await check("http2 tls", bySession(secure));
