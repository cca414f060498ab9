// The JavaScript SDKs of Azure: `node azure.js MODE CONNECTION_STRING ADDRESS`. Tells what happened in JSON lines.
'use strict';

const { ServiceBusClient } = require('@azure/service-bus');
const { EventHubProducerClient } = require('@azure/event-hubs');

const [, , mode, text, address] = process.argv;
const options = { retryOptions: { maxRetries: 0, timeoutInMs: 10000 } };
if (process.env.OVER_WEBSOCKET) {
  options.webSocketOptions = { webSocket: require('ws') };
}

function tell(what, value) {
  process.stdout.write(`${JSON.stringify({ what, value })}\n`);
}

async function exchange() {
  const client = new ServiceBusClient(text, options);
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

async function hub() {
  const producer = new EventHubProducerClient(text, address, options);
  tell('hub', (await producer.getEventHubProperties()).partitionIds);
  tell('partition', (await producer.getPartitionProperties('0')).isEmpty);
  await producer.close();
}

({ exchange, hub })[mode]().then(
  () => process.exit(0),
  (error) => {
    tell('failed', `${error.code} ${error.message}`);
    process.exit(0);
  },
);
