#include "server.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int folder = -1;

void routes_open(const char *path) { folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); }

const char *status_text(int status) {
  switch (status) {
  case 200: return "200 OK";
  case 400: return "400 Bad Request";
  case 404: return "404 Not Found";
  case 405: return "405 Method Not Allowed";
  case 431: return "431 Request Header Fields Too Large";
  case 505: return "505 HTTP Version Not Supported";
  default: return "501 Not Implemented";
  }
}

static struct answer text(int status, const char *body) {
  size_t length = strlen(body);
  struct source source = {.kind = SOURCE_TEXT, .text = body, .left = length};
  return (struct answer){status, "text/plain", (int64_t)length, source};
}

struct answer failure(int status) { return text(status, status_text(status)); }

/* GET /echo?size=N: N times x. */
static struct answer fill(const char *query) {
  uint64_t size = 64;
  const char *digits = query != NULL ? strstr(query, "size=") : NULL;
  if (digits != NULL) {
    size = 0;
    for (digits += 5; *digits != '\0' && *digits != '&'; digits++) {
      if (*digits < '0' || *digits > '9') return failure(400);
      size = size * 10 + (uint64_t)(*digits - '0');
      if (size > ECHO_BYTES) return failure(400);
    }
  }
  struct source source = {.kind = SOURCE_FILL, .left = size};
  return (struct answer){200, "application/octet-stream", (int64_t)size, source};
}

/* Opened anew for each request, as by tiny-nghttpd: what a server does that keeps no cache. */
static struct answer file(const char *path) {
  while (*path == '/') path++;
  if (folder < 0 || *path == '\0' || strstr(path, "..") != NULL) return failure(404);
  int opened = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (opened < 0) return failure(404);
  struct stat about;
  if (fstat(opened, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(opened);
    return failure(404);
  }
  struct source source = {.kind = SOURCE_FILE, .file = opened, .left = (uint64_t)about.st_size};
  return (struct answer){200, "application/octet-stream", about.st_size, source};
}

struct answer route(const char *method, const char *target, int64_t body) {
  const char *query = strchr(target, '?');
  size_t length = query != NULL ? (size_t)(query - target) : strlen(target);
  bool echo = length == 5 && memcmp(target, "/echo", 5) == 0;
  if (echo && strcmp(method, "POST") == 0) {
    struct source source = {.kind = SOURCE_ECHO};
    return (struct answer){200, "application/octet-stream", body, source};
  }
  if (strcmp(method, "GET") != 0) return failure(405);
  if (length == 5 && memcmp(target, "/ping", 5) == 0) return text(200, "pong");
  if (echo) return fill(query != NULL ? query + 1 : NULL);
  return query == NULL ? file(target) : failure(404);
}

ssize_t source_read(struct source *s, uint8_t *to, size_t most) {
  ssize_t count = (ssize_t)(s->left < most ? s->left : most);
  switch (s->kind) {
  case SOURCE_TEXT:
    memcpy(to, s->text, (size_t)count);
    s->text += count;
    break;
  case SOURCE_FILL: memset(to, 'x', (size_t)count); break;
  case SOURCE_FILE:
    if (count > 0) count = pread(s->file, to, (size_t)count, s->offset);
    /* Shorter than it was when it was opened. */
    if (count <= 0 && s->left > 0) return -1;
    s->offset += count;
    break;
  default: return 0;
  }
  s->left -= (uint64_t)count;
  return count;
}

void source_close(struct source *s) {
  if (s->kind == SOURCE_FILE) close(s->file);
  s->kind = SOURCE_NONE;
}
