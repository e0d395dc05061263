#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *buffer_room(struct buffer *b, size_t count) {
  if (b->start == b->end) b->start = b->end = 0;
  if (b->size - b->end >= count) return b->bytes + b->end;
  size_t length = buffer_length(b);
  if (b->start > 0) {
    memmove(b->bytes, b->bytes + b->start, length);
    b->start = 0;
    b->end = length;
  }
  if (b->size - length < count) {
    size_t size = b->size > 0 ? b->size : 512;
    while (size - length < count) size *= 2;
    b->bytes = realloc(b->bytes, size);
    if (b->bytes == NULL) {
      fputs("nghttp2c: out of memory\n", stderr);
      abort();
    }
    b->size = size;
  }
  return b->bytes + b->end;
}

void buffer_add(struct buffer *b, const void *bytes, size_t count) {
  if (count == 0) return;
  memcpy(buffer_room(b, count), bytes, count);
  b->end += count;
}

void buffer_consume(struct buffer *b, size_t count) { b->start += count; }

void buffer_free(struct buffer *b) {
  free(b->bytes);
  *b = (struct buffer){0};
}
