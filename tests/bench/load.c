/* The benchmark's load generator: N senders and N receivers of AMQP 1.0 in one thread.
 *
 * It speaks the protocol by hand, so that its own work stays small beside that of the router
 * under test: frames are templates, many transfers leave in one send(), and a receiver answers
 * one read with one disposition range and at most one flow. It keeps to the peer's credit and
 * window exactly and ends with an error when the peer does not keep to its own.
 *
 * With --container, one of the two ends is a container, such as a broker: it waits until the router
 * attaches a link to it, for an auto-link or a link route.
 *
 * In direct mode (--direct PORT) the receivers listen instead, and the senders reach them through
 * a byte relay, which gives the floor to compare routers with. The result is one line of JSON.
 */
#include <stdarg.h>
#include <sys/resource.h>

#include "load.h"
#include "process.h"

enum { MAX_HANDSHAKES = 32 }; /* below any router's listen backlog */

struct options options;
struct run run;

void die(enum exit_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

static uint32_t sender_count(void)
{
    return options.send_role && !options.idle ? options.pairs : 0;
}

static uint32_t receiver_count(void)
{
    if (!options.receive_role)
        return 0;
    if (options.idle)
        return options.idle;
    return options.fan_out > 1 ? options.fan_out : options.pairs;
}

/* ---- time ---- */

void start(void)
{
    run.started = true;
    if (options.pid)
        run.router_cpu_ns = process_cpu_ns(options.pid);
    run.own_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    run.started_ns = now_ns(CLOCK_MONOTONIC);
}

void start_if_ready(void)
{
    if (run.started || run.credited < sender_count() || run.attached < run.connection_count)
        return;
    start();
    for (uint32_t i = 0; i < run.connection_count; i++)
        if (run.connections[i].sender)
            flush(&run.connections[i]);
}

void connection_done(struct connection *c)
{
    c->done = true;
    if (++run.done != run.connection_count)
        return;
    run.finished_ns = now_ns(CLOCK_MONOTONIC);
    run.own_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - run.own_cpu_ns;
    if (options.pid)
        run.router_cpu_ns = process_cpu_ns(options.pid) - run.router_cpu_ns;
}

/* Where messages may be lost, the last ones may be: a second of silence ends the waiting. */
static void give_up_lost(void)
{
    int64_t now = now_ns(CLOCK_MONOTONIC);
    if (!run.started || run.received_ns == 0 || now - run.received_ns < 1000000000)
        return;
    for (uint32_t i = 0; i < run.connection_count; i++)
        if (run.connections[i].sender && !run.connections[i].done)
            return;
    for (uint32_t i = 0; i < run.connection_count; i++) {
        struct connection *c = &run.connections[i];
        if (c->sender || c->done)
            continue;
        run.lost += run.per_receiver - c->received;
        connection_done(c);
    }
    run.finished_ns = run.received_ns;
}

/* ---- the order of things ---- */

/* Those who come first in the table are there before any other dials: receivers, or a container that
 * sends. A container's link comes later, when its peer wants one. */
static void dial_next(void)
{
    static uint32_t next;
    uint32_t skipped = options.direct_port ? options.pairs : 0; /* those are dialled by the relay */
    uint32_t first = options.direct_port ? 0 : receiver_count();
    if (options.container_sends)
        first = sender_count();
    while (skipped + next < run.connection_count) {
        uint32_t waiting = next > run.ready ? next - run.ready : 0;
        if (waiting == MAX_HANDSHAKES || (next == first && run.ready < first))
            return;
        struct connection *c = &run.connections[skipped + next];
        bool is_first = next < first;
        c->sender = is_first == options.container_sends;
        c->container = is_first && (options.container_sends || options.container_receives);
        c->index = is_first ? next : next - first;
        next++;
        dial(c);
    }
}

static void turn_until(const uint32_t *value, uint32_t wanted, int64_t deadline_ns,
                       const char *what)
{
    for (; *value != wanted; turn()) {
        dial_next();
        if (options.lossy)
            give_up_lost();
        if (now_ns(CLOCK_MONOTONIC) > deadline_ns)
            die(EXIT_DEADLINE, "no time left for %s: %u of %u", what, *value, wanted);
    }
}

static void close_all(void)
{
    for (uint32_t i = 0; i < run.connection_count; i++) {
        struct connection *c = &run.connections[i];
        c->closing = true;
        if (c->fd < 0)
            continue;
        send_close(c);
        flush(c);
    }
    int64_t deadline_ns = now_ns(CLOCK_MONOTONIC) + 3000000000;
    while (run.opened > 0 && now_ns(CLOCK_MONOTONIC) < deadline_ns)
        turn();
}

/* ---- the report ---- */

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double percentile_us(const struct samples *s, double part)
{
    return s->count ? (double)s->ns[(size_t)(part * (double)(s->count - 1))] / 1e3 : 0;
}

static void report(void)
{
    uint64_t messages = run.per_sender * options.pairs;
    uint64_t deliveries = messages * options.fan_out - run.lost;
    double seconds = (double)(run.finished_ns - run.started_ns) / 1e9;
    struct samples *received = &run.received_after, *settled = &run.settled_after;
    qsort(received->ns, received->count, sizeof(int64_t), compare_ns);
    qsort(settled->ns, settled->count, sizeof(int64_t), compare_ns);
    printf("{\"messages\": %llu, \"deliveries\": %llu, \"lost\": %llu, \"body_bytes\": %zu",
           (unsigned long long)messages, (unsigned long long)deliveries,
           (unsigned long long)run.lost, options.body_bytes);
    printf(", \"seconds\": %.6f, \"rate\": %.1f, \"own_cpu_s\": %.6f", seconds,
           (double)deliveries / seconds, (double)run.own_cpu_ns / 1e9);
    printf(", \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f",
           percentile_us(received, 0.5), percentile_us(received, 0.9),
           percentile_us(received, 0.99));
    printf(", \"settled_p50_us\": %.1f, \"settled_p99_us\": %.1f", percentile_us(settled, 0.5),
           percentile_us(settled, 0.99));
    if (options.pid)
        printf(", \"router_cpu_s\": %.6f, \"rss_bytes\": %lld, \"peak_rss_bytes\": %lld",
               (double)run.router_cpu_ns / 1e9,
               (long long)process_memory_bytes(options.pid, "VmRSS:"),
               (long long)process_memory_bytes(options.pid, "VmHWM:"));
    puts("}");
}

static void run_idle(int64_t deadline_ns)
{
    long long before = process_memory_bytes(options.pid, "VmRSS:");
    turn_until(&run.attached, options.idle, deadline_ns, "attaching idle links");
    int64_t until_ns = now_ns(CLOCK_MONOTONIC) + (int64_t)(options.hold_s * 1e9);
    do
        turn();
    while (now_ns(CLOCK_MONOTONIC) < until_ns);
    long long held = process_memory_bytes(options.pid, "VmRSS:");
    close_all();
    printf("{\"idle\": %u, \"rss_before_bytes\": %lld, \"rss_held_bytes\": %lld, "
           "\"bytes_each\": %.0f}\n",
           options.idle, before, held, (double)(held - before) / options.idle);
}

static void make_message(void)
{
    bool small = options.body_bytes <= 255;
    run.body_at = small ? 5 : 8;
    run.message_bytes = run.body_at + options.body_bytes;
    run.message = malloc(run.message_bytes);
    memcpy(run.message, (uint8_t[]){0x00, 0x53, DATA, small ? 0xa0 : 0xb0}, 4);
    if (small)
        run.message[4] = (uint8_t)options.body_bytes;
    else
        store_u32(run.message + 4, (uint32_t)options.body_bytes);
    for (size_t i = 0; i < options.body_bytes; i++)
        run.message[run.body_at + i] = i < MIN_BODY_BYTES ? 0 : (uint8_t)(i * 7 + i / 251);
}

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (memory == NULL)
        die(EXIT_USAGE, "out of memory");
    return memory;
}

static void prepare(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    run.connection_count = receiver_count() + sender_count();
    run.per_sender = run.per_receiver = options.count / options.pairs;
    run.sample_every = 1 + options.count / 65536;
    size_t each = run.per_sender / run.sample_every + 1;
    run.sent_at_ns = zeroed(options.pairs, sizeof *run.sent_at_ns);
    for (uint32_t i = 0; i < options.pairs; i++)
        run.sent_at_ns[i] = zeroed(each, sizeof(int64_t));
    run.settled_after.size = each * sender_count();
    run.received_after.size = each * receiver_count();
    run.settled_after.ns = zeroed(run.settled_after.size + 1, sizeof(int64_t));
    run.received_after.ns = zeroed(run.received_after.size + 1, sizeof(int64_t));
    run.connections = zeroed(run.connection_count, sizeof *run.connections);
    for (uint32_t i = 0; i < run.connection_count; i++)
        run.connections[i].fd = -1;
    make_message();
    open_sockets();
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    prepare();
    int64_t deadline_ns = now_ns(CLOCK_MONOTONIC) + (int64_t)(options.deadline_s * 1e9);
    if (options.idle) {
        run_idle(deadline_ns);
        return 0;
    }
    turn_until(&run.done, run.connection_count, deadline_ns, "all messages");
    report();
    fflush(stdout);
    close_all();
    return 0;
}
