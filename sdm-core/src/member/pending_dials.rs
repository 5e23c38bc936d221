//! Connection attempts to members.

use std::time::Instant;

use super::{Member, Output, Peer};
use crate::dialer::{DialFailure, DialStep, Target};
use crate::ids::ServerId;
use crate::limits;
use crate::link::Link;
use crate::node::{ConnectRequest, LinkId};
use crate::secure::Role;
use crate::transport::ConnectionString;

impl Member {
    /// Handles the connection requested by [`Output::Dial`], which is established.
    pub fn handle_connected(&mut self, now: Instant, link: LinkId) {
        let Some(dialing) = self
            .dialing
            .iter_mut()
            .find(|dialing| dialing.link == Some(link))
        else {
            if !self.peers.contains_key(&link) {
                self.close(link);
            }
            return;
        };
        dialing.dialer.handle_connected(now);
        let (server, epoch) = (dialing.request.server, dialing.request.epoch);
        let hello = self.hello(Role::Parent, Some(server), epoch);
        let peer = Peer {
            link: Link::initiate(now, &self.config, hello),
            dialed: Some(server),
            known: false,
            owed: 0,
            window: limits::BULK_START_BYTES,
            due: None,
        };
        self.peers.insert(link, peer);
        self.after_link(now, link);
        self.drain_node(now);
    }

    /// Handles the failure of the connection requested by [`Output::Dial`].
    pub fn handle_connect_failed(&mut self, now: Instant, link: LinkId, error: &std::io::Error) {
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.link == Some(link));
        let Some(at) = found else { return };
        let dialing = &mut self.dialing[at];
        dialing.link = None;
        let server = dialing.request.server;
        let failure = if error.kind() == std::io::ErrorKind::ConnectionRefused {
            DialFailure::Refused(error.to_string())
        } else {
            DialFailure::NotReached(error.to_string())
        };
        dialing.dialer.handle_failure(now, failure);
        if dialing.dialer.is_refused(now) {
            let request = self.dialing.remove(at).request;
            let (host, places) = (&request.host, request.addresses.join(", "));
            let why = format!("{server} on {host} was lost: {error} at {places}");
            self.node.handle_unreachable(now, server, &why);
        } else {
            self.dial(now, server);
        }
        self.drain_node(now);
    }

    pub(super) fn dial(&mut self, now: Instant, server: ServerId) {
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.request.server == server);
        let Some(at) = found else { return };
        self.dialing[at].wake = None;
        loop {
            match self.dialing[at].dialer.poll(now) {
                DialStep::Connect(address) => {
                    let link = LinkId(self.next_link);
                    self.next_link += 1;
                    let old = self.dialing[at].link.replace(link);
                    self.drop_attempt(old);
                    self.outputs.push_back(Output::Dial { link, address });
                }
                DialStep::WaitUntil(wake) => {
                    self.dialing[at].wake = Some(wake);
                    return;
                }
                DialStep::GiveUp(why) => {
                    let dialing = self.dialing.remove(at);
                    self.drop_attempt(dialing.link);
                    if dialing.request.again && dialing.dialer.is_unanswered() {
                        self.node.handle_unanswered(now, server);
                    } else {
                        self.node.handle_unreachable(now, server, &why);
                    }
                    return;
                }
            }
        }
    }

    /// Records the port at which a child was found. If that port refuses later, the child is gone.
    pub(super) fn note_found(&mut self, link: LinkId) {
        let mut dialing = self.dialing.iter();
        if let Some(dialing) = dialing.find(|dialing| dialing.link == Some(link))
            && dialing.dialer.has_searched()
        {
            let place = dialing.dialer.reached();
            self.found.insert(dialing.request.server, place);
        }
    }

    pub(super) fn stop_dialing(&mut self, server: ServerId) {
        let found = self
            .dialing
            .iter()
            .position(|dialing| dialing.request.server == server);
        if let Some(at) = found {
            let dialing = self.dialing.remove(at);
            self.drop_attempt(dialing.link);
        }
    }

    /// Ends a connection attempt whose connection is not needed any more. `None`: no attempt is under way.
    pub(super) fn drop_attempt(&mut self, link: Option<LinkId>) {
        if let Some(link) = link {
            self.close(link);
        }
    }
}

/// The dialer's target for a request. Addresses that do not parse are skipped. `found` is the address at which an
/// earlier search over ports found the child; it replaces the announced addresses.
pub(super) fn target(
    now: Instant,
    request: &ConnectRequest,
    found: Option<&ConnectionString>,
) -> Target {
    let said = request.addresses.iter();
    let places = match found {
        Some(found) => vec![found.clone().into()],
        None => said.filter_map(|address| address.parse().ok()).collect(),
    };
    Target {
        server: request.server,
        host: request.host.clone(),
        places,
        deadline: now + request.pause + request.wait,
        pause: request.pause,
    }
}
