/* nghttp2c PORT TLSPORT CERT KEY WWW WORKERS
 *
 * Each worker is a process with its own SO_REUSEPORT listeners and its own epoll. */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 256
#define EVENTS 1024

char date[30];
time_t now;

/* The two listeners of each worker, cleartext and TLS. */
static int listeners[WORKERS_MAX][2];
static SSL_CTX *tls;

static int fail(const char *what) {
  perror(what);
  return -1;
}

static int listen_on(const char *port) {
  int number = atoi(port), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (number <= 0 || number > 65535) {
    fprintf(stderr, "nghttp2c: %s is no port\n", port);
    return -1;
  }
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return fail("nghttp2c: socket");
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  /* Accepted sockets inherit it. */
  setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) return fail("nghttp2c: bind");
  if (listen(listener, 4096) != 0) return fail("nghttp2c: listen");
  return listener;
}

static void tick(void) {
  struct timespec clock;
  clock_gettime(CLOCK_REALTIME_COARSE, &clock);
  if (clock.tv_sec == now) return;
  now = clock.tv_sec;
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  connection_close_idle();
}

static void accept_all(int poll, int listener, SSL_CTX *context) {
  for (;;) {
    int accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted >= 0) connection_open(poll, accepted, context);
    else if (errno == EMFILE || errno == ENFILE) {
      if (!connection_shed()) return;
    } else if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

static int work(const int pair[2]) {
  int poll = epoll_create1(EPOLL_CLOEXEC);
  if (poll < 0) return fail("nghttp2c: epoll_create1");
  for (int i = 0; i < 2; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)&pair[i]};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, pair[i], &event) != 0) return fail("nghttp2c: epoll_ctl");
  }
  static struct epoll_event events[EVENTS];
  bool waiting = false;
  for (;;) {
    int count = epoll_wait(poll, events, EVENTS, waiting ? 0 : 1000);
    if (count < 0 && errno != EINTR) return fail("nghttp2c: epoll_wait");
    tick();
    int listening = 0;
    for (int i = 0; i < count; i++) {
      void *of = events[i].data.ptr;
      if (of == &pair[0] || of == &pair[1]) listening |= of == &pair[0] ? 1 : 2;
      else connection_event(of, events[i].events);
    }
    /* Last, for shedding must not close what still has an event. */
    if (listening & 1) accept_all(poll, pair[0], NULL);
    if (listening & 2) accept_all(poll, pair[1], tls);
    waiting = connection_run_queue();
  }
}

/* One process per worker; the first to end ends them all. */
static int supervise(int workers) {
  for (int i = 0; i < workers; i++) {
    pid_t child = fork();
    if (child < 0) return fail("nghttp2c: fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int other = 0; other < workers; other++) {
        if (other == i) continue;
        close(listeners[other][0]);
        close(listeners[other][1]);
      }
      return work(listeners[i]);
    }
  }
  wait(NULL);
  fputs("nghttp2c: a worker ended\n", stderr);
  return -1;
}

int main(int count, char **arguments) {
  int workers = count == 7 ? atoi(arguments[6]) : 0;
  if (workers < 1 || workers > WORKERS_MAX) {
    fputs("usage: nghttp2c PORT TLSPORT CERT KEY WWW WORKERS\n", stderr);
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  tls = tls_context(arguments[3], arguments[4]);
  if (tls == NULL) return 1;
  routes_open(arguments[5]);
  for (int i = 0; i < workers; i++) {
    for (int which = 0; which < 2; which++) {
      listeners[i][which] = listen_on(arguments[1 + which]);
      if (listeners[i][which] < 0) return 1;
    }
  }
  return workers == 1 ? work(listeners[0]) != 0 : supervise(workers) != 0;
}
