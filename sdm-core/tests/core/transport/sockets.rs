//! The transport suite over sockets of every kind: TCP, shaped TCP, and Unix sockets with and without a file.

use sdm_core::ids::ServerId;
use sdm_core::link::LinkConfig;
use sdm_core::secure::{SessionKey, draw_session_id};
use sdm_core::transport::ConnectionString;
use sdm_core::transport::shaped_socket::Shaped;
use sdm_core::transport::tcp::TcpTransport;

use crate::transport::hosts::{Hosts, local};
use crate::transport::suite::{suite_over, transport_suite};

fn hosts_with_sockets(place: fn() -> ConnectionString) -> Hosts {
    let transport = || TcpTransport::new().expect("an event loop");
    Hosts::new(transport(), transport(), place)
}

suite_over!(
    tcp,
    super::hosts_with_sockets(crate::transport::hosts::local)
);

/// Hosts whose connecting end is slowed down in both directions.
fn shaped_hosts() -> Hosts {
    let transport = || TcpTransport::new().expect("an event loop");
    let mut shaped = Shaped::new(transport());
    let shape = "latency_us=2000,bandwidth=20000000".parse().expect("one");
    shaped.set_shape(shape).expect("a timer");
    Hosts::new(shaped, transport(), local)
}

// Room appears by time alone, so a report of room cannot be told from an earlier report.
transport_suite!(
    shaped,
    super::shaped_hosts(),
    [
        refused_connection_is_reported_by_an_event,
        bytes_pass_both_ways_and_are_followed_by_end_of_file,
        listener_takes_the_next_port_if_one_is_in_use,
        three_hundred_simultaneous_connections_are_accepted,
        waker_interrupts_poll_with_one_event,
        closed_connection_reports_no_further_event,
        link_delivers_hello_and_message,
        wrong_session_key_is_reported_at_both_ends,
        ten_megabytes_of_output_arrive_under_flow_control,
        control_messages_overtake_blocked_bulk_data,
    ]
);

fn local_v6() -> ConnectionString {
    ConnectionString::tcp("::1", 0).expect("an address")
}

suite_over!(tcp_v6, super::hosts_with_sockets(super::local_v6));

/// A path that no test of this or another process uses.
fn fresh_path() -> ConnectionString {
    use std::sync::atomic::{AtomicU32, Ordering};
    static USED: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "sdm-transport-{}-{}",
        std::process::id(),
        USED.fetch_add(1, Ordering::Relaxed)
    );
    ConnectionString::try_from(std::env::temp_dir().join(name)).expect("a path")
}

suite_over!(unix, super::hosts_with_sockets(super::fresh_path));

/// A session of this process alone, so that its socket names are unique.
fn session() -> &'static LinkConfig {
    use std::sync::OnceLock;
    static SESSION: OnceLock<LinkConfig> = OnceLock::new();
    SESSION.get_or_init(|| {
        let key = SessionKey::draw().expect("random bytes");
        LinkConfig::new(key, draw_session_id().expect("random bytes"))
    })
}

fn fresh_member() -> ConnectionString {
    use std::sync::atomic::{AtomicU32, Ordering};
    static USED: AtomicU32 = AtomicU32::new(0);
    ConnectionString::local(ServerId(USED.fetch_add(1, Ordering::Relaxed)))
}

fn hosts_without_files() -> Hosts {
    let transport = || {
        let mut transport = TcpTransport::new().expect("an event loop");
        transport.set_session(session());
        transport
    };
    Hosts::new(transport(), transport(), fresh_member)
}

// A name that is taken has no next one.
transport_suite!(
    without_files,
    super::hosts_without_files(),
    [
        refused_connection_is_reported_by_an_event,
        bytes_pass_both_ways_and_are_followed_by_end_of_file,
        send_blocks_when_full_and_free_space_is_reported,
        three_hundred_simultaneous_connections_are_accepted,
        waker_interrupts_poll_with_one_event,
        closed_connection_reports_no_further_event,
        link_delivers_hello_and_message,
        wrong_session_key_is_reported_at_both_ends,
        ten_megabytes_of_output_arrive_under_flow_control,
        control_messages_overtake_blocked_bulk_data,
    ]
);
