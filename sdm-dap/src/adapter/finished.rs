//! The follow-up of answered commands.

use super::{
    asking, beforehand, begin, beside, consoling, end, frames, going, looking, moving, pointing,
    restarting, stopping,
};
use crate::connection::{Connection, Phase};
use crate::jobs::{Job, Purpose};

pub(super) fn finish_job(connection: &mut Connection, job: Job) {
    let Job {
        purpose, answers, ..
    } = job;
    match purpose {
        Purpose::Begin => {
            begin::finish_begin(connection, &answers);
            if connection.is_restarting() {
                restarting::reinsert(connection);
            } else if connection.phase == Phase::Configuring {
                beforehand::begin(connection);
            }
        }
        Purpose::Run { said, before } => {
            moving::finish_run(connection, said, &before, &answers);
        }
        Purpose::Foreign(before) => beside::finish_foreign(connection, &before, &answers),
        Purpose::Console(command) => {
            consoling::finish_command(connection, &command, &answers);
        }
        Purpose::Goto { before, number } => {
            going::finish_goto(connection, (&before, number), &answers);
        }
        Purpose::Reinsert(numbers) => {
            restarting::finish_reinsert(connection, &numbers, &answers);
            beforehand::go_on(connection);
        }
        Purpose::Frames { request, listing } => {
            frames::finish_frames(connection, &request, &listing, &answers);
        }
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
        Purpose::Elsewhere {
            request,
            group,
            asked,
        } => pointing::finish_elsewhere(connection, &request, &group, &asked, &answers),
        Purpose::Scope { request, frame } => {
            looking::finish_scope(connection, &request, &frame, &answers)
        }
        Purpose::Parts {
            request,
            object,
            from,
            whole,
        } => {
            looking::finish_parts(connection, &request, (&object, from), &whole, &answers);
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
