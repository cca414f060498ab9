/* The command line of the load generator. */
#include <getopt.h>

#include "load.h"

static const char usage[] =
    "usage: load --port PORT [options]\n"
    "  --host H        a loopback address (127.0.0.1)\n"
    "  --address A     address; pair i uses A/i, a fan-out uses A (bench)\n"
    "  --pairs N       senders, each with its receiver, two connections a pair (1)\n"
    "  --fan-out M     one sender, M receivers of one multicast address (1)\n"
    "  --count N       messages in all (100000)\n"
    "  --body B        body bytes, at least 16 (100)\n"
    "  --credit N      link credit of a receiver, topped up when half is used (1000)\n"
    "  --inflight N    unsettled messages that a sender allows itself; 0: any number (0)\n"
    "  --presettled    send settled\n"
    "  --lossy         count messages that do not arrive instead of failing\n"
    "  --role R        both, send or receive (both)\n"
    "  --container E   that end waits for links: none, send or receive (none)\n"
    "  --container-id I   what it calls itself (bench)\n"
    "  --container-port P   where it connects to (the port)\n"
    "  --receive-port P     where receivers connect to (the port)\n"
    "  --direct PORT   the receivers listen on PORT, behind a byte relay at --port\n"
    "  --idle N        open N idle connections with a receiver each, and no message\n"
    "  --hold S        seconds to hold idle connections (0)\n"
    "  --pid PID       process to account for\n"
    "  --verify        compare every byte of every body\n"
    "  --tls           use TLS, and trust any certificate\n"
    "  --certificate FILE   with TLS and --direct: the receivers' certificate and key\n"
    "  --no-sasl       start without a SASL layer\n"
    "  --deadline S    give up after S seconds (60)\n";

static uint64_t whole(const char *text)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    if (*end != '\0' || *text == '-')
        die(EXIT_USAGE, "not a number: %s", text);
    return v;
}

void read_options(int argc, char **argv)
{
    options = (struct options){
        .host = "127.0.0.1", .address = "bench", .container_id = "bench", .pairs = 1, .fan_out = 1, .credit = 1000,
        .count = 100000, .body_bytes = 100, .deadline_s = 60, .send_role = true,
        .receive_role = true,
    };
    enum { HOST = 1, PORT, ADDRESS, PAIRS, FAN_OUT, COUNT, BODY, CREDIT, INFLIGHT, PRESETTLED,
           LOSSY, ROLE, CONTAINER, CONTAINER_ID, CONTAINER_PORT, RECEIVE_PORT, DIRECT, IDLE, HOLD, PID, VERIFY, NO_SASL, TLS, CERTIFICATE, DEADLINE };
    static const struct option names[] = {
        {"host", 1, 0, HOST}, {"port", 1, 0, PORT}, {"address", 1, 0, ADDRESS},
        {"pairs", 1, 0, PAIRS}, {"fan-out", 1, 0, FAN_OUT}, {"count", 1, 0, COUNT},
        {"body", 1, 0, BODY}, {"credit", 1, 0, CREDIT}, {"inflight", 1, 0, INFLIGHT},
        {"presettled", 0, 0, PRESETTLED}, {"lossy", 0, 0, LOSSY},
        {"role", 1, 0, ROLE}, {"container", 1, 0, CONTAINER},
        {"container-id", 1, 0, CONTAINER_ID}, {"container-port", 1, 0, CONTAINER_PORT},
        {"receive-port", 1, 0, RECEIVE_PORT}, {"direct", 1, 0, DIRECT},
        {"idle", 1, 0, IDLE}, {"hold", 1, 0, HOLD}, {"pid", 1, 0, PID}, {"verify", 0, 0, VERIFY},
        {"no-sasl", 0, 0, NO_SASL}, {"tls", 0, 0, TLS}, {"certificate", 1, 0, CERTIFICATE}, {"deadline", 1, 0, DEADLINE}, {0},
    };
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (name) {
        case HOST: options.host = optarg; break;
        case PORT: options.port = (int)whole(optarg); break;
        case ADDRESS: options.address = optarg; break;
        case PAIRS: options.pairs = (uint32_t)whole(optarg); break;
        case FAN_OUT: options.fan_out = (uint32_t)whole(optarg); break;
        case COUNT: options.count = whole(optarg); break;
        case BODY: options.body_bytes = whole(optarg); break;
        case CREDIT: options.credit = (uint32_t)whole(optarg); break;
        case INFLIGHT: options.inflight = (uint32_t)whole(optarg); break;
        case PRESETTLED: options.presettled = true; break;
        case LOSSY: options.lossy = true; break;
        case ROLE:
            options.send_role = strcmp(optarg, "receive") != 0;
            options.receive_role = strcmp(optarg, "send") != 0;
            break;
        case CONTAINER:
            options.container_sends = strcmp(optarg, "send") == 0;
            options.container_receives = strcmp(optarg, "receive") == 0;
            break;
        case CONTAINER_ID: options.container_id = optarg; break;
        case CONTAINER_PORT: options.container_port = (int)whole(optarg); break;
        case RECEIVE_PORT: options.receive_port = (int)whole(optarg); break;
        case DIRECT: options.direct_port = (int)whole(optarg); break;
        case IDLE: options.idle = (uint32_t)whole(optarg); break;
        case HOLD: options.hold_s = atof(optarg); break;
        case PID: options.pid = (int)whole(optarg); break;
        case VERIFY: options.verify = true; break;
        case NO_SASL: options.no_sasl = true; break;
        case TLS: options.tls = true; break;
        case CERTIFICATE: options.certificate = optarg; break;
        case DEADLINE: options.deadline_s = atof(optarg); break;
        default: fputs(usage, stderr); exit(EXIT_USAGE);
        }
    }
    bool both = options.send_role && options.receive_role;
    bool container = options.container_sends || options.container_receives;
    if (!options.port || !options.pairs || !options.fan_out || !options.credit
        || options.body_bytes < MIN_BODY_BYTES || options.count < options.pairs
        || (options.fan_out > 1 && options.pairs > 1)
        || (options.direct_port && (options.fan_out > 1 || options.idle || !both))
        || (container && (options.direct_port || options.fan_out > 1 || options.idle || !both))
        || strlen(options.container_id) > 100) {
        fputs(usage, stderr);
        exit(EXIT_USAGE);
    }
}
