//! Passes the answers to a finished group of commands to the function that handles their purpose.

use super::{
    breakpoints, deferred_requests, disconnect, evaluation, frames, goto, multi_client, prompt,
    queries, restart, run_control, startup, stopped_events, variables,
};
use crate::connection::{Connection, Phase};
use crate::jobs::{Job, Purpose};

pub(super) fn finish_job(connection: &mut Connection, job: Job) {
    let Job {
        purpose, answers, ..
    } = job;
    match purpose {
        Purpose::Begin => {
            startup::finish_begin(connection, &answers);
            if connection.is_restarting() {
                restart::reinsert(connection);
            } else if connection.phase == Phase::Configuring {
                deferred_requests::begin(connection);
            }
        }
        Purpose::Run { said, before } => {
            run_control::finish_run(connection, said, &before, &answers);
        }
        Purpose::Foreign(before) => multi_client::finish_foreign(connection, &before, &answers),
        Purpose::Console(command) => {
            prompt::finish_command(connection, &command, &answers);
        }
        Purpose::Goto { before, number } => {
            goto::finish_goto(connection, (&before, number), &answers);
        }
        Purpose::Reinsert(numbers) => {
            restart::finish_reinsert(connection, &numbers, &answers);
            deferred_requests::go_on(connection);
        }
        Purpose::Frames { request, listing } => {
            frames::finish_frames(connection, &request, &listing, &answers);
        }
        Purpose::Stacks => stopped_events::finish_stacks(connection, &answers),
        Purpose::Interrupt => run_control::finish_interrupt(connection, &answers),
        Purpose::Kill => disconnect::finish_kill(connection, &answers),
        Purpose::Detach => disconnect::finish_detach(connection, &answers),
        Purpose::Points {
            request,
            group,
            numbers,
            asked,
        } => breakpoints::finish_points(connection, &request, &group, (&numbers, &asked), &answers),
        Purpose::Elsewhere { group, unanswered } => {
            breakpoints::finish_elsewhere(connection, &group, unanswered, &answers);
        }
        Purpose::Scope { request, scope } => {
            variables::finish_scope(connection, &request, &scope, &answers)
        }
        Purpose::Types { request, listed } => {
            variables::finish_types(connection, &request, *listed, &answers)
        }
        Purpose::Parts {
            request,
            object,
            from,
            whole,
        } => {
            variables::finish_parts(connection, &request, (&object, from), &whole, &answers);
        }
        Purpose::Evaluate {
            request,
            expression,
            frame,
        } => {
            evaluation::finish_evaluate(connection, &request, &expression, frame.as_ref(), &answers)
        }
        Purpose::Ask { request, question } => {
            queries::finish_ask(connection, &request, &question, &answers);
        }
        Purpose::Nothing => {}
    }
}
