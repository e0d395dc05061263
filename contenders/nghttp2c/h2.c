/* HTTP/2 by libnghttp2. A window opens again when what was received has been sent back, so a client
 * that doesn't read can't fill the memory. */
#include "server.h"

#include <stdlib.h>
#include <string.h>

/* The settings that all contenders get that can be told. */
#define STREAMS 256
#define STREAM_WINDOW (1 << 20)
#define CONNECTION_WINDOW (16 << 20)

#define TARGET_BYTES 256

struct stream {
  struct stream *previous, *next; /* of the connection; `next` also of the free ones */
  int64_t length;                 /* content-length, or -1 */
  char method[8];
  char target[TARGET_BYTES];
  bool is_long; /* the target didn't fit */
  bool ended;   /* the request is whole */
  struct source source;
  struct buffer body; /* what goes back */
};

static struct stream *spare;

static struct stream *stream_open(struct h2 *h2) {
  struct stream *s = spare;
  if (s != NULL) spare = s->next;
  else if ((s = malloc(sizeof *s)) == NULL) return NULL;
  s->previous = NULL;
  s->next = h2->streams;
  if (h2->streams != NULL) h2->streams->previous = s;
  h2->streams = s;
  s->length = -1;
  s->method[0] = s->target[0] = '\0';
  s->is_long = s->ended = false;
  s->source.kind = SOURCE_NONE;
  s->body = (struct buffer){0};
  return s;
}

static void stream_close(struct h2 *h2, struct stream *s) {
  if (s->previous != NULL) s->previous->next = s->next;
  else h2->streams = s->next;
  if (s->next != NULL) s->next->previous = s->previous;
  source_close(&s->source);
  buffer_free(&s->body);
  s->next = spare;
  spare = s;
}

/* --- the response ----------------------------------------------------------------------------- */

static ssize_t read_echo(nghttp2_session *session, int32_t id, struct stream *s, uint8_t *to, size_t most,
                         uint32_t *flags) {
  size_t waiting = buffer_length(&s->body);
  size_t count = waiting < most ? waiting : most;
  if (count == 0 && !s->ended) return NGHTTP2_ERR_DEFERRED;
  if (count > 0) {
    memcpy(to, s->body.bytes + s->body.start, count);
    buffer_consume(&s->body, count);
    if (nghttp2_session_consume(session, id, count) != 0) return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  if (count == waiting && s->ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)count;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t most, uint32_t *flags,
                         nghttp2_data_source *data, void *user) {
  struct stream *s = data->ptr;
  (void)user;
  if (s->source.kind == SOURCE_ECHO) return read_echo(session, id, s, to, most, flags);
  ssize_t count = source_read(&s->source, to, most);
  if (count < 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  if (s->source.left == 0) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return count;
}

static nghttp2_nv field(const char *name, const char *value, uint8_t flags) {
  return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                      NGHTTP2_NV_FLAG_NO_COPY_NAME | flags};
}

static int answer(nghttp2_session *session, int32_t id, struct stream *s) {
  struct answer answer = s->is_long ? failure(404) : route(s->method, s->target, s->length);
  s->source = answer.source;
  char status[4] = {0}, digits[24], *digit = digits + sizeof digits - 1;
  memcpy(status, status_text(answer.status), 3);
  nghttp2_nv fields[4] = {
      field(":status", status, 0),
      field("date", date, 0),
      field("content-type", answer.type, NGHTTP2_NV_FLAG_NO_COPY_VALUE),
  };
  size_t count = 3;
  if (answer.length >= 0) {
    uint64_t length = (uint64_t)answer.length;
    *digit = '\0';
    do *--digit = (char)('0' + length % 10);
    while (length /= 10);
    fields[count++] = field("content-length", digit, 0);
  }
  nghttp2_data_provider body = {.source.ptr = s, .read_callback = read_body};
  bool is_empty = answer.length == 0 && s->source.kind != SOURCE_ECHO;
  return nghttp2_submit_response(session, id, fields, count, is_empty ? NULL : &body);
}

/* --- the request ------------------------------------------------------------------------------ */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
  struct connection *c = user;
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  struct stream *s = stream_open(&c->h2);
  if (s == NULL) return NGHTTP2_ERR_CALLBACK_FAILURE;
  return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t length, uint8_t flags, void *user) {
  (void)flags, (void)user;
  struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  if (s == NULL || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (name_length == 5 && memcmp(name, ":path", 5) == 0) {
    s->is_long = length >= sizeof s->target;
    if (!s->is_long) memcpy(s->target, value, length + 1);
  } else if (name_length == 7 && memcmp(name, ":method", 7) == 0) {
    /* A longer one is none that is known. */
    size_t kept = length < sizeof s->method ? length : sizeof s->method - 1;
    memcpy(s->method, value, kept);
    s->method[kept] = '\0';
  } else if (name_length == 14 && memcmp(name, "content-length", 14) == 0) {
    /* libnghttp2 has checked that it is a number, and the body's. */
    s->length = strtoll((const char *)value, NULL, 10);
  }
  return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
  (void)user;
  bool is_headers = frame->hd.type == NGHTTP2_HEADERS;
  if (!is_headers && frame->hd.type != NGHTTP2_DATA) return 0;
  struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
  if (s == NULL) return 0;
  if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) s->ended = true;
  if (is_headers && frame->headers.cat == NGHTTP2_HCAT_REQUEST) return answer(session, frame->hd.stream_id, s);
  /* It fails if nobody waits, which is well. */
  if (s->ended) nghttp2_session_resume_data(session, frame->hd.stream_id);
  return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t count,
                   void *user) {
  (void)flags, (void)user;
  struct stream *s = nghttp2_session_get_stream_user_data(session, id);
  if (s == NULL || s->source.kind != SOURCE_ECHO) return nghttp2_session_consume(session, id, count);
  buffer_add(&s->body, bytes, count);
  nghttp2_session_resume_data(session, id);
  return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user) {
  (void)error;
  struct connection *c = user;
  struct stream *s = nghttp2_session_get_stream_user_data(session, id);
  if (s == NULL) return 0;
  size_t unsent = buffer_length(&s->body);
  if (unsent > 0) nghttp2_session_consume_connection(session, unsent);
  stream_close(&c->h2, s);
  return 0;
}

/* --- the session ------------------------------------------------------------------------------ */

static nghttp2_session *session_open(struct connection *c) {
  static nghttp2_session_callbacks *callbacks;
  static nghttp2_option *option;
  if (callbacks == NULL) {
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0) abort();
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    /* Closed streams are kept for the old priorities only, which nobody asks for. */
    nghttp2_option_set_no_closed_streams(option, 1);
  }
  nghttp2_session *session;
  if (nghttp2_session_server_new2(&session, callbacks, c, option) != 0) return NULL;
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 3) != 0 ||
      nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW) != 0) {
    nghttp2_session_del(session);
    return NULL;
  }
  return session;
}

static void produce(struct connection *c) {
  nghttp2_session *session = c->h2.session;
  while (!connection_is_full(c)) {
    const uint8_t *bytes;
    ssize_t count = nghttp2_session_mem_send(session, &bytes);
    if (count < 0) c->broken = true;
    if (count <= 0) break;
    buffer_add(&plain, bytes, (size_t)count);
  }
  if (!nghttp2_session_want_read(session) && !nghttp2_session_want_write(session)) c->finished = true;
}

void h2_advance(struct connection *c, const uint8_t *bytes, size_t count) {
  if (c->h2.session == NULL && (c->h2.session = session_open(c)) == NULL) {
    c->broken = true;
    return;
  }
  if (count > 0 && nghttp2_session_mem_recv(c->h2.session, bytes, count) < 0) c->finished = true;
  produce(c);
}

void h2_close(struct connection *c) {
  while (c->h2.streams != NULL) stream_close(&c->h2, c->h2.streams);
  nghttp2_session_del(c->h2.session);
}
