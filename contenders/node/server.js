// Node.js as a contender: its modules http, https and http2, and nothing else.
//
//     node server.js PORT H2CPORT TLSPORT CERT KEY WWW WORKERS
//
// More than one worker is its module cluster: one process accepts and deals the connections out.
'use strict';

const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const http2 = require('node:http2');
const path = require('node:path');

const HOST = '127.0.0.1';
const [PORT, H2C_PORT, TLS_PORT, CERT, KEY, WWW, WORKERS] = process.argv.slice(2);

// The largest size of GET /echo, in bytes.
const ECHO_BYTES_MAX = 2 ** 30;
const FILL = Buffer.alloc(64 * 1024, 'x');

// The settings that all contenders get that can be told: 256 streams, 1 MiB for a stream. Node
// has no option for the window of a connection, so each session is told below.
const SETTINGS = { settings: { maxConcurrentStreams: 256, initialWindowSize: 1 << 20 } };
const CONNECTION_WINDOW = 16 << 20;

// The callbacks take the requests of both versions alike: http2's compatibility layer is what
// most users of Node's http2 use.
function answer(request, response) {
  const [target, query] = request.url.split('?');
  if (target === '/ping') {
    response.setHeader('content-type', 'text/plain');
    response.setHeader('content-length', 4);
    response.end('pong');
  } else if (target === '/echo' && request.method === 'POST') {
    echo(request, response);
  } else if (target === '/echo') {
    fill(new URLSearchParams(query).get('size') ?? '64', response);
  } else {
    file(target, response);
  }
}

function echo(request, response) {
  response.setHeader('content-type', 'application/octet-stream');
  const length = request.headers['content-length'];
  if (length !== undefined) response.setHeader('content-length', length);
  request.pipe(response);
}

function fill(text, response) {
  const size = Number(text);
  if (!/^\d+$/.test(text) || size > ECHO_BYTES_MAX) {
    response.statusCode = 400;
    response.end('size is no number, or too large\n');
    return;
  }
  response.setHeader('content-type', 'application/octet-stream');
  response.setHeader('content-length', size);
  pour(size, response);
}

function pour(left, response) {
  while (left > FILL.length) {
    left -= FILL.length;
    if (!response.write(FILL)) {
      response.once('drain', () => pour(left, response));
      return;
    }
  }
  response.end(FILL.subarray(0, left));
}

// Node has no file server; this is how its documentation sends a file.
function file(target, response) {
  const name = path.join(WWW, path.posix.normalize('/' + target));
  fs.stat(name, (error, stat) => {
    if (error || !stat.isFile()) {
      response.statusCode = 404;
      response.end('not found\n');
      return;
    }
    response.setHeader('content-type', 'application/octet-stream');
    response.setHeader('content-length', stat.size);
    fs.createReadStream(name).on('error', () => response.destroy()).pipe(response);
  });
}

function quietly(server) {
  // The default closes idle connections after 5 s, and idle ones are measured too.
  server.keepAliveTimeout = 600_000;
  // A broken connection is its client's business, not the end of the process.
  server.on('sessionError', () => {}).on('clientError', (_, socket) => socket.destroy());
  server.on('session', (session) => session.setLocalWindowSize(CONNECTION_WINDOW));
  return server;
}

function serve() {
  const secure = { cert: fs.readFileSync(CERT), key: fs.readFileSync(KEY), allowHTTP1: true };
  // Node has no server that speaks both versions without TLS, so they have a port each.
  quietly(http.createServer(answer)).listen({ port: PORT, host: HOST, backlog: 4096 });
  quietly(http2.createServer(SETTINGS, answer))
    .listen({ port: H2C_PORT, host: HOST, backlog: 4096 });
  quietly(http2.createSecureServer({ ...SETTINGS, ...secure }, answer))
    .listen({ port: TLS_PORT, host: HOST, backlog: 4096 });
}

function supervise() {
  for (let n = 0; n < Number(WORKERS); n++) cluster.fork();
  cluster.on('exit', (worker, code) => {
    console.error(`worker ${worker.process.pid} ended with ${code}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill();
    process.exit(0);
  });
}

if (Number(WORKERS) > 1 && cluster.isPrimary) supervise();
else serve();
