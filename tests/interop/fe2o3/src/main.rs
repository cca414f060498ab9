//! Send messages with fe2o3-amqp, one at a time, and receive them, and tell how long each took.
//!
//!     fe2o3-peer URL COUNT OCTETS [CREDIT]    through what listens at URL: a router, or a broker
//!     fe2o3-peer own COUNT OCTETS             to a listener of the library's own
//!
//! The receiver grants 200 messages at a time, as is the library's way, or CREDIT. The sender and the receiver are a thread and a connection each.

use std::sync::mpsc;
use std::time::Instant;
use std::{env, fs, io, thread};

use fe2o3_amqp::acceptor::{ConnectionAcceptor, LinkAcceptor, LinkEndpoint, SessionAcceptor};
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::{Body, Data, Message};
use fe2o3_amqp::types::primitives::{Binary, Value};
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use tokio::net::TcpListener;
use tokio::runtime;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ADDRESS: &str = "fe2o3";

fn main() -> Result<(), Failure> {
    let words: Vec<String> = env::args().collect();
    let (url, count, octets, credit) = match &words[1..] {
        [url, count, octets] => (url, count, octets, "200"),
        [url, count, octets, credit] => (url, count, octets, credit.as_str()),
        _ => return Err("usage: fe2o3-peer URL|own COUNT OCTETS [CREDIT]".into()),
    };
    let (count, octets, credit) = (count.parse()?, octets.parse()?, credit.parse()?);
    let (url, own) = (url.clone(), url == "own");
    // where to send, once the receiver is attached
    let (ready, is_ready) = mpsc::channel();
    let receiver = thread::spawn(move || {
        if own {
            on_its_own(listen(count, ready))
        } else {
            on_its_own(receive(url, count, credit, ready))
        }
    });
    let Ok(url) = is_ready.recv() else {
        return receiver.join().unwrap();
    };
    on_its_own(send(url, count, octets))?;
    receiver.join().unwrap()
}

fn on_its_own(work: impl std::future::Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

async fn send(url: String, count: usize, octets: usize) -> Result<(), Failure> {
    let started = Instant::now();
    let mut connection = Connection::open("fe2o3-sender", url.as_str()).await?;
    let opened = started.elapsed();
    let mut session = Session::begin(&mut connection).await?;
    let mut sender = Sender::attach(&mut session, "sender", ADDRESS).await?;
    let attached = started.elapsed() - opened;

    let mut times = Vec::new();
    let started = Instant::now();
    for _ in 0..count {
        let message = Message::builder()
            .data(Data(Binary::from(vec![b'x'; octets])))
            .build();
        let began = Instant::now();
        sender.send(message).await?.accepted_or("not accepted")?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let total = started.elapsed();
    let started = Instant::now();
    // what it took is told all the same
    let end = close(sender, &mut session, &mut connection).await;
    let closed = started.elapsed();

    times.sort_by(f64::total_cmp);
    println!(
        "{count} of {octets}: median {:.2} ms, longest {:.2} ms, all {:.2} s; \
         open {:.0} ms, attach {:.0} ms, close {:.0} ms; sender's processor {:.2} s",
        times[count / 2],
        times[count - 1],
        total.as_secs_f64(),
        opened.as_secs_f64() * 1e3,
        attached.as_secs_f64() * 1e3,
        closed.as_secs_f64() * 1e3,
        processor_s()?,
    );
    end
}

async fn close(
    sender: Sender,
    session: &mut SessionHandle<()>,
    connection: &mut ConnectionHandle<()>,
) -> Result<(), Failure> {
    sender.close().await?;
    session.end().await?;
    connection.close().await?;
    Ok(())
}

async fn receive(
    url: String,
    count: usize,
    credit: u32,
    ready: mpsc::Sender<String>,
) -> Result<(), Failure> {
    let mut connection = Connection::open("fe2o3-receiver", url.as_str()).await?;
    let mut session = Session::begin(&mut connection).await?;
    let mut receiver = Receiver::builder()
        .name("receiver")
        .source(ADDRESS)
        .credit_mode(CreditMode::Auto(credit))
        .attach(&mut session)
        .await?;
    ready.send(url)?;
    take(&mut receiver, count).await?;
    let started = Instant::now();
    receiver.close().await?;
    session.end().await?;
    connection.close().await?;
    println!(
        "receiver's processor {:.2} s, close {:.0} ms",
        processor_s()?,
        started.elapsed().as_secs_f64() * 1e3
    );
    Ok(())
}

async fn listen(count: usize, ready: mpsc::Sender<String>) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    ready.send(format!("amqp://{}", listener.local_addr()?))?;
    let (stream, _) = listener.accept().await?;
    let mut connection = ConnectionAcceptor::new("fe2o3-listener")
        .accept(stream)
        .await?;
    let mut session = SessionAcceptor::new().accept(&mut connection).await?;
    let LinkEndpoint::Receiver(mut receiver) = LinkAcceptor::new().accept(&mut session).await?
    else {
        return Err("the peer has no sender".into());
    };
    take(&mut receiver, count).await?;
    // the peer closes
    let _ = connection.on_close().await;
    println!("listener's processor {:.2} s", processor_s()?);
    Ok(())
}

async fn take(receiver: &mut Receiver, count: usize) -> Result<(), Failure> {
    for _ in 0..count {
        let delivery = receiver.recv::<Body<Value>>().await?;
        receiver.accept(&delivery).await?;
    }
    Ok(())
}

/// How long this thread has been on a processor.
fn processor_s() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let spent: f64 = text
        .split(' ')
        .next()
        .unwrap_or("")
        .parse()
        .unwrap_or(f64::NAN);
    Ok(spent / 1e9)
}
