/* A plain HTTP server in C: one thread, edge-triggered epoll, libnghttp2 for HTTP/2, a small parser
 * of its own for HTTP/1.1 and OpenSSL for TLS. It stands for the usual design of such servers.
 *
 * It is one process per worker, so what is static belongs to one worker. */
#ifndef SERVER_H
#define SERVER_H

#define _GNU_SOURCE
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What one read may bring. */
#define BLOCK_BYTES (256 * 1024)
/* How much may wait for the socket before nothing more is read or produced. */
#define UNSENT_BYTES (256 * 1024)
/* The longest head of an HTTP/1.1 request. */
#define HEAD_BYTES 8192
/* The largest size of GET /echo. */
#define ECHO_BYTES ((uint64_t)1 << 30)
/* How long a connection may be silent: long, for idle connections are measured too. */
#define IDLE_SECONDS 600

/* --- buffer.c ----------------------------------------------------------------------------- */

/* Bytes that wait: bytes[start] to bytes[end]. All zero is an empty one. */
struct buffer {
  uint8_t *bytes;
  size_t start, end, size;
};

static inline size_t buffer_length(const struct buffer *b) { return b->end - b->start; }
/* Room for at least this many bytes; the caller adds to `end` what it used of it. */
uint8_t *buffer_room(struct buffer *b, size_t count);
void buffer_add(struct buffer *b, const void *bytes, size_t count);
/* Takes bytes away at the front. */
void buffer_consume(struct buffer *b, size_t count);
/* Gives the memory back. */
void buffer_free(struct buffer *b);

/* --- routes.c ----------------------------------------------------------------------------- */

enum source_kind { SOURCE_NONE, SOURCE_TEXT, SOURCE_FILL, SOURCE_FILE, SOURCE_ECHO };

/* Where the bytes of a body come from. */
struct source {
  enum source_kind kind;
  int file;
  const char *text;
  off_t offset;
  uint64_t left;
};

struct answer {
  int status;
  const char *type;
  int64_t length; /* -1: not known, as for the echo of a body without a length */
  struct source source;
};

/* The folder of the static files. */
void routes_open(const char *folder);
/* What a request is answered with. `body` is its content-length, -1 if it has none. */
struct answer route(const char *method, const char *target, int64_t body);
struct answer failure(int status);
const char *status_text(int status);
/* Copies the next bytes of a body that is no echo: their count, or -1 if the file is broken. */
ssize_t source_read(struct source *s, uint8_t *to, size_t most);
void source_close(struct source *s);

/* --- h1.c, h2.c, connection.c --------------------------------------------------------------- */

struct connection;

enum h1_state { H1_HEAD, H1_BODY, H1_CHUNK_SIZE, H1_CHUNK_DATA, H1_CHUNK_END, H1_TRAILERS };

struct h1 {
  enum h1_state state;
  bool keep;           /* the connection stays after this exchange */
  bool echo, chunked;  /* the body goes back, and how */
  uint64_t left;       /* of the body, or of the chunk */
  struct source source; /* what is being sent */
};

struct stream;

struct h2 {
  nghttp2_session *session;
  struct stream *streams;
};

struct connection {
  int socket;
  uint8_t version;  /* 0 until it is known, then 1 or 2 */
  bool readable;    /* the socket may have more */
  bool writable;    /* the socket may take more */
  bool more;        /* OpenSSL has more */
  bool hung_up;     /* the end of input is behind what can be read */
  bool ended;       /* the end of input was read */
  bool finished;    /* to be closed when all is sent */
  bool broken;      /* to be closed at once */
  bool queued;      /* it has a turn without an event */
  time_t active;
  SSL *tls;
  struct buffer input; /* an incomplete rest */
  struct buffer wire;  /* what the socket did not take yet */
  struct h1 h1;
  struct h2 h2;
  struct connection *older, *newer, *next;
};

/* The value of `date`. */
extern char date[30];
extern time_t now;

void connection_open(int poll, int socket, SSL_CTX *tls);
/* An event of epoll for this connection. */
void connection_event(struct connection *c, uint32_t events);
/* Those that ran out of budget get another turn. True if there are still some. */
bool connection_run_queue(void);
void connection_close_idle(void);
/* Closes the longest silent connection: there is no descriptor left. False if there is none. */
bool connection_shed(void);

/* New bytes, or none when there is room to go on. Output goes to `plain`. */
void h1_advance(struct connection *c, const uint8_t *bytes, size_t count);
bool h1_is_idle(const struct connection *c);
void h1_close(struct connection *c);

void h2_advance(struct connection *c, const uint8_t *bytes, size_t count);
void h2_close(struct connection *c);

/* --- socket.c ------------------------------------------------------------------------------- */

/* What this turn produces, before TLS. */
extern struct buffer plain;
/* Whether so much waits for the socket that nothing more shall be produced. */
bool connection_is_full(const struct connection *c);
/* Reads from the socket; clears `readable` once it is empty. -1: nothing now, 0: the end. */
ssize_t socket_read(struct connection *c, void *to, size_t most);

/* --- tls.c ---------------------------------------------------------------------------------- */

/* What this turn's TLS records are collected in. */
extern struct buffer sealed;

/* NULL, and a message, if certificate and key are no good. */
SSL_CTX *tls_context(const char *cert, const char *key);
SSL *tls_open(SSL_CTX *context, struct connection *c);

#endif
