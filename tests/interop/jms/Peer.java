import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Qpid JMS, as programs use it: `Peer URL ADDRESS WHAT...` does one thing after the other, each on a
 * session of its own, and prints a line for each: what came of it, or the exception.
 *
 *     java -cp '.jms/*' tests/interop/jms/Peer.java amqp://127.0.0.1:5672 orders selector browse
 */
public class Peer {
    /** For a message that comes. */
    private static final long PATIENCE_MS = 20_000;
    /** For one that does not: a drain answers at once that there is none. */
    private static final long MOMENT_MS = 1;

    private final Connection connection;
    private final String address;

    private Peer(Connection connection, String address) {
        this.connection = connection;
        this.address = address;
    }

    public static void main(String[] arguments) throws JMSException {
        // a synchronous send waits for the consumer's outcome, which the same thread would have to give
        String separator = arguments[0].contains("?") ? "&" : "?";
        JmsConnectionFactory factory = new JmsConnectionFactory(arguments[0] + separator + "jms.forceAsyncSend=true");
        try (Connection connection = factory.createConnection()) {
            connection.setClientID("jms-peer");
            connection.start();
            Peer peer = new Peer(connection, arguments[1]);
            for (String what : Arrays.asList(arguments).subList(2, arguments.length)) {
                try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
                    System.out.println(peer.act(what, session));
                } catch (JMSException error) {
                    System.out.println(error.getClass().getSimpleName() + ": " + error.getMessage());
                }
            }
        }
    }

    private String act(String what, Session session) throws JMSException {
        Queue queue = session.createQueue(address);
        Topic topic = session.createTopic(address);
        switch (what) {
            case "queue":
                return exchange(session, session.createProducer(queue), session.createConsumer(queue));
            case "topic":
                return exchange(
                        session, session.createProducer(topic), session.createConsumer(topic), session.createConsumer(topic));
            case "selector":
                return exchange(session, session.createProducer(queue), session.createConsumer(queue, "colour = 'red'"));
            case "no-local":
                return exchange(session, session.createProducer(topic), session.createConsumer(topic, null, true));
            case "browse":
                return "browsed: " + session.createBrowser(queue).getEnumeration().hasMoreElements();
            case "durable":
                return exchange(session, session.createProducer(topic), session.createDurableSubscriber(topic, "durable"));
            case "temporary-topic":
                TemporaryTopic temporary = session.createTemporaryTopic();
                return exchange(
                        session,
                        session.createProducer(temporary),
                        session.createConsumer(temporary),
                        session.createConsumer(temporary));
            case "transaction":
                try (Session transacted = connection.createSession(true, Session.SESSION_TRANSACTED)) {
                    return "transacted: " + transacted.getTransacted();
                }
            default:
                throw new IllegalArgumentException(what);
        }
    }

    /** Send a message, and tell what each consumer gets, with nothing after it. */
    private static String exchange(Session session, MessageProducer producer, MessageConsumer... consumers)
            throws JMSException {
        TextMessage sent = session.createTextMessage("blue");
        sent.setStringProperty("colour", "blue");
        producer.send(sent);
        List<String> received = new ArrayList<>();
        for (MessageConsumer consumer : consumers) {
            Message first = consumer.receive(PATIENCE_MS);
            received.add(first == null ? "nothing" : first.getBody(String.class));
            if (consumer.receive(MOMENT_MS) != null) {
                received.add("one more");
            }
        }
        return String.join(", ", received);
    }
}
