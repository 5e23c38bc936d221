//! Drives two links over a transport: hellos, configurations, and a loop that carries bytes between link and
//! connection.

use std::io;
use std::time::Instant;

use sdm_core::limits;
use sdm_core::link::{Link, LinkConfig, LinkError, LinkEvent};
use sdm_core::secure::{Hello, Role, SessionKey};
use sdm_core::transport::{ConnId, Transport};
use sdm_core::{Epoch, ServerId, SessionId};

use crate::transport::hosts::Hosts;

/// A link over a transport, as a member drives it.
pub(crate) struct Driven {
    pub(crate) link: Link,
    conn: ConnId,
    unsent: Vec<u8>,
    pub(crate) error: Option<LinkError>,
    pub(crate) closed: bool,
    pub(crate) events: Vec<LinkEvent>,
}

impl Driven {
    pub(crate) fn new(link: Link, conn: ConnId) -> Self {
        Self {
            link,
            conn,
            unsent: Vec::new(),
            error: None,
            closed: false,
            events: Vec::new(),
        }
    }

    pub(crate) fn drive(&mut self, transport: &mut dyn Transport) {
        let mut buf = [0; 65_536];
        while !self.closed && self.error.is_none() {
            match transport.recv(self.conn, &mut buf) {
                Ok(0) => self.closed = true,
                Ok(len) => {
                    self.error = self
                        .link
                        .handle_bytes(Instant::now(), &mut buf[..len])
                        .err()
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.closed = true,
            }
            while let Some(event) = self.link.poll_event() {
                self.events.push(event);
            }
        }
        while !self.unsent.is_empty() || self.link.poll_transmit(&mut self.unsent) {
            match transport.send(self.conn, &self.unsent) {
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(_) => break,
            }
        }
        if self.error.is_some() && !self.closed {
            self.closed = true;
            transport.close(self.conn);
        }
    }
}

pub(crate) fn hello(role: Role, id: u32, expect: Option<u32>) -> Hello {
    Hello {
        role,
        id: ServerId(id),
        expect: expect.map(ServerId),
        epoch: Epoch(1),
        incarnation: 0,
        build: "suite".to_owned(),
        features: 0,
    }
}

pub(crate) fn config(key: u8) -> LinkConfig {
    LinkConfig {
        // A member grants this to one child; a link begins with less.
        bulk_window_bytes: limits::BULK_WINDOW_BYTES,
        ..LinkConfig::new(SessionKey::from_bytes([key; 32]), SessionId([9; 8]))
    }
}

/// A parent at A and a child at B, over a connection.
pub(crate) fn links(hosts: &mut Hosts, key: u8) -> (Driven, Driven) {
    let (a, b) = hosts.connect();
    let now = Instant::now();
    let parent = Link::initiate(now, &config(key), hello(Role::Parent, 0, Some(1)));
    let child = Link::respond(now, &config(7), hello(Role::Child, 1, None));
    (Driven::new(parent, a), Driven::new(child, b))
}

pub(crate) fn drive_until(
    hosts: &mut Hosts,
    (parent, child): (&mut Driven, &mut Driven),
    mut done: impl FnMut(&mut Driven, &mut Driven) -> bool,
) {
    loop {
        parent.drive(&mut *hosts.a);
        child.drive(&mut *hosts.b);
        if done(parent, child) {
            return;
        }
        hosts.step();
    }
}
