/* Connections and the event loop. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

enum { READ_BYTES = 256 * 1024, MAX_EVENTS = 64 };

static int epoll_fd, listen_fd = -1;

static void check_sender_done(struct connection *c)
{
    bool finished = c->sent == run.per_sender && c->out.begin == c->out.end
                    && (options.presettled || c->settled == run.per_sender);
    if (finished && !c->done)
        connection_done(c);
}

static void arm(struct connection *c, bool for_writing)
{
    if (c->armed == for_writing)
        return;
    struct epoll_event event = {
        .events = EPOLLIN | (for_writing ? EPOLLOUT : 0u), .data.ptr = c,
    };
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event) < 0)
        die(EXIT_USAGE, "epoll_ctl: %s", strerror(errno));
    c->armed = for_writing;
}

/* Send what is there and as many messages as credit, window and one buffer allow. */
void flush(struct connection *c)
{
    struct output *o = &c->out;
    if (c->sender)
        fill(c);
    if (o->begin < o->end) {
        ssize_t sent = send_octets(c, o->data + o->begin, o->end - o->begin);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            if (c->closing)
                sent = (ssize_t)(o->end - o->begin);
            else
                die(EXIT_PROTOCOL, "send: %s", strerror(errno));
        }
        if (sent > 0) {
            o->begin += (size_t)sent;
            c->quiet = false;
        }
        if (o->begin > 0 && o->end > o->size / 2) {
            memmove(o->data, o->data + o->begin, o->end - o->begin);
            o->end -= o->begin;
            o->begin = 0;
        }
    }
    if (c->sender && run.started)
        check_sender_done(c);
    arm(c, o->begin < o->end || (c->sender && may_send(c)));
}

static void hang_up(struct connection *c)
{
    if (c->tls != NULL)
        end_tls(c);
    close(c->fd);
    c->fd = -1;
    run.opened--;
}

static void read_once(struct connection *c)
{
    ssize_t got = receive_octets(c, c->in + c->in_end, c->in_size - c->in_end);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        if (!c->closing)
            die(EXIT_PROTOCOL, "the peer hung up: %s", got < 0 ? strerror(errno) : "end of stream");
        hang_up(c);
        return;
    }
    c->in_end += (size_t)got;
    if (options.lossy && !c->sender)
        run.received_ns = now_ns(CLOCK_MONOTONIC);
    consume(c);
    if (c->closed)
        hang_up(c);
    else if (!c->sender)
        answer(c);
}

static void read_some(struct connection *c)
{
    do
        read_once(c);
    while (c->fd >= 0 && octets_pending(c));
}

static void adopt(struct connection *c, int fd)
{
    int yes = 1;
    size_t read_bytes = options.idle ? MAX_FRAME_BYTES : READ_BYTES;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    c->fd = fd;
    if (options.tls)
        shake_hands(c, c->acceptor);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    c->need_header = true;
    c->frame_limit = MIN_MAX_FRAME_BYTES;
    c->in_size = read_bytes + MAX_FRAME_BYTES;
    c->in = malloc(c->in_size);
    c->out.size = 4 * read_bytes;
    c->out.data = malloc(c->out.size);
    if (c->in == NULL || c->out.data == NULL)
        die(EXIT_USAGE, "out of memory");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        die(EXIT_USAGE, "epoll_ctl: %s", strerror(errno));
    run.opened++;
}

static struct sockaddr_in socket_address(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, options.host, &a.sin_addr) != 1)
        die(EXIT_USAGE, "not an IPv4 address: %s", options.host);
    if (ntohl(a.sin_addr.s_addr) >> 24 != 127)
        die(EXIT_USAGE, "%s is not a loopback address", options.host);
    return a;
}

void dial(struct connection *c)
{
    int port = c->container && options.container_port ? options.container_port
             : !c->sender && options.receive_port     ? options.receive_port
                                                      : options.port;
    struct sockaddr_in a = socket_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        die(EXIT_USAGE, "connect to port %d: %s", port, strerror(errno));
    adopt(c, fd);
    if (options.no_sasl)
        send_opening(c);
    else
        send_header(c, 3);
    flush(c);
}

static void listen_for_senders(void)
{
    int yes = 1;
    struct sockaddr_in a = socket_address(options.direct_port);
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listen_fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(listen_fd, 128) < 0)
        die(EXIT_USAGE, "listen on port %d: %s", options.direct_port, strerror(errno));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event);
}

static void accept_sender(void)
{
    static uint32_t accepted;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (accepted == options.pairs)
        die(EXIT_PROTOCOL, "one connection too many came in");
    struct connection *c = &run.connections[accepted];
    c->index = accepted++;
    c->acceptor = true;
    adopt(c, fd);
}


/* Send an empty frame wherever nothing was sent for a second and the peer has a time-out. */
static void keep_alive(void)
{
    static int64_t last_ns;
    int64_t now = now_ns(CLOCK_MONOTONIC);
    if (now - last_ns < 1000000000)
        return;
    last_ns = now;
    for (uint32_t i = 0; i < run.connection_count; i++) {
        struct connection *c = &run.connections[i];
        if (c->fd < 0)
            continue;
        if (c->quiet && c->peer_idle_ms && c->out.begin == c->out.end) {
            put_raw(&c->out, (uint8_t[]){0, 0, 0, 8, 2, 0, 0, 0}, 8);
            flush(c);
        }
        c->quiet = true;
    }
}


void turn(void)
{
    struct epoll_event events[MAX_EVENTS];
    int count = epoll_wait(epoll_fd, events, MAX_EVENTS, 200);
    for (int i = 0; i < count; i++) {
        struct connection *c = events[i].data.ptr;
        if (c == NULL) {
            accept_sender();
            continue;
        }
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            read_some(c);
        if (c->fd >= 0)
            flush(c);
    }
    keep_alive();
}

void open_sockets(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (options.tls)
        prepare_tls();
    if (options.direct_port)
        listen_for_senders();
}
