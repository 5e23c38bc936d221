//! A sample table of queues with every field.

use sdm_debug::queues::{MessageKind, QueueName};
use sdm_debug::rules::Alike;
use sdm_idset::IdSet;

use crate::item::Item;
use crate::queues::{LocalRank, PeerOf, QueueRow, QueueTable};

pub(super) fn queues() -> Item {
    let kind = |queue| MessageKind {
        queue,
        is_matched: false,
        communicator: "MPI_COMM_WORLD".to_owned(),
        is_remote: false,
        any_peer: false,
        tag: Some(99),
        length_bytes: 40,
    };
    let row = |queue, alike| QueueRow {
        tasks: IdSet::all_below(1),
        count: 1,
        kind: kind(queue),
        peer: PeerOf::World(alike, LocalRank::Same),
        buffer: Some(1),
    };
    Item::Queues(QueueTable {
        rows: vec![
            row(QueueName::Sends, Alike::Away(-1)),
            row(QueueName::Receives, Alike::Same(3)),
            row(QueueName::Unexpected, Alike::Same(3)),
        ],
        quiet: IdSet::all_below(1),
        more: IdSet::all_below(1),
        without_unexpected: IdSet::all_below(1),
    })
}
