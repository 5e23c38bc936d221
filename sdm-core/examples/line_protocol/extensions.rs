//! Extensions of `sdm-core` by the example: merge rules with a state, a topology, and a transport whose addresses
//! `sdm-core` does not know.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use sdm_core::ServerId;
use sdm_core::aggregate::{Acc, Merge, Rejected};
use sdm_core::message::PlanEntry;
use sdm_core::node::Node;
use sdm_core::topology::RoutingPolicy;
use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnId, ConnectionString, Transport, TransportEvent, Waker};
use sdm_idset::IdSet;

/// Returns the merge rules of the protocol by number: 1 is [`Largest`], which shares `seen` between all commands.
pub(crate) fn rules(
    seen: &Arc<AtomicI64>,
) -> impl Fn(u16, &[u8]) -> Option<Box<dyn Merge>> + use<> {
    let seen = Arc::clone(seen);
    move |number, _| (number == 1).then(|| Box::new(Largest(Arc::clone(&seen))) as _)
}

/// Merge rule that keeps the largest of the answered numbers. Its state is the largest number that this member has seen
/// in all commands.
struct Largest(Arc<AtomicI64>);

impl Merge for Largest {
    fn start(&self) -> Acc {
        Box::new(i64::MIN)
    }

    fn merge(&self, acc: &mut Acc, _: &IdSet, payload: &[u8]) -> Result<(), Rejected> {
        let text = std::str::from_utf8(payload).unwrap_or_default();
        let number: i64 = text.parse().map_err(|_| Rejected("not a number"))?;
        let largest: &mut i64 = acc.downcast_mut().expect("made by this rule");
        *largest = number.max(*largest);
        self.0.fetch_max(number, Ordering::Relaxed);
        Ok(())
    }

    fn finish(&self, acc: Acc, _: usize) -> Bytes {
        let largest: Box<i64> = acc.downcast().expect("made by this rule");
        largest.to_string().into()
    }
}

/// A topology: each server is the parent of the next.
#[derive(Debug)]
pub(crate) struct Chain;

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
pub(crate) fn print_place(me: ServerId, node: &Node) -> io::Result<()> {
    let all = IdSet::all_below(1000);
    let parent = node.parent().map(|parent| parent.to_string());
    let routes = node.route(&all).into_iter();
    let routes: String = routes
        .map(|(child, tasks)| format!(", {tasks} by {child}"))
        .collect();
    let (parent, reached) = (parent.unwrap_or_default(), node.reachable(&all));
    let bytes = reached.encoded_len(0);
    let text = format!("{me}: below {parent}, reaches {reached} ({bytes} bytes){routes}\n");
    io::stderr().write_all(text.as_bytes())
}

/// A transport over TCP: `port://7000` is that port of this host's loopback.
pub(crate) struct Ports(pub(crate) TcpTransport);

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
