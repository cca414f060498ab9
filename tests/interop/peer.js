// A rhea container that does what a test tells it: one JSON object a line, commands in, events out.
'use strict';

const readline = require('readline');
const rhea = require('rhea');
const rhea_message = require('rhea/lib/message.js');
const frames = require('rhea/lib/frames.js');
const types = require('rhea/lib/types.js');

// Tests compare octets, so each message that is decoded keeps those it was decoded from.
const decode = rhea_message.decode;
rhea_message.decode = function (octets) {
    const message = decode(octets);
    Object.defineProperty(message, 'octets', { value: octets, enumerable: false });
    return message;
};

// A transfer may have no octets, as one has that tells how a resumed delivery ended; rhea counts on some.
const read_frame = frames.read_frame;
frames.read_frame = function (octets) {
    const frame = read_frame(octets);
    if (frame && frame.payload === undefined) {
        frame.payload = Buffer.alloc(0);
    }
    return frame;
};

const container = rhea.create_container({ id: 'rhea-' + process.pid });
const connections = {};
const links = {};
// by link, in the order in which they were sent or came
const deliveries = {};

function tell(event) {
    process.stdout.write(JSON.stringify(event) + '\n');
}

function error_of(error) {
    return error ? { condition: error.condition, description: error.description, info: plain(error.info) } : null;
}

function plain(value) {
    // annotations and the like: rhea's typed values, as what is inside of them
    return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

function terminus_of(link, terminus) {
    const unsettled = link.remote.attach.unsettled;
    return {
        address: terminus ? terminus.address : null,
        expiry_policy: terminus ? plain(terminus.expiry_policy) : null,
        timeout: terminus ? plain(terminus.timeout) : null,
        unsettled: unsettled ? Object.keys(unsettled).length : null
    };
}

// of our attach: what is unsettled of another link's deliveries, by their numbers, with the state of each
const UNSETTLED = 7;
function remember(link, command) {
    if (command.unsettled === undefined) {
        return;
    }
    const items = [];
    Object.entries(command.unsettled).forEach(function ([number, state]) {
        const delivery = deliveries[command.of][number];
        items.push(types.wrap_binary(delivery.tag));
        items.push(state ? rhea_message[state]().described() : types.Null());
    });
    link.local.attach.value[UNSETTLED] = types.Map32(items);
}

function watch_connection(name, connection) {
    connection.on('connection_open', function () {
        tell({ event: 'connection_open', connection: name, container: connection.container_id });
    });
    ['connection_close', 'connection_error', 'session_error', 'session_close'].forEach(function (event) {
        connection.on(event, function (context) {
            const error = event.startsWith('connection') ? connection.error : context.session.error;
            tell({ event: event, connection: name, error: error_of(error) });
        });
    });
    connection.on('disconnected', function (context) {
        tell({ event: 'disconnected', connection: name, reconnecting: Boolean(context.reconnecting) });
    });
    connection.on('protocol_error', function (error) {
        tell({ event: 'protocol_error', connection: name, error: String(error) });
    });
    connection.on('error', function (error) {
        tell({ event: 'error', connection: name, error: { condition: error.condition, description: String(error.message) } });
    });
}

function watch_sender(name, sender) {
    sender.on('sender_open', function () {
        tell(Object.assign({ event: 'sender_open', link: name }, terminus_of(sender, sender.target)));
    });
    sender.on('sendable', function () {
        tell({ event: 'sendable', link: name, credit: sender.credit });
    });
    sender.on('sender_draining', function () {
        sender.set_drained(true);
        tell({ event: 'sender_draining', link: name });
    });
    ['accepted', 'rejected', 'released', 'modified', 'settled'].forEach(function (event) {
        sender.on(event, function (context) {
            const delivery = context.delivery;
            const state = delivery.remote_state;
            tell({
                event: event,
                link: name,
                number: deliveries[name].indexOf(delivery),
                error: state && state.error ? error_of(state.error) : null,
                failed: Boolean(state && state.delivery_failed),
                undeliverable: Boolean(state && state.undeliverable_here),
                annotations: state ? plain(state.message_annotations) : null
            });
        });
    });
    ['sender_close', 'sender_error'].forEach(function (event) {
        sender.on(event, function () {
            tell({ event: event, link: name, error: error_of(sender.error) });
        });
    });
}

function watch_receiver(name, receiver) {
    receiver.on('receiver_open', function () {
        const filter = receiver.source && receiver.source.filter;
        tell(Object.assign(
            { event: 'receiver_open', link: name, filter: filter ? plain(filter) : null },
            terminus_of(receiver, receiver.source)
        ));
    });
    receiver.on('message', function (context) {
        const message = context.message;
        const octets = Buffer.isBuffer(message) ? message : message.octets;
        deliveries[name].push(context.delivery);
        tell({
            event: 'message',
            link: name,
            number: deliveries[name].length - 1,
            octets: octets.toString('base64'),
            format: context.delivery.format,
            settled: Boolean(context.delivery.remote_settled),
            tag: context.delivery.tag.toString('hex'),
            body: typeof message.body === 'string' ? message.body : null,
            reply_to: message.reply_to || null,
            correlation_id: message.correlation_id === undefined ? null : String(message.correlation_id)
        });
    });
    receiver.on('settled', function (context) {
        tell({ event: 'settled', link: name, number: deliveries[name].indexOf(context.delivery) });
    });
    receiver.on('receiver_drained', function () {
        tell({ event: 'receiver_drained', link: name });
    });
    ['receiver_close', 'receiver_error'].forEach(function (event) {
        receiver.on(event, function () {
            tell({ event: event, link: name, error: error_of(receiver.error) });
        });
    });
}

const commands = {
    connect: function (command) {
        const options = Object.assign({ host: '127.0.0.1', reconnect: false }, command.options);
        const web_socket = options.web_socket;
        if (web_socket) {
            // `ws` is loaded only where it is used
            const dial = container.websocket_connect(require('ws'));
            options.connection_details = dial(web_socket.url, web_socket.subprotocols, web_socket.options || {});
        }
        const connection = container.connect(options);
        connections[command.connection] = connection;
        watch_connection(command.connection, connection);
    },
    sender: function (command) {
        const connection = connections[command.connection];
        const options = Object.assign({ name: command.link }, command.options);
        deliveries[command.link] = [];
        links[command.link] = connection.open_sender(options);
        remember(links[command.link], command);
        watch_sender(command.link, links[command.link]);
    },
    receiver: function (command) {
        const connection = connections[command.connection];
        const options = Object.assign({ name: command.link }, command.options);
        const selector = options.source && options.source.selector;
        if (selector) {
            delete options.source.selector;
            options.source.filter = rhea.filter.selector(selector);
        }
        deliveries[command.link] = [];
        links[command.link] = connection.open_receiver(options);
        remember(links[command.link], command);
        watch_receiver(command.link, links[command.link]);
    },
    // takes what the other end attaches to send by; all of that is one link here
    take: function (command) {
        deliveries[command.link] = [];
        connections[command.connection].on('receiver_open', function (context) {
            const address = context.receiver.target.address;
            watch_receiver(command.link, context.receiver);
            context.receiver.set_source({ address: null });
            context.receiver.set_target({ address: address });
            tell({ event: 'taken', link: command.link, address: address });
        });
    },
    // users are names and passwords, for PLAIN
    listen: function (command) {
        container.sasl_server_mechanisms.enable_plain(function (user, password) {
            return command.users[user] === password;
        });
        container.on('connection_open', function (context) {
            const transport = context.connection.sasl_transport;
            tell({ event: 'accepted_connection', user: transport ? transport.username : null });
        });
        container.on('error', function (error) {
            tell({ event: 'error', error: { description: String(error.message) } });
        });
        const server = container.listen({ port: 0, host: '127.0.0.1' });
        server.on('listening', function () {
            tell({ event: 'listening', port: server.address().port });
        });
    },
    // octets are those of a whole message; fields are those of rhea's own message
    send: function (command) {
        const sender = links[command.link];
        const delivery = command.octets === undefined
            ? sender.send(command.fields)
            : sender.send(Buffer.from(command.octets, 'base64'), undefined, command.format || 0);
        deliveries[command.link].push(delivery);
    },
    credit: function (command) {
        links[command.link].add_credit(command.credit);
    },
    drain: function (command) {
        links[command.link].drain_credit();
    },
    // as the sender, with the outcome that was told
    settle_sent: function (command) {
        const delivery = deliveries[command.link][command.number];
        delivery.update(true, delivery.remote_state);
    },
    settle: function (command) {
        const delivery = deliveries[command.link][command.number];
        if (command.outcome === 'accepted') {
            delivery.accept();
        } else if (command.outcome === 'rejected') {
            delivery.reject(command.error);
        } else if (command.outcome === 'released') {
            delivery.release();
        } else if (command.outcome === 'modified') {
            delivery.modified(command.fields);
        } else {
            // an outcome of which the specification knows nothing
            delivery.update(true, types.described(types.wrap_symbol(command.outcome), types.wrap_list([])));
        }
    },
    close_link: function (command) {
        links[command.link].close();
    },
    detach: function (command) {
        links[command.link].detach();
    },
    // as a network does that is gone
    drop: function (command) {
        connections[command.connection].socket.destroy();
    },
    close: function (command) {
        connections[command.connection].close();
    }
};

readline.createInterface({ input: process.stdin }).on('line', function (line) {
    const command = JSON.parse(line);
    commands[command.do](command);
}).on('close', function () {
    process.exit(0);
});
tell({ event: 'ready', version: require('rhea/package.json').version });
