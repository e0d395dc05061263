// WebSocket over HTTP/2 by Node's http2, which speaks RFC 8441 but no frames: these are made here.
//
//     node websocket.mjs HTTP_URL HTTPS_URL
//
// It prints one line "ok: WAY" for each way, and ends with 1 at the first mistake.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import http2 from "node:http2";

/** A masked frame, complete. */
function frame(opcode, content) {
  const key = randomBytes(4);
  const length = content.length;
  let head;
  if (length < 126) {
    head = Buffer.from([0x80 | opcode, 0x80 | length]);
  } else if (length < 65536) {
    head = Buffer.from([0x80 | opcode, 0x80 | 126, length >> 8, length & 255]);
  } else {
    head = Buffer.alloc(10);
    head[0] = 0x80 | opcode;
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  const masked = Buffer.from(content, 0, length);
  for (let at = 0; at < length; at += 1) masked[at] ^= key[at & 3];
  return Buffer.concat([head, key, masked]);
}

/** Takes one frame from the front: fin, opcode, content, rest. */
function parse(bytes) {
  if (bytes.length < 2) return undefined;
  let length = bytes[1] & 127;
  let at = 2;
  if (length === 126) {
    if (bytes.length < 4) return undefined;
    length = bytes.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return undefined;
    length = Number(bytes.readBigUInt64BE(2));
    at = 10;
  }
  assert.equal(bytes[1] & 128, 0, "a server's frame is masked");
  if (bytes.length < at + length) return undefined;
  const content = bytes.subarray(at, at + length);
  return { fin: (bytes[0] & 128) !== 0, opcode: bytes[0] & 15, content, rest: bytes.subarray(at + length) };
}

async function talk(session, number) {
  const stream = session.request(
    {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":path": "/ws",
      "sec-websocket-version": "13",
      "sec-websocket-protocol": "echo",
    },
    { endStream: false },
  );
  const fields = await new Promise((resolve, reject) => {
    stream.on("response", resolve);
    stream.on("error", reject);
  });
  assert.equal(fields[":status"], 200);
  assert.equal(fields["sec-websocket-protocol"], "echo");
  const chunks = stream[Symbol.asyncIterator]();
  let unread = Buffer.alloc(0);
  const next = async () => {
    const parts = [];
    for (;;) {
      const found = parse(unread);
      if (found === undefined) {
        const { value, done } = await chunks.next();
        assert.ok(!done, "the stream ended");
        unread = Buffer.concat([unread, value]);
        continue;
      }
      unread = found.rest;
      parts.push(found.content);
      if (found.fin) return { opcode: found.opcode, content: Buffer.concat(parts) };
    }
  };
  for (const size of [0, 1, 125, 126, 65535, 65536, 300000 + number]) {
    const sent = randomBytes(size);
    stream.write(frame(2, sent));
    const message = await next();
    assert.ok(message.content.equals(sent), `${size} bytes`);
  }
  stream.write(frame(9, Buffer.from("p")));
  assert.deepEqual(await next(), { opcode: 10, content: Buffer.from("p") });
  stream.write(frame(8, Buffer.from([3, 232])));
  assert.deepEqual(await next(), { opcode: 8, content: Buffer.from([3, 232]) });
  assert.ok((await chunks.next()).done, "the server ends the stream");
  stream.end();
}

async function check(way, base) {
  const session = http2.connect(base, { rejectUnauthorized: false });
  await new Promise((resolve, reject) => {
    session.on("remoteSettings", resolve);
    session.on("error", reject);
  });
  assert.equal(session.remoteSettings.enableConnectProtocol, true);
  // Several tunnels on one connection.
  await Promise.all(Array.from({ length: 10 }, (_, number) => talk(session, number)));
  session.close();
  console.log(`ok: ${way}`);
}

const [plain, secure] = process.argv.slice(2);
await check("websocket h2c", plain);
await check("websocket h2 tls", secure);
