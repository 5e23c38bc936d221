//! A transport that is implemented outside of `sdm-core`, with addresses of its own: it counts the bytes that a network in
//! memory carries.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sdm_core::transport::mem::{MemNetwork, MemTransport};
use sdm_core::transport::{ConnId, ConnectionString, Transport, TransportEvent, Waker};

use super::hosts::Hosts;
use super::suite;

struct Counting {
    inner: MemTransport,
    bytes: Arc<AtomicUsize>,
    wakes: Arc<AtomicUsize>,
}

impl Transport for Counting {
    fn listen(&mut self, at: &ConnectionString, port_tries: u16) -> io::Result<ConnectionString> {
        let (scheme, place) = at.as_other().expect("an address of this transport");
        assert_eq!((scheme, place), ("counted", "a place, of any form"));
        self.inner.listen(at, port_tries)
    }

    fn stop_listening(&mut self) {
        self.inner.stop_listening();
    }

    fn connect(&mut self, to: &ConnectionString) -> ConnId {
        self.inner.connect(to)
    }

    fn send(&mut self, conn: ConnId, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.send(conn, bytes)?;
        self.bytes.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }

    fn recv(&mut self, conn: ConnId, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.recv(conn, buf)
    }

    fn close(&mut self, conn: ConnId) {
        self.inner.close(conn);
    }

    fn poll(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<TransportEvent>,
    ) -> io::Result<()> {
        self.inner.poll(timeout, events)
    }

    fn waker(&self) -> Waker {
        let (inner, wakes) = (self.inner.waker(), Arc::clone(&self.wakes));
        Waker::new(move || {
            wakes.fetch_add(1, Ordering::Relaxed);
            inner.wake();
        })
    }
}

fn counted() -> ConnectionString {
    let address = ConnectionString::other("counted", "a place, of any form");
    address.expect("an address of another transport")
}

#[test]
fn transport_from_another_crate_carries_a_link_and_a_waker() {
    let (bytes, wakes) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let hosts = || {
        let network = MemNetwork::new();
        let host = || Counting {
            inner: network.transport(),
            bytes: Arc::clone(&bytes),
            wakes: Arc::clone(&wakes),
        };
        Hosts::new(host(), host(), counted)
    };
    suite::link_delivers_hello_and_message(hosts());
    assert!(bytes.load(Ordering::Relaxed) > 0);
    suite::waker_interrupts_poll_with_one_event(hosts());
    assert_eq!(wakes.load(Ordering::Relaxed), 4);
}
