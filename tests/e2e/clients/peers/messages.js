// A WebSocket client for k6, to compare `bolide load` with: each user sends a message when the one before has come back.
//
//     k6 run -e URL=ws://127.0.0.1:8080/ws -e BYTES=64 --vus 100 --duration 3s messages.js

import { WebSocket } from 'k6/websockets';

const message = new Uint8Array(Number(__ENV.BYTES)).fill(7).buffer;

export default function () {
  const socket = new WebSocket(__ENV.URL);
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => {
    setTimeout(() => socket.close(), 2800);
    socket.send(message);
  };
  socket.onmessage = (event) => {
    if (event.data.byteLength !== message.byteLength) throw new Error('not what was sent');
    socket.send(message);
  };
}
