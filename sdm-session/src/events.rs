//! Conversion of deliveries at the tree's root into events for the front-end.

use sdm_core::aggregate::Rejected;
use sdm_core::ids::CommandId;
use sdm_core::message::{Block, Status};
use sdm_core::node::Delivery;
use sdm_debug::rules::Merged;
use sdm_debug::{Class, ClassAnswer, Event, Failure, FailureCode, Reply, wire};
use sdm_idset::IdSet;

use super::api::SessionEvent;

/// Converts one delivery of the tree to an event for the front-end. None for deliveries that a front-end does not need.
pub(super) fn translate(delivery: Delivery) -> Option<SessionEvent> {
    Some(match delivery {
        Delivery::Answer {
            id: CommandId::INIT,
            ..
        }
        | Delivery::Complete(CommandId::INIT) => {
            return None;
        }
        Delivery::Answer {
            id,
            blocks,
            missing,
            lost,
            late,
        } => SessionEvent::Answer {
            id,
            classes: blocks.into_iter().map(class).collect(),
            missing,
            lost,
            late: !late.is_empty(),
        },
        Delivery::Sent(_) => return None,
        Delivery::Complete(id) => SessionEvent::Complete { id },
        Delivery::Events(blocks) => SessionEvent::Events(
            blocks
                .into_iter()
                .filter_map(|block| match wire::decode::<Event>(&block.payload) {
                    Ok(event) => Some((block.sources, event)),
                    Err(error) => {
                        tracing::warn!(
                            "received an invalid event of ranks {}: {error}",
                            block.sources
                        );
                        None
                    }
                })
                .collect(),
        ),
        Delivery::Reach(change) => SessionEvent::Health {
            tasks: change.tasks,
            health: change.health,
            why: change.why,
        },
    })
}

/// Writes a delivery to the log.
pub(super) fn log(delivery: &Delivery) {
    match delivery {
        Delivery::Answer {
            id,
            blocks,
            missing,
            lost,
            ..
        } => {
            let answered = || IdSet::union_all(blocks.iter().map(|block| &block.sources));
            tracing::info!(command = id.0, tasks = %answered(), "answered");
            for (tasks, why) in missing {
                tracing::warn!(command = id.0, %tasks, "missing: {why}");
            }
            if !lost.is_empty() {
                tracing::warn!(command = id.0, tasks = %lost, "lost");
            }
        }
        Delivery::Sent(id) => tracing::debug!(command = id.0, "sent"),
        Delivery::Complete(id) => tracing::info!(command = id.0, "complete"),
        Delivery::Reach(change) => {
            let (tasks, health) = (&change.tasks, change.health);
            tracing::info!(%tasks, "{health:?}: {}", change.why);
        }
        Delivery::Events(_) => {}
    }
}

fn class(block: Block) -> Class {
    let answer = match block.status {
        Status::Others => ClassAnswer::Others,
        Status::Failed => ClassAnswer::Failed(Failure::decode(&block.payload)),
        Status::Ok if Merged::is(&block.payload) => {
            match Merged::decode(&block.sources, &block.payload) {
                Ok(merged) => ClassAnswer::Merged(merged),
                Err(Rejected(why)) => unknown(why),
            }
        }
        Status::Ok => match wire::decode::<Reply>(&block.payload) {
            Ok(reply) => ClassAnswer::Reply(reply),
            Err(error) => unknown(&error.to_string()),
        },
    };
    Class {
        tasks: block.sources,
        answer,
    }
}

/// The class for an answer that cannot be decoded.
fn unknown(why: &str) -> ClassAnswer {
    ClassAnswer::Failed(Failure::new(FailureCode::Unknown, why))
}
