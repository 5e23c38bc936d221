//! The table of queues with every field in it.

use sdm_debug::queues::{MessageKind, QueueName};
use sdm_debug::rules::Alike;
use sdm_idset::IdSet;

use crate::item::Item;
use crate::queues::{PeerOf, QueueRow, QueueTable};

pub(super) fn queues() -> Item {
    let kind = MessageKind {
        queue: QueueName::Receives,
        is_matched: false,
        communicator: "MPI_COMM_WORLD".to_owned(),
        is_remote: false,
        any_peer: false,
        tag: Some(99),
        length_bytes: 40,
    };
    let row = QueueRow {
        tasks: IdSet::all_below(1),
        count: 1,
        kind,
        peer: PeerOf::World(Alike::Away(-1), None),
        buffer: Some(1),
    };
    Item::Queues(QueueTable {
        rows: vec![row],
        quiet: IdSet::all_below(1),
        more: IdSet::all_below(1),
        without_unexpected: IdSet::all_below(1),
    })
}
