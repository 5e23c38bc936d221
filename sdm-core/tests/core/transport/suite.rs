//! The transport suite: requirements of a transport, and of links over it.

use std::io;

use sdm_core::link::{LinkError, LinkEvent};
use sdm_core::message::{Lane, Message};
use sdm_core::transport::{ConnId, TransportEvent};
use sdm_core::{CommandId, ServerId};
use sdm_idset::IdSet;

use crate::common::{output, plain_command};
use crate::transport::driven::{drive_until, links};
use crate::transport::hosts::{Hosts, PATIENCE, drain, is, is_blocked};

pub(crate) fn refused_connection_is_reported_by_an_event(mut hosts: Hosts) {
    let at = hosts.b.listen(&(hosts.place)(), 1).expect("listen");
    hosts.b.stop_listening();
    let conn = hosts.a.connect(&at);
    let kind = hosts.until_a(|event| match event {
        TransportEvent::ConnectFailed { conn: c, error } if *c == conn => Some(error.kind()),
        _ => None,
    });
    assert_eq!(kind, io::ErrorKind::ConnectionRefused);
    assert!(hosts.a.send(conn, b"x").is_err());
}

pub(crate) fn bytes_pass_both_ways_and_are_followed_by_end_of_file(mut hosts: Hosts) {
    let (a, b) = hosts.connect();
    let mut buf = [0; 10];
    assert!(is_blocked(&hosts.b.recv(b, &mut buf)));
    assert_eq!(hosts.a.send(a, b"hello").expect("send"), 5);
    hosts.until_b(|event| is(matches!(event, TransportEvent::Readable(c) if *c == b)));
    assert_eq!(drain(&mut *hosts.b, b), (b"hello".to_vec(), false));
    assert_eq!(hosts.b.send(b, b"bye").expect("send"), 3);
    hosts.b.close(b);
    let mut got = Vec::new();
    loop {
        hosts.until_a(|event| is(matches!(event, TransportEvent::Readable(c) if *c == a)));
        let (bytes, ended) = drain(&mut *hosts.a, a);
        got.extend(bytes);
        if ended {
            break;
        }
    }
    assert_eq!(got, b"bye");
    hosts.a.close(a);
    assert!(hosts.a.recv(a, &mut buf).is_err());
    assert!(hosts.a.send(a, b"x").is_err());
}

pub(crate) fn send_blocks_when_full_and_free_space_is_reported(mut hosts: Hosts) {
    let (a, b) = hosts.connect();
    let chunk = vec![1; 10_000];
    let (mut sent, mut received) = (0, 0);
    for _ in 0..3 {
        // A report of room before the block means nothing. A report after it counts although B has read nothing yet:
        // the kernel may pass bytes on, and reports the room only once.
        hosts.seen_a.clear();
        loop {
            match hosts.a.send(a, &chunk) {
                Ok(len) => sent += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        loop {
            received += drain(&mut *hosts.b, b).0.len();
            let writable = |e: &TransportEvent| matches!(e, TransportEvent::Writable(c) if *c == a);
            if hosts.seen_a.iter().any(writable) {
                break;
            }
            hosts.step();
        }
    }
    while received < sent {
        received += drain(&mut *hosts.b, b).0.len();
        hosts.step();
    }
    assert_eq!(received, sent);
}

pub(crate) fn listener_takes_the_next_port_if_one_is_in_use(mut hosts: Hosts) {
    let first = hosts.a.listen(&(hosts.place)(), 1).expect("listen");
    let error = hosts.b.listen(&first, 1).expect_err("taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&first.to_string()), "{error}");
    let second = hosts.b.listen(&first, 1000).expect("listen");
    assert_ne!(second, first);
    // The new address really has a listener.
    let conn = hosts.a.connect(&second);
    hosts.until_a(|event| is(matches!(event, TransportEvent::Connected(c) if *c == conn)));
}

pub(crate) fn three_hundred_simultaneous_connections_are_accepted(mut hosts: Hosts) {
    let at = hosts.b.listen(&(hosts.place)(), 1).expect("listen");
    let conns: Vec<ConnId> = (0..300).map(|_| hosts.a.connect(&at)).collect();
    let mut accepted = Vec::new();
    for _ in &conns {
        hosts.until_a(|event| is(matches!(event, TransportEvent::Connected(_))));
        accepted.push(hosts.until_b(|event| match event {
            TransportEvent::Accepted { conn, .. } => Some(*conn),
            _ => None,
        }));
    }
    accepted.sort_unstable();
    accepted.dedup();
    assert_eq!(accepted.len(), conns.len());
    for conn in conns {
        hosts.a.send(conn, b"x").expect("send");
    }
    for conn in accepted {
        hosts.until_b(|event| is(matches!(event, TransportEvent::Readable(c) if *c == conn)));
    }
}

pub(crate) fn waker_interrupts_poll_with_one_event(mut hosts: Hosts) {
    let waker = hosts.a.waker();
    let thread = std::thread::spawn({
        let waker = waker.clone();
        move || waker.wake()
    });
    let mut events = Vec::new();
    while events.is_empty() {
        hosts.a.poll(Some(PATIENCE), &mut events).expect("poll");
    }
    assert!(matches!(events[..], [TransportEvent::Woken]), "{events:?}");
    thread.join().expect("the thread ends");
    // Several wakes before a poll give one event, and a waker may outlive its transport.
    waker.wake();
    waker.wake();
    events.clear();
    hosts.a.poll(Some(PATIENCE), &mut events).expect("poll");
    assert_eq!(events.len(), 1);
    drop(hosts);
    waker.wake();
}

pub(crate) fn closed_connection_reports_no_further_event(mut hosts: Hosts) {
    let (a, b) = hosts.connect();
    hosts.a.send(a, b"x").expect("send");
    hosts.b.close(b);
    hosts.b.close(b);
    hosts.until_a(|event| is(matches!(event, TransportEvent::Readable(c) if *c == a)));
    hosts.step();
    let of_b = |event: &TransportEvent| matches!(event, TransportEvent::Readable(c) | TransportEvent::Writable(c) if *c == b);
    hosts.seen_b.clear();
    hosts.step();
    assert!(!hosts.seen_b.iter().any(of_b));
}

pub(crate) fn link_delivers_hello_and_message(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 7);
    let command = plain_command(1, IdSet::all_below(1000), &b"print x"[..]);
    parent.link.send(&command).expect("queued before it is up");
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        parent.link.is_up() && child.events.len() == 2
    });
    assert!(matches!(&child.events[0], LinkEvent::Up(hello) if hello.id == ServerId(0)));
    let message = LinkEvent::Message {
        message: command,
        bulk_bytes: 0,
    };
    assert_eq!(child.events[1], message);
}

pub(crate) fn wrong_session_key_is_reported_at_both_ends(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 8);
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        parent.error.is_some() && child.error.is_some()
    });
    assert_eq!(parent.error, Some(LinkError::WrongKey));
    assert_eq!(child.error, Some(LinkError::WrongKey));
    assert!(parent.events.is_empty() && child.events.is_empty());
}

pub(crate) fn ten_megabytes_of_output_arrive_under_flow_control(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 7);
    let chunk: Vec<u8> = (0..32_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let total = 10_000_000 / chunk.len();
    let (mut sent, mut received, mut controls) = (0, 0, 0);
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, child| {
        // As a server does: it produces no more while much is waiting.
        while sent < total && child.link.bulk_backlog() < 4 * chunk.len() {
            child.link.send(&output(1, chunk.clone())).expect("up");
            sent += 1;
            if sent % 50 == 0 {
                child
                    .link
                    .send(&Message::Cancel(CommandId(sent as u64)))
                    .expect("up");
            }
        }
        for event in parent.events.drain(..) {
            let LinkEvent::Message {
                message,
                bulk_bytes,
            } = event
            else {
                continue;
            };
            match message {
                Message::Event(event) => {
                    assert_eq!(event.blocks[0].payload, chunk);
                    received += 1;
                }
                _ => controls += 1,
            }
            parent.link.release(bulk_bytes);
        }
        received == total
    });
    assert_eq!(controls, total / 50);
}

pub(crate) fn control_messages_overtake_blocked_bulk_data(mut hosts: Hosts) {
    let (mut parent, mut child) = links(&mut hosts, 7);
    for _ in 0..100 {
        child
            .link
            .send(&output(1, vec![0; 32_000]))
            .expect("queued");
    }
    child
        .link
        .send(&Message::Cancel(CommandId(1)))
        .expect("queued");
    let is_control = |event: &LinkEvent| matches!(event, LinkEvent::Message { message, .. } if message.lane() == Lane::Control);
    // The parent never releases anything.
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, _| {
        parent.events.iter().any(is_control)
    });
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, _| {
        parent.events.len() >= 9
    });
    assert!(is_control(&parent.events[1]), "control went first");
    child.link.send(&Message::Cancel(CommandId(2))).expect("up");
    drive_until(&mut hosts, (&mut parent, &mut child), |parent, _| {
        parent
            .events
            .iter()
            .filter(|event| is_control(event))
            .count()
            == 2
    });
    assert!(child.link.bulk_backlog() > 80 * 32_000);
    let bulk = parent.events.len() - 3;
    assert!(bulk <= 9, "a window and one frame: {bulk}");
}

macro_rules! transport_suite {
    ($name:ident, $hosts:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            $(#[test]
            fn $test() {
                crate::transport::suite::$test($hosts);
            })*
        }
    };
}

macro_rules! suite_over {
    ($name:ident, $hosts:expr) => {
        $crate::transport::suite::transport_suite!(
            $name,
            $hosts,
            [
                refused_connection_is_reported_by_an_event,
                bytes_pass_both_ways_and_are_followed_by_end_of_file,
                send_blocks_when_full_and_free_space_is_reported,
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
    };
}

pub(crate) use {suite_over, transport_suite};
