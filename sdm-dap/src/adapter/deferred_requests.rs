//! Breakpoint requests that arrive before the programs are at `main`.
//!
//! A client gets `initialized` at once, and sets its breakpoints while the ranks start. These requests wait for the
//! ranks, so that the answer has the location of each. They do not wait long, as clients abandon requests without an
//! answer.

use serde_json::{Value, json};

use super::{breakpoints, requests, restart, startup};
use crate::connection::{Connection, Phase};

/// Answers requests that have waited for long: breakpoint requests and `configurationDone`. The response to a
/// breakpoint request has the numbers of the breakpoints, and the client gets their locations later.
pub(super) fn settle(connection: &mut Connection) {
    if connection.phase != Phase::Beginning {
        return;
    }
    while connection
        .anew
        .beforehand
        .due()
        .is_some_and(|due| due <= connection.now)
    {
        let Some((_, request)) = connection.anew.beforehand.waiting.pop_front() else {
            return;
        };
        if request.command == "configurationDone" {
            connection.anew.beforehand.configured = true;
            connection.write(request.response(Value::Null));
            continue;
        }
        match breakpoints::set_any(connection, &request) {
            Ok(Some(body)) => connection.write(request.response(body)),
            Ok(None) => {}
            Err(why) => connection.write(request.refusal(&why)),
        }
    }
}

/// Continues a start once the programs are at `main` for the first time: sets the breakpoints to which the client has
/// been given numbers.
pub(super) fn begin(connection: &mut Connection) {
    if connection.points.are_none() {
        go_on(connection);
    } else {
        restart::reinsert(connection);
    }
}

/// Carries out the waiting requests.
pub(super) fn go_on(connection: &mut Connection) {
    if std::mem::take(&mut connection.anew.beforehand.configured) {
        connection.phase = Phase::Live;
        // The client may have asked for the threads before there were any.
        let ids: Vec<i64> = connection.rows.iter().map(|row| row.id).collect();
        for id in ids {
            connection.event("thread", json!({"reason": "started", "threadId": id}));
        }
        startup::set_off(connection);
    }
    for request in connection.anew.beforehand.take() {
        requests::handle_request(connection, request);
    }
}
