//! The debug manager of `line_protocol` with parts of its own: a merge rule with a state, a topology, and a transport
//! whose addresses `sdm-core` does not know. For `SET #TEXT` the largest of the answered numbers arrives.

#[path = "../line_protocol/main.rs"]
#[allow(dead_code)]
mod line_protocol;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use sdm_core::ServerId;
use sdm_core::aggregate::{Acc, Merge, Rejected};
use sdm_core::message::PlanEntry;
use sdm_core::node::Node;
use sdm_core::topology::{RoutingPolicy, Topology};
use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnId, ConnectionString, Transport, TransportEvent, Waker};
use sdm_idset::IdSet;

use line_protocol::{Outcome, Parts};

/// The largest number that this member has seen in all commands.
static SEEN: AtomicI64 = AtomicI64::new(i64::MIN);

/// Merge rule 1, which keeps the largest of the answered numbers. Its state is [`SEEN`].
struct Largest;

impl Merge for Largest {
    fn start(&self) -> Acc {
        Box::new(i64::MIN)
    }

    fn merge(&self, acc: &mut Acc, _: &IdSet, payload: &[u8]) -> Result<(), Rejected> {
        let text = std::str::from_utf8(payload).unwrap_or_default();
        let number: i64 = text.parse().map_err(|_| Rejected("not a number"))?;
        let largest: &mut i64 = acc.downcast_mut().expect("made by this rule");
        *largest = number.max(*largest);
        SEEN.fetch_max(number, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&self, acc: Acc, _: usize) -> Bytes {
        let largest: Box<i64> = acc.downcast().expect("made by this rule");
        largest.to_string().into()
    }
}

/// A topology: each server is the parent of the next.
#[derive(Debug)]
struct Chain;

impl RoutingPolicy for Chain {
    fn name(&self) -> &str {
        "chain"
    }

    fn parents(&self, _home: &str, servers: &[PlanEntry]) -> Vec<Option<usize>> {
        (0..servers.len()).map(|at| at.checked_sub(1)).collect()
    }
}

/// Prints a member's place in the tree: its parent, the tasks at or below it with the bytes of their set in a message, and
/// the child on the way to each. One write, as all members share the stream.
fn print_place(me: ServerId, node: &Node) {
    let all = IdSet::all_below(1000);
    let parent = node.parent().map(|parent| parent.to_string());
    let routes = node.route(&all).into_iter();
    let routes: String = routes
        .map(|(child, tasks)| format!(", {tasks} by {child}"))
        .collect();
    let (parent, reached) = (parent.unwrap_or_default(), node.reachable(&all));
    let bytes = reached.encoded_len(0);
    let text = format!("{me}: below {parent}, reaches {reached} ({bytes} bytes){routes}\n");
    eprint!("{text}");
}

/// A transport over TCP: `port://7000` is that port of this host's loopback.
struct Ports(TcpTransport);

/// The TCP address of a port; TCP refuses an address of another form.
fn inner(at: &ConnectionString) -> ConnectionString {
    let place = at.as_other().filter(|(scheme, _)| *scheme == "port");
    match place.and_then(|(_, port)| port.parse().ok()) {
        Some(port) => SocketAddr::from(([127, 0, 0, 1], port)).into(),
        None => at.clone(),
    }
}

impl Transport for Ports {
    fn listen(&mut self, at: &ConnectionString, tries: u16) -> io::Result<ConnectionString> {
        let port = self.0.listen(&inner(at), tries)?.port();
        ConnectionString::other("port", &port.to_string()).map_err(io::Error::other)
    }

    fn stop_listening(&mut self) {
        self.0.stop_listening();
    }

    fn connect(&mut self, to: &ConnectionString) -> ConnId {
        self.0.connect(&inner(to))
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(conn, bytes)
    }

    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize> {
        self.0.recv(conn, buf)
    }

    fn close(&mut self, conn: ConnId) {
        self.0.close(conn);
    }

    fn poll(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<TransportEvent>,
    ) -> io::Result<()> {
        self.0.poll(timeout, events)
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

fn main() -> Outcome<()> {
    let parts = Parts {
        transport: || TcpTransport::new().map(Ports),
        listen_at: "port://0",
        rules: |number, _| (number == 1).then(|| Box::new(Largest) as _),
        topology: Topology::Own(&Chain),
        at_end: print_place,
    };
    parts.run()?;
    // The members have not.
    if std::env::args()
        .nth(1)
        .is_some_and(|it| it.parse::<u32>().is_ok())
    {
        println!("largest of all: {}", SEEN.load(Ordering::Relaxed));
    }
    Ok(())
}
