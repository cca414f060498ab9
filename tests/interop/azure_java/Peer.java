import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The Java SDKs of Azure, as programs use them: `Peer CONNECTION_STRING ENDPOINT TRANSPORT WHAT...`
 * does one thing after the other, and prints a line for each: what came of it, or the exception.
 * TRANSPORT is AMQP or AMQP_WEB_SOCKETS. The JVM's trust store says which routers are trusted.
 *
 * WHAT is the name of a thing, an address and, for some, a text: `complete:orders`, `event:hub:text`.
 */
public class Peer {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final AmqpRetryOptions ONCE = new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(PATIENCE);

    private final String connectionString;
    private final String endpoint;
    private final AmqpTransportType transport;

    private Peer(String connectionString, String endpoint, AmqpTransportType transport) {
        this.connectionString = connectionString;
        this.endpoint = endpoint;
        this.transport = transport;
    }

    public static void main(String[] arguments) {
        Peer peer = new Peer(arguments[0], arguments[1], AmqpTransportType.valueOf(arguments[2]));
        for (String what : Arrays.asList(arguments).subList(3, arguments.length)) {
            try {
                String[] parts = what.split(":", 3);
                System.out.println(peer.act(parts[0], parts[1], parts.length < 3 ? "" : parts[2]));
            } catch (RuntimeException error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                System.out.println(cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
        }
        // threads of the SDKs go on
        System.exit(0);
    }

    private String act(String what, String address, String text) {
        switch (what) {
            case "complete":
            case "abandon":
            case "defer":
            case "dead-letter":
                return settle(what, address);
            case "again":
                return again(address);
            case "batch":
                try (ServiceBusSenderClient sender = bus().sender().queueName(address).buildClient()) {
                    sender.sendMessage(new ServiceBusMessage("alone"));
                    sender.sendMessages(List.of(new ServiceBusMessage("one"), new ServiceBusMessage("two")));
                    return "sent";
                }
            case "peek":
                try (ServiceBusReceiverClient receiver = bus().receiver().queueName(address).buildClient()) {
                    return "peeked: " + receiver.peekMessage();
                }
            case "properties":
                try (EventHubProducerClient producer = hub(address).buildProducerClient()) {
                    List<String> partitions = producer.getEventHubProperties().getPartitionIds().stream().toList();
                    return partitions + ", empty: " + producer.getPartitionProperties("0").isEmpty();
                }
            case "event":
                return produce(address, text);
            case "receive":
                return receive(address, Integer.parseInt(text));
            case "consume":
                return consume(address, EventPosition.fromOffsetString(text));
            default:
                throw new IllegalArgumentException(what);
        }
    }

    private ServiceBusClientBuilder bus() {
        return new ServiceBusClientBuilder()
                .connectionString(connectionString)
                .customEndpointAddress(endpoint)
                .transportType(transport)
                .retryOptions(ONCE);
    }

    private EventHubClientBuilder hub(String name) {
        return new EventHubClientBuilder()
                .connectionString(connectionString, name)
                .customEndpointAddress(endpoint)
                .transportType(transport)
                .retryOptions(ONCE);
    }

    /** Receive a message and settle it; a send ends with this outcome. */
    private String settle(String what, String address) {
        ServiceBusClientBuilder builder = bus();
        try (ServiceBusReceiverClient receiver =
                        builder.receiver().queueName(address).disableAutoComplete().buildClient();
                ServiceBusSenderClient sender = builder.sender().queueName(address).buildClient()) {
            CompletableFuture<Void> sent =
                    CompletableFuture.runAsync(() -> sender.sendMessage(new ServiceBusMessage("blue")));
            ServiceBusReceivedMessage message =
                    receiver.receiveMessages(1, PATIENCE).stream().findFirst().orElseThrow();
            switch (what) {
                case "abandon":
                    receiver.abandon(message);
                    break;
                case "defer":
                    receiver.defer(message);
                    break;
                case "dead-letter":
                    receiver.deadLetter(message, new DeadLetterOptions().setDeadLetterReason("too blue"));
                    break;
                default:
                    receiver.complete(message);
            }
            sent.join();
            return message.getBody().toString();
        }
    }

    /** One processor abandons a message, and another gets it. */
    private String again(String address) {
        Set<Integer> met = ConcurrentHashMap.newKeySet();
        Queue<Integer> came = new ConcurrentLinkedQueue<>();
        List<ServiceBusProcessorClient> processors = new ArrayList<>();
        ServiceBusClientBuilder builder = bus();
        for (int each = 0; each < 2; each++) {
            int number = each;
            // the router has no locks that could be renewed
            processors.add(builder.processor().queueName(address).disableAutoComplete().maxConcurrentCalls(2)
                    .maxAutoLockRenewDuration(Duration.ZERO)
                    .processMessage(context -> {
                        if (context.getMessage().getBody().toString().equals("warm")) {
                            met.add(number);
                            context.complete();
                        } else {
                            came.add(number);
                            if (came.size() == 1) {
                                context.abandon();
                            } else {
                                context.complete();
                            }
                        }
                    })
                    .processError(context -> System.err.println(context.getException()))
                    .buildProcessorClient());
        }
        try (ServiceBusSenderClient sender = builder.sender().queueName(address).buildClient()) {
            processors.forEach(ServiceBusProcessorClient::start);
            // both have room for one more then
            while (met.size() < 2) {
                sender.sendMessage(new ServiceBusMessage("warm"));
            }
            sender.sendMessage(new ServiceBusMessage("blue"));
            return came.size() + " deliveries to " + Set.copyOf(came).size() + " receivers";
        } finally {
            processors.forEach(ServiceBusProcessorClient::close);
        }
    }

    /** Complete so many messages; return their bodies. */
    private String receive(String address, int count) {
        List<String> bodies = new ArrayList<>();
        try (ServiceBusReceiverClient receiver =
                bus().receiver().queueName(address).disableAutoComplete().buildClient()) {
            while (bodies.size() < count) {
                for (ServiceBusReceivedMessage message : receiver.receiveMessages(count - bodies.size(), PATIENCE)) {
                    bodies.add(message.getBody().toString());
                    receiver.complete(message);
                }
            }
        }
        return String.join(", ", bodies);
    }

    /** Send an event alone, and then two more. */
    private String produce(String address, String text) {
        try (EventHubProducerClient producer = hub(address).buildProducerClient()) {
            producer.send(List.of(new EventData(text)));
            producer.send(List.of(new EventData("one"), new EventData("two")));
            return "sent";
        }
    }

    /** Return the first two events after a position. */
    private String consume(String address, EventPosition from) {
        try (EventHubConsumerClient consumer = hub(address).consumerGroup("$Default").buildConsumerClient()) {
            List<String> bodies = new ArrayList<>();
            for (PartitionEvent event : consumer.receiveFromPartition("0", 2, from, PATIENCE)) {
                bodies.add(event.getData().getBodyAsString() + "@" + event.getData().getOffsetString());
            }
            return String.join(", ", bodies);
        }
    }
}
