//! The transport suite over reversed connections, which the other end makes.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use sdm_core::ServerId;
use sdm_core::transport::reversed::Reversed;
use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnectionString, Transport as _};

use crate::transport::driven::{config, drive_until, links};
use crate::transport::hosts::{Hosts, local};
use crate::transport::suite::transport_suite;

/// B calls at A's listener.
fn hosts_the_other_way_round() -> Hosts {
    let transport = || Reversed::new(TcpTransport::new().expect("an event loop"));
    let (mut a, mut b) = (transport(), transport());
    let listener = a.listen(&local(), 1).expect("listen");
    a.listen_for_callers(config(1));
    b.call(config(1), ServerId(3), vec![nobody(), listener]);
    Hosts::new(a, b, || ConnectionString::called(ServerId(3)))
}

/// An address without a listener.
fn nobody() -> ConnectionString {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("bound").into()
}

transport_suite!(
    reversed,
    super::hosts_the_other_way_round(),
    [
        bytes_pass_both_ways_and_are_followed_by_end_of_file,
        send_blocks_when_full_and_free_space_is_reported,
        waker_interrupts_poll_with_one_event,
        closed_connection_reports_no_further_event,
        link_delivers_hello_and_message,
        wrong_session_key_is_reported_at_both_ends,
        ten_megabytes_of_output_arrive_under_flow_control,
        control_messages_overtake_blocked_bulk_data,
    ]
);

/// Strangers at a listener are kept for a while, and closed for newer ones.
#[test]
fn unauthenticated_connections_do_not_block_reversed_links() {
    let mut hosts = hosts_the_other_way_round();
    let listener = hosts.a.listen(&local(), 1).expect("listen");
    let at = listener.socket_addr().expect("tcp");
    let strangers: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(at).expect("it listens");
            let said = if number % 2 == 0 {
                &[b'S'; 56][..]
            } else {
                b"SDMC"
            };
            stream.write_all(said).expect("it has room");
            // The kernel's backlog is short, so each connection is accepted at once.
            hosts.step();
            stream
        })
        .collect();
    let (mut parent, mut child) = links(&mut hosts, 7);
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        parent.link.is_up() && child.link.is_up()
    });
    drop(strangers);
}
