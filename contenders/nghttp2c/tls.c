/* TLS by OpenSSL. It reads from the socket by a BIO that knows when the socket is empty, and writes
 * to a buffer, so that all records of a turn leave in one system call. */
#include "server.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

struct buffer sealed;

static int bio_read(BIO *bio, char *to, int most) {
  struct connection *c = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (most <= 0) return 0;
  ssize_t count = socket_read(c, to, (size_t)most);
  if (count < 0 && !c->broken) BIO_set_retry_read(bio);
  return (int)count;
}

static int bio_write(BIO *bio, const char *bytes, int count) {
  BIO_clear_retry_flags(bio);
  if (count > 0) buffer_add(&sealed, bytes, (size_t)count);
  return count;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method(void) {
  static BIO_METHOD *made;
  if (made == NULL) {
    made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket and buffer");
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
  }
  return made;
}

static int choose(SSL *tls, const unsigned char **chosen, unsigned char *length,
                  const unsigned char *offered, unsigned offered_length, void *context) {
  static const unsigned char ours[] = "\2h2\10http/1.1";
  (void)tls, (void)context;
  int found = SSL_select_next_proto((unsigned char **)chosen, length, ours, sizeof ours - 1, offered,
                                    offered_length);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

SSL_CTX *tls_context(const char *cert, const char *key) {
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  if (context == NULL || SSL_CTX_use_certificate_chain_file(context, cert) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    ERR_print_errors_fp(stderr);
    return NULL;
  }
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  /* An idle connection gives its buffers back. */
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  /* One read for the header of a record and the record. */
  SSL_CTX_set_read_ahead(context, 1);
  /* Sessions are resumed by ticket, on any worker. */
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, choose, NULL);
  return context;
}

SSL *tls_open(SSL_CTX *context, struct connection *c) {
  SSL *tls = SSL_new(context);
  BIO *bio = tls != NULL ? BIO_new(method()) : NULL;
  if (bio == NULL) {
    SSL_free(tls);
    return NULL;
  }
  BIO_set_data(bio, c);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls, bio, bio);
  SSL_set_accept_state(tls);
  return tls;
}
