/* HTTP/1.1: requests are answered in order, bodies go back as they come. */
#include "server.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What a head says, as far as it matters here. */
struct head {
  char *method, *target;
  int64_t length; /* content-length, or -1 */
  bool chunked, keep, expects, has_host;
};

static bool is(const char *name, const char *value) { return strcasecmp(name, value) == 0; }

/* Whether a list like "keep-alive, upgrade" has this token. */
static bool has_token(const char *list, const char *token) {
  size_t length = strlen(token);
  for (const char *at = list; *at != '\0';) {
    size_t part = strcspn(at, ",");
    size_t trimmed = part;
    while (trimmed > 0 && (at[trimmed - 1] == ' ' || at[trimmed - 1] == '\t')) trimmed--;
    if (trimmed == length && strncasecmp(at, token, length) == 0) return true;
    at += part;
    at += strspn(at, ", \t");
  }
  return false;
}

static int take_length(struct head *head, const char *value) {
  uint64_t length = 0;
  if (*value == '\0' || head->length >= 0) return 400;
  for (; *value != '\0'; value++) {
    if (*value < '0' || *value > '9' || length > (uint64_t)1 << 58) return 400;
    length = length * 10 + (uint64_t)(*value - '0');
  }
  head->length = (int64_t)length;
  return 0;
}

static int take_field(struct head *head, const char *name, const char *value) {
  if (is(name, "content-length")) return take_length(head, value);
  if (is(name, "transfer-encoding")) {
    if (head->chunked || !is(value, "chunked")) return 501;
    head->chunked = true;
  } else if (is(name, "connection")) {
    if (has_token(value, "close")) head->keep = false;
  } else if (is(name, "expect")) {
    head->expects = is(value, "100-continue");
  } else if (is(name, "host")) {
    if (head->has_host) return 400;
    head->has_host = true;
  }
  return 0;
}

/* METHOD SP TARGET SP HTTP/1.x */
static int parse_request_line(struct head *head, char *line) {
  head->method = line;
  char *target = strchr(line, ' ');
  char *version = target != NULL ? strchr(target + 1, ' ') : NULL;
  if (version == NULL || target == line || target[1] != '/') return 400;
  *target = *version = '\0';
  head->target = target + 1;
  head->length = -1;
  head->keep = true;
  if (strcmp(version + 1, "HTTP/1.1") == 0) return 0;
  if (strcmp(version + 1, "HTTP/1.0") != 0) return 505;
  head->keep = false;
  head->has_host = true;
  return 0;
}

/* NAME ":" VALUE, with blanks around the value */
static int parse_field(struct head *head, char *line) {
  char *colon = strchr(line, ':');
  if (colon == NULL || colon == line) return 400;
  if (strcspn(line, " \t") < (size_t)(colon - line)) return 400;
  *colon = '\0';
  char *value = colon + 1 + strspn(colon + 1, " \t");
  size_t length = strlen(value);
  while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t')) length--;
  value[length] = '\0';
  return take_field(head, line, value);
}

/* Parses a whole head in place. 0, or the status that answers it. */
static int parse(struct head *head, char *text, size_t count) {
  char *end = text + count;
  for (char *line = text; line < end;) {
    char *feed = memchr(line, '\n', (size_t)(end - line));
    if (feed == NULL || feed == line || feed[-1] != '\r') return 400;
    feed[-1] = '\0';
    if (strlen(line) != (size_t)(feed - 1 - line) || strchr(line, '\r') != NULL) return 400;
    if (feed + 1 == end) break;
    int status = line == text ? parse_request_line(head, line) : parse_field(head, line);
    if (status != 0) return status;
    line = feed + 1;
  }
  bool two_lengths = head->chunked && head->length >= 0;
  return head->has_host && !two_lengths ? 0 : 400;
}

static void send_head(const struct answer *answer, bool keep) {
  char *at = (char *)buffer_room(&plain, 256), *start = at;
  at = stpcpy(at, "HTTP/1.1 ");
  at = stpcpy(at, status_text(answer->status));
  at = stpcpy(at, "\r\nDate: ");
  at = stpcpy(at, date);
  at = stpcpy(at, "\r\nContent-Type: ");
  at = stpcpy(at, answer->type);
  if (answer->length >= 0) {
    char digits[24], *digit = digits + sizeof digits;
    uint64_t length = (uint64_t)answer->length;
    *--digit = '\0';
    do *--digit = (char)('0' + length % 10);
    while (length /= 10);
    at = stpcpy(at, "\r\nContent-Length: ");
    at = stpcpy(at, digit);
  } else {
    at = stpcpy(at, "\r\nTransfer-Encoding: chunked");
  }
  at = stpcpy(at, keep ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n");
  plain.end += (size_t)(at - start);
}

/* Sends what there is room for of a body that is no echo. */
static void pump(struct connection *c) {
  struct h1 *h1 = &c->h1;
  while (h1->source.kind != SOURCE_NONE && !connection_is_full(c)) {
    size_t most = h1->source.left < 65536 ? (size_t)h1->source.left : 65536;
    ssize_t count = source_read(&h1->source, buffer_room(&plain, most), most);
    if (count < 0) {
      c->broken = true;
      return;
    }
    plain.end += (size_t)count;
    if (h1->source.left == 0) source_close(&h1->source);
  }
}

static void refuse(struct connection *c, int status) {
  struct answer answer = failure(status);
  send_head(&answer, false);
  c->h1.source = answer.source;
  pump(c);
  c->finished = true;
}

/* Both the request and its response are through. */
static void end_exchange(struct connection *c) {
  c->h1.state = H1_HEAD;
  if (!c->h1.keep) c->finished = true;
}

static size_t take_head(struct connection *c, const uint8_t *bytes, size_t count) {
  const uint8_t *end = memmem(bytes, count, "\r\n\r\n", 4);
  size_t length = end != NULL ? (size_t)(end - bytes) + 4 : count;
  if (length > HEAD_BYTES) {
    refuse(c, 431);
    return count;
  }
  if (end == NULL) return 0;
  char text[HEAD_BYTES];
  memcpy(text, bytes, length);
  struct head head = {0};
  int status = parse(&head, text, length);
  if (status != 0) {
    refuse(c, status);
    return count;
  }
  struct h1 *h1 = &c->h1;
  bool has_body = head.chunked || head.length > 0;
  int64_t body = head.chunked ? -1 : (head.length > 0 ? head.length : 0);
  struct answer answer = route(head.method, head.target, body);
  h1->keep = head.keep;
  h1->echo = answer.source.kind == SOURCE_ECHO;
  h1->chunked = h1->echo && head.chunked;
  if (has_body && head.expects) buffer_add(&plain, "HTTP/1.1 100 Continue\r\n\r\n", 25);
  send_head(&answer, head.keep);
  if (!h1->echo) h1->source = answer.source;
  pump(c);
  h1->left = (uint64_t)(body > 0 ? body : 0);
  h1->state = head.chunked ? H1_CHUNK_SIZE : H1_BODY;
  if (!has_body && h1->source.kind == SOURCE_NONE) end_exchange(c);
  return length;
}

static void echo(struct connection *c, const uint8_t *bytes, size_t count) {
  if (!c->h1.echo || count == 0) return;
  if (c->h1.chunked) {
    char size[24];
    buffer_add(&plain, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", count));
  }
  buffer_add(&plain, bytes, count);
  if (c->h1.chunked) buffer_add(&plain, "\r\n", 2);
}

static size_t take_data(struct connection *c, const uint8_t *bytes, size_t count) {
  struct h1 *h1 = &c->h1;
  size_t taken = h1->left < count ? (size_t)h1->left : count;
  echo(c, bytes, taken);
  h1->left -= taken;
  if (h1->left == 0 && h1->state == H1_CHUNK_DATA) h1->state = H1_CHUNK_END;
  else if (h1->left == 0 && h1->source.kind == SOURCE_NONE) end_exchange(c);
  return taken;
}

/* HEX *(";" extension) CRLF */
static bool take_chunk_size(struct h1 *h1, const uint8_t *line, size_t length) {
  uint64_t size = 0;
  size_t digits = 0;
  for (; digits < length; digits++) {
    uint8_t digit = line[digits] | 0x20;
    if (digit >= '0' && digit <= '9') digit -= '0';
    else if (digit >= 'a' && digit <= 'f') digit -= 'a' - 10;
    else break;
    if (size >> 56 != 0) return false;
    size = size << 4 | digit;
  }
  if (digits == 0 || (digits < length && line[digits] != ';')) return false;
  h1->left = size;
  h1->state = size > 0 ? H1_CHUNK_DATA : H1_TRAILERS;
  return true;
}

/* One line of the framing of chunks; trailers are thrown away. */
static size_t take_line(struct connection *c, const uint8_t *bytes, size_t count) {
  struct h1 *h1 = &c->h1;
  const uint8_t *feed = memchr(bytes, '\n', count);
  if (feed == NULL) {
    if (count > HEAD_BYTES) c->broken = true;
    return 0;
  }
  size_t length = (size_t)(feed - bytes);
  bool good = length > 0 && bytes[length - 1] == '\r';
  if (good && h1->state == H1_CHUNK_SIZE) good = take_chunk_size(h1, bytes, length - 1);
  else if (good && h1->state == H1_CHUNK_END) {
    good = length == 1;
    h1->state = H1_CHUNK_SIZE;
  } else if (good && length == 1) {
    if (h1->chunked) buffer_add(&plain, "0\r\n\r\n", 5);
    if (h1->source.kind == SOURCE_NONE) end_exchange(c);
    else h1->state = H1_BODY;
  }
  if (!good) c->broken = true;
  return length + 1;
}

/* How many of these bytes were of use. */
static size_t take(struct connection *c, const uint8_t *bytes, size_t count) {
  struct h1 *h1 = &c->h1;
  size_t taken = 0;
  while (!c->finished && !c->broken && !connection_is_full(c)) {
    if (h1->state == H1_BODY && h1->left == 0) {
      /* The response is what was waited for. */
      if (h1->source.kind != SOURCE_NONE) break;
      end_exchange(c);
      continue;
    }
    if (taken == count) break;
    size_t step;
    if (h1->state == H1_HEAD) step = take_head(c, bytes + taken, count - taken);
    else if (h1->state == H1_BODY || h1->state == H1_CHUNK_DATA) step = take_data(c, bytes + taken, count - taken);
    else step = take_line(c, bytes + taken, count - taken);
    if (step == 0) break;
    taken += step;
  }
  return taken;
}

void h1_advance(struct connection *c, const uint8_t *bytes, size_t count) {
  pump(c);
  if (buffer_length(&c->input) == 0) {
    size_t taken = take(c, bytes, count);
    buffer_add(&c->input, bytes + taken, count - taken);
    return;
  }
  buffer_add(&c->input, bytes, count);
  buffer_consume(&c->input, take(c, c->input.bytes + c->input.start, buffer_length(&c->input)));
  if (buffer_length(&c->input) == 0) buffer_free(&c->input);
}

bool h1_is_idle(const struct connection *c) { return c->h1.source.kind == SOURCE_NONE; }

void h1_close(struct connection *c) { source_close(&c->h1.source); }
