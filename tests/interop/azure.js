// The JavaScript SDKs of Azure: `node azure.js MODE CONNECTION_STRING ADDRESS [OFFSET|COUNT]`. Tells what happened in JSON lines.
'use strict';

const { ServiceBusClient } = require('@azure/service-bus');
const { EventHubConsumerClient, EventHubProducerClient } = require('@azure/event-hubs');

const [, , mode, text, address, more] = process.argv;
const options = { retryOptions: { maxRetries: 0, timeoutInMs: 10000 } };
if (process.env.OVER_WEBSOCKET) {
  const WebSocket = require('ws');
  // The SDKs ask for wss: whatever the connection string says. Without TLS a program has to give them this.
  const plain = class extends WebSocket {
    constructor(url, ...more) {
      super(url.replace(/^wss:/, 'ws:'), ...more);
    }
  };
  options.webSocketOptions = { webSocket: process.env.OVER_WEBSOCKET === 'wss' ? WebSocket : plain };
}

function tell(what, value) {
  process.stdout.write(`${JSON.stringify({ what, value })}\n`);
}

function told(error) {
  return `${error.code} ${error.message}`;
}

// With TOKEN in the environment, the text is a host and port, and the token the credential.
function newServiceBus() {
  const token = process.env.TOKEN;
  if (!token) {
    return new ServiceBusClient(text, options);
  }
  const getToken = async () => ({ token, expiresOnTimestamp: Date.now() + 3600 * 1000 });
  return new ServiceBusClient(text, { getToken }, options);
}

async function exchange() {
  const client = newServiceBus();
  const sender = client.createSender(address);
  const receiver = client.createReceiver(address);
  const coming = receiver.receiveMessages(1, { maxWaitTimeInMs: 10000 });
  const sent = sender.sendMessages({ body: 'hello', messageId: 'm1' });
  for (const message of await coming) {
    tell('received', message.body);
    await receiver.completeMessage(message);
  }
  await sent;
  tell('sent', true);
  try {
    await receiver.peekMessages(1);
  } catch (error) {
    tell('peek', error.message);
  }
  await client.close();
}

// What the sender hears of each outcome, where there is no other receiver.
async function outcomes() {
  const client = newServiceBus();
  const sender = client.createSender(address);
  const receiver = client.createReceiver(address);
  const settle = {
    abandon: (message) => receiver.abandonMessage(message),
    defer: (message) => receiver.deferMessage(message),
    'dead-letter': (message) => receiver.deadLetterMessage(message, { deadLetterReason: 'too blue' }),
  };
  for (const [what, act] of Object.entries(settle)) {
    const coming = receiver.receiveMessages(1, { maxWaitTimeInMs: 10000 });
    const sent = sender.sendMessages({ body: what, messageId: what }).then(() => 'sent', told);
    const [message] = await coming;
    await act(message);
    tell(what, await sent);
  }
  await client.close();
}

// One receiver abandons a message, and another gets it.
async function again() {
  const client = newServiceBus();
  const sender = client.createSender(address);
  const met = new Set();
  let abandoned = null;
  for (const number of [0, 1]) {
    // the router has no locks that could be renewed
    const receiver = client.createReceiver(address, { maxAutoLockRenewalDurationInMs: 0 });
    receiver.subscribe(
      {
        processMessage: async (message) => {
          if (message.body === 'warm') {
            met.add(number);
          } else if (abandoned === null) {
            abandoned = number;
            await receiver.abandonMessage(message);
            return;
          } else {
            tell('again', [message.body, message.messageId, abandoned !== number]);
          }
          await receiver.completeMessage(message);
        },
        processError: async ({ error }) => tell('failed', told(error)),
      },
      { autoCompleteMessages: false, maxConcurrentCalls: 2 },
    );
  }
  // both have room for one more then
  while (met.size < 2) {
    await sender.sendMessages({ body: 'warm', messageId: 'warm' });
  }
  await sender.sendMessages({ body: 'hello', messageId: 'm1' });
  tell('sent', true);
  await client.close();
}

async function batch() {
  const client = newServiceBus();
  const sender = client.createSender(address);
  await sender.sendMessages({ body: 'alone' });
  await sender.sendMessages([{ body: 'one' }, { body: 'two' }]);
  tell('sent', true);
  await client.close();
}

// Complete so many messages.
async function receive() {
  const client = new ServiceBusClient(text, options);
  const receiver = client.createReceiver(address);
  const bodies = [];
  while (bodies.length < Number(more)) {
    for (const message of await receiver.receiveMessages(Number(more) - bodies.length)) {
      bodies.push(message.body);
      await receiver.completeMessage(message);
    }
  }
  tell('bodies', bodies);
  await client.close();
}

// The properties of a hub, then three events that are sent to it: one, and a batch of two.
async function hub() {
  // a consumer may attach while a send waits for credit
  const patient = { ...options, retryOptions: { maxRetries: 20, retryDelayInMs: 200, timeoutInMs: 10000 } };
  const producer = new EventHubProducerClient(text, address, patient);
  tell('hub', (await producer.getEventHubProperties()).partitionIds);
  tell('partition', (await producer.getPartitionProperties('0')).isEmpty);
  const consumer = new EventHubConsumerClient('$Default', text, address, options);
  const events = [];
  const all = new Promise((resolve) => {
    consumer.subscribe('0', {
      processEvents: async (found) => {
        events.push(...found.map((event) => event.body));
        if (events.length >= 3) {
          resolve();
        }
      },
      processError: async (error) => {
        tell('failed', told(error));
        resolve();
      },
    }, { maxWaitTimeInSeconds: 1 });
  });
  await producer.sendBatch([{ body: 'alone' }]);
  const two = await producer.createBatch();
  two.tryAdd({ body: 'one' });
  two.tryAdd({ body: 'two' });
  await producer.sendBatch(two);
  tell('sent', true);
  await all;
  tell('events', events);
  await producer.close();
  await consumer.close();
}

// One event, and a batch of two.
async function produce() {
  const producer = new EventHubProducerClient(text, address, options);
  await producer.sendBatch([{ body: 'alone' }]);
  await producer.sendBatch([{ body: 'one' }, { body: 'two' }]);
  tell('sent', true);
  await producer.close();
}

// The two events after an offset, or the error.
async function consume() {
  const consumer = new EventHubConsumerClient('$Default', text, address, options);
  const events = [];
  await new Promise((resolve) => {
    consumer.subscribe(
      '0',
      {
        processEvents: async (found) => {
          events.push(...found.map((event) => `${event.body}@${event.offset}`));
          if (events.length >= 2) {
            resolve();
          }
        },
        processError: async (error) => {
          tell('failed', told(error));
          resolve();
        },
      },
      { startPosition: { offset: more }, maxBatchSize: 2, maxWaitTimeInSeconds: 1 },
    );
  });
  tell('events', events);
  await consumer.close();
}

({ exchange, outcomes, again, batch, receive, hub, produce, consume })[mode]().then(
  () => process.exit(0),
  (error) => {
    tell('failed', told(error));
    process.exit(0);
  },
);
