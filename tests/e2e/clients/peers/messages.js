// A WebSocket client for k6, to compare `bolide load` with: each user sends a message when the one before has come back.
//
//     k6 run -e URL=ws://127.0.0.1:8080/ws -e BYTES=64 --vus 100 --duration 3s messages.js

import ws from 'k6/ws';

const message = new Uint8Array(Number(__ENV.BYTES)).fill(7).buffer;

export default function () {
  ws.connect(__ENV.URL, {}, (socket) => {
    socket.on('open', () => socket.sendBinary(message));
    socket.on('binaryMessage', (reply) => {
      if (reply.byteLength !== message.byteLength) throw new Error('not what was sent');
      socket.sendBinary(message);
    });
    socket.setTimeout(() => socket.close(), 2800);
  });
}
