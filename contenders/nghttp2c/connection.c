/* One connection: its socket, its turns, and which protocol it speaks. */
#include "server.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads that one connection may do before the others have a turn. */
#define TURN_STEPS 8

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE_BYTES (sizeof PREFACE - 1)

static uint8_t block[BLOCK_BYTES];
static struct connection *oldest, *newest, *queue;

static void unlink_age(struct connection *c) {
  if (c->older != NULL) c->older->newer = c->newer;
  else oldest = c->newer;
  if (c->newer != NULL) c->newer->older = c->older;
  else newest = c->older;
}

static void link_newest(struct connection *c) {
  c->active = now;
  c->older = newest;
  c->newer = NULL;
  if (newest != NULL) newest->newer = c;
  else oldest = c;
  newest = c;
}

/* --- the socket ----------------------------------------------------------------------------- */

/* As much as a block holds; 0 if there is nothing now. */
static size_t read_tls(struct connection *c) {
  size_t count = 0;
  ERR_clear_error();
  while (count < sizeof block) {
    int got = SSL_read(c->tls, block + count, (int)(sizeof block - count));
    if (got <= 0) {
      int error = SSL_get_error(c->tls, got);
      if (error == SSL_ERROR_ZERO_RETURN) c->ended = true;
      else if (error != SSL_ERROR_WANT_READ && !c->ended) c->broken = true;
      c->more = false;
      if (c->ended) c->readable = false;
      return count;
    }
    count += (size_t)got;
  }
  c->more = true;
  return count;
}

static size_t read_block(struct connection *c) {
  if (c->tls != NULL) return read_tls(c);
  ssize_t count = socket_read(c, block, sizeof block);
  return count > 0 ? (size_t)count : 0;
}

/* How many of these bytes the socket took. */
static size_t socket_write(struct connection *c, const uint8_t *bytes, size_t count) {
  size_t sent = 0;
  while (sent < count && c->writable) {
    ssize_t took = send(c->socket, bytes + sent, count - sent, MSG_NOSIGNAL);
    if (took >= 0) {
      sent += (size_t)took;
    } else if (errno == EAGAIN) {
      c->writable = false;
    } else if (errno != EINTR) {
      c->broken = true;
      break;
    }
  }
  return sent;
}

/* Sends what waited and what this turn produced; the rest waits for the socket. */
static void flush(struct connection *c) {
  struct buffer *output = &plain;
  if (c->tls != NULL) {
    size_t length = buffer_length(&plain);
    ERR_clear_error();
    if (length > 0 && SSL_write(c->tls, plain.bytes + plain.start, (int)length) <= 0) c->broken = true;
    buffer_consume(&plain, length);
    output = &sealed;
  }
  if (buffer_length(&c->wire) > 0) {
    buffer_add(&c->wire, output->bytes + output->start, buffer_length(output));
    buffer_consume(&c->wire, socket_write(c, c->wire.bytes + c->wire.start, buffer_length(&c->wire)));
    if (buffer_length(&c->wire) == 0) buffer_free(&c->wire);
  } else {
    buffer_consume(output, socket_write(c, output->bytes + output->start, buffer_length(output)));
    if (!c->broken) buffer_add(&c->wire, output->bytes + output->start, buffer_length(output));
  }
  buffer_consume(output, buffer_length(output));
}

/* --- its life ------------------------------------------------------------------------------- */

void connection_open(int poll, int socket, SSL_CTX *tls) {
  struct connection *c = calloc(1, sizeof *c);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
  if (c != NULL) {
    c->socket = socket;
    c->writable = true;
  }
  if (c != NULL && tls != NULL) c->tls = tls_open(tls, c);
  bool made = c != NULL && (tls == NULL || c->tls != NULL);
  if (!made || epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event) != 0) {
    if (made) SSL_free(c->tls);
    free(c);
    close(socket);
    return;
  }
  link_newest(c);
}

static void connection_close(struct connection *c) {
  if (c->tls != NULL) {
    if (!c->broken && SSL_is_init_finished(c->tls)) {
      SSL_shutdown(c->tls);
      socket_write(c, sealed.bytes + sealed.start, buffer_length(&sealed));
      buffer_consume(&sealed, buffer_length(&sealed));
    }
    SSL_free(c->tls);
  }
  if (c->version == 1) h1_close(c);
  if (c->version == 2) h2_close(c);
  buffer_free(&c->input);
  buffer_free(&c->wire);
  unlink_age(c);
  close(c->socket);
  free(c);
}

/* Looks for the preface of HTTP/2, which may come in pieces. */
static void choose_version(struct connection *c, const uint8_t *bytes, size_t count) {
  buffer_add(&c->input, bytes, count);
  size_t length = buffer_length(&c->input);
  size_t compared = length < PREFACE_BYTES ? length : PREFACE_BYTES;
  bool is_preface = memcmp(c->input.bytes + c->input.start, PREFACE, compared) == 0;
  if (is_preface && compared < PREFACE_BYTES) return;
  c->version = is_preface ? 2 : 1;
  struct buffer input = c->input;
  c->input = (struct buffer){0};
  if (is_preface) h2_advance(c, input.bytes + input.start, length);
  else h1_advance(c, input.bytes + input.start, length);
  buffer_free(&input);
}

static void advance(struct connection *c, const uint8_t *bytes, size_t count) {
  if (c->version == 1) h1_advance(c, bytes, count);
  else if (c->version == 2) h2_advance(c, bytes, count);
  else if (count > 0) choose_version(c, bytes, count);
}

static bool is_over(const struct connection *c) {
  if (c->broken) return true;
  if (buffer_length(&c->wire) > 0) return false;
  return c->finished || (c->ended && (c->version != 1 || h1_is_idle(c)));
}

static void turn(struct connection *c) {
  for (int step = 0;; step++) {
    if (step == TURN_STEPS) {
      c->queued = true;
      c->next = queue;
      queue = c;
      return;
    }
    if (buffer_length(&c->wire) > 0) flush(c);
    if (c->broken || connection_is_full(c)) break;
    size_t count = c->readable || c->more ? read_block(c) : 0;
    advance(c, block, count);
    /* Then there is more to produce than there was room for. */
    bool was_full = connection_is_full(c);
    flush(c);
    if (c->broken || c->finished || connection_is_full(c)) break;
    if (!was_full && !c->readable && !c->more) break;
  }
  if (is_over(c)) connection_close(c);
}

void connection_event(struct connection *c, uint32_t events) {
  unlink_age(c);
  link_newest(c);
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) c->hung_up = true;
  if (events & EPOLLOUT) c->writable = true;
  if ((events & EPOLLIN) || c->hung_up) c->readable = !c->ended;
  if (!c->queued) turn(c);
}

bool connection_run_queue(void) {
  struct connection *c = queue;
  queue = NULL;
  while (c != NULL) {
    struct connection *next = c->next;
    c->queued = false;
    turn(c);
    c = next;
  }
  return queue != NULL;
}

void connection_close_idle(void) {
  while (oldest != NULL && !oldest->queued && oldest->active + IDLE_SECONDS < now) connection_close(oldest);
}

bool connection_shed(void) {
  if (oldest == NULL || oldest->queued) return false;
  connection_close(oldest);
  return true;
}
