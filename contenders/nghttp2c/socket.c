/* The socket of a connection: reading, and the output that waits for it. */
#include "server.h"

#include <errno.h>
#include <sys/socket.h>

struct buffer plain;

bool connection_is_full(const struct connection *c) {
  return buffer_length(&c->wire) + buffer_length(&plain) >= UNSENT_BYTES;
}

ssize_t socket_read(struct connection *c, void *to, size_t most) {
  if (!c->readable) return c->ended ? 0 : -1;
  ssize_t count;
  do count = recv(c->socket, to, most, 0);
  while (count < 0 && errno == EINTR);
  /* A short read has emptied the socket, unless the end of input is behind it. */
  if (count < (ssize_t)most && (count <= 0 || !c->hung_up)) c->readable = false;
  if (count == 0) c->ended = true;
  if (count < 0 && errno != EAGAIN) c->broken = true;
  return count;
}
