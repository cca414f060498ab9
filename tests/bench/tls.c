/* Octets to and from a peer, with TLS or without. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "load.h"

static SSL_CTX *client_context, *server_context;

static SSL_CTX *make_context(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);
    if (context == NULL)
        die(EXIT_USAGE, "no TLS context");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                                  | SSL_MODE_RELEASE_BUFFERS);
    return context;
}

/* Connections that this side opens trust any certificate: only the router is measured. */
void prepare_tls(void)
{
    client_context = make_context(TLS_client_method());
    if (options.certificate == NULL)
        return;
    server_context = make_context(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(server_context, options.certificate) != 1
        || SSL_CTX_use_PrivateKey_file(server_context, options.certificate, SSL_FILETYPE_PEM) != 1)
        die(EXIT_USAGE, "the certificate %s cannot be used", options.certificate);
}

/* Agree on TLS; the socket still blocks. */
void shake_hands(struct connection *c, bool accepts)
{
    SSL *tls = SSL_new(accepts ? server_context : client_context);
    SSL_set_fd(tls, c->fd);
    if ((accepts ? SSL_accept(tls) : SSL_connect(tls)) != 1)
        die(EXIT_PROTOCOL, "TLS: %s", ERR_reason_error_string(ERR_get_error()));
    c->tls = tls;
}

void end_tls(struct connection *c)
{
    SSL_free(c->tls);
    c->tls = NULL;
}

/* As send and recv on a socket that does not block: -1 with EAGAIN where nothing was possible. */
ssize_t send_octets(struct connection *c, const uint8_t *data, size_t count)
{
    if (c->tls == NULL)
        return send(c->fd, data, count, MSG_NOSIGNAL);
    size_t sent = 0, more;
    while (sent < count && SSL_write_ex(c->tls, data + sent, count - sent, &more) == 1)
        sent += more;
    if (sent > 0)
        return (ssize_t)sent;
    errno = EAGAIN;
    return -1;
}

ssize_t receive_octets(struct connection *c, uint8_t *data, size_t count)
{
    if (c->tls == NULL)
        return recv(c->fd, data, count, 0);
    size_t got = 0, more;
    while (got < count && SSL_read_ex(c->tls, data + got, count - got, &more) == 1)
        got += more;
    if (got > 0)
        return (ssize_t)got;
    int why = SSL_get_error(c->tls, 0);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        return 0;
    errno = EAGAIN;
    return -1;
}

bool octets_pending(const struct connection *c)
{
    return c->tls != NULL && SSL_pending(c->tls) > 0;
}
