//! The JSON record of the command `queues`: pending MPI messages.

use sdm_debug::queues::QueueName;
use sdm_debug::rules::Alike;
use serde_json::{Value, json};

use super::set;
use crate::queues::{LocalRank, PeerOf, QueueRow, QueueTable};

/// The fields of the record `queues`: the pending MPI messages of the tasks.
pub(super) fn fields(table: &QueueTable) -> Value {
    json!({
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
        "quiet": set(&table.quiet),
        "more": set(&table.more),
        "without_unexpected": set(&table.without_unexpected),
    })
}

fn row(row: &QueueRow) -> Value {
    let kind = &row.kind;
    let (world, local) = match row.peer {
        PeerOf::Any | PeerOf::Unknown => (None, None),
        PeerOf::World(world, LocalRank::Same) => (Some(world), Some(world)),
        PeerOf::World(world, LocalRank::Rank(rank)) => (Some(world), Some(Alike::Same(rank))),
        PeerOf::World(world, LocalRank::Several) => (Some(world), None),
        PeerOf::Local(rank) => (None, Some(Alike::Same(rank))),
    };
    json!({
        "tasks": set(&row.tasks),
        "count": row.tasks.len(),
        "queue": match kind.queue {
            QueueName::Sends => "sends",
            QueueName::Receives => "receives",
            QueueName::Unexpected => "unexpected",
        },
        "messages": row.count,
        "matched": kind.is_matched,
        "any_peer": kind.any_peer,
        "world_peer": world.map(alike),
        "peer": local.map(alike),
        "other_group": kind.is_remote,
        "tag": kind.tag,
        "communicator": kind.communicator,
        "bytes": kind.length_bytes,
        "buffer": row.buffer,
        "text": row.text(),
    })
}

/// A rank as an absolute number, or relative to each task's own.
fn alike(alike: Alike) -> Value {
    match alike {
        Alike::Same(rank) => json!({ "rank": rank }),
        Alike::Away(by) => json!({ "away": by }),
    }
}
