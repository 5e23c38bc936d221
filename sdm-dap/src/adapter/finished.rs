//! What is done once commands have been answered.

use super::{asking, begin, end, looking, moving, pointing, stopping};
use crate::connection::Connection;
use crate::jobs::{Job, Purpose};

pub(super) fn finish_job(connection: &mut Connection, job: Job) {
    let Job {
        purpose, answers, ..
    } = job;
    match purpose {
        Purpose::Begin => begin::finish_begin(connection, &answers),
        Purpose::Run { said, before } => moving::finish_run(connection, said, &before, &answers),
        Purpose::Stacks => stopping::finish_stacks(connection, &answers),
        Purpose::Interrupt => moving::finish_interrupt(connection, &answers),
        Purpose::Kill => end::finish_kill(connection, &answers),
        Purpose::Detach => end::finish_detach(connection, &answers),
        Purpose::Points {
            request,
            group,
            inserted,
            asked,
        } => pointing::finish_points(connection, &request, &group, (&inserted, &asked), &answers),
        Purpose::Scope { request, frame } => {
            looking::finish_scope(connection, &request, &frame, &answers)
        }
        Purpose::Parts { request, object } => {
            looking::finish_parts(connection, &request, &object, &answers);
        }
        Purpose::Evaluate {
            request,
            expression,
            frame,
        } => looking::finish_evaluate(connection, &request, &expression, frame.as_ref(), &answers),
        Purpose::Ask { request, question } => {
            asking::finish_ask(connection, &request, &question, &answers);
        }
        Purpose::Nothing => {}
    }
}
