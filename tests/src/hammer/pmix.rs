//! Seeds of the hammer: messages between PMIx servers and the servers of a session, and messages of the helper for
//! message queues.

use sdm_foreign::queues::{
    CommunicatorQueues, ProcessQueues, QUEUES_VERSION, QueueKind, QueuedMessage, QueuesAnswer,
    QueuesAsk, TypeLayout,
};
use sdm_foreign::wire::{VERSION, frame};
use sdm_foreign::{FromHost, HostJob, HostNode, HostProgram, ToHost};

/// Frames between a session's servers and their PMIx server.
pub(super) fn pmix_frames() -> Vec<Vec<u8>> {
    let node = |name: &str, ranks: &str| HostNode {
        name: name.to_owned(),
        ranks: ranks.parse().expect("ranks"),
    };
    let job = HostJob {
        namespace: "sdm-1".to_owned(),
        nodes: vec![node("a", "0-3"), node("b", "4-7/2,5,7")],
        own: 1,
        is_system: true,
    };
    let hello = ToHost::Hello {
        version: VERSION,
        job,
        ranks: "5".parse().expect("ranks"),
        spare: "8-99".parse().expect("ranks"),
    };
    let spawn = FromHost::Spawn {
        number: 1,
        by: Some(5),
        tasks: "8-9".parse().expect("ranks"),
        ranks: "8-9".parse().expect("ranks"),
        size: 3,
        programs: vec![HostProgram {
            program: b"worker".to_vec(),
            arguments: vec![b"-v".to_vec()],
            environment: vec![b"A=1".to_vec()],
            directory: None,
            count: 2,
        }],
        environment: vec![("PMIX_NAMESPACE".to_owned(), "sdm-1.0.0".to_owned())],
    };
    let ready = FromHost::Ready {
        version: VERSION,
        library: "OpenPMIx 4.2.2".to_owned(),
        environment: vec![("PMIX_NAMESPACE".to_owned(), "sdm-1".to_owned())],
    };
    let aborted = FromHost::Aborted {
        rank: 3,
        status: 42,
        text: "no input".to_owned(),
    };
    let fence = FromHost::Fence {
        number: 2,
        ranks: "0-7".parse().expect("ranks"),
        count: 1,
        is_speaker: true,
    };
    let data = ToHost::FenceData {
        number: 2,
        bytes: b"what all have".to_vec(),
    };
    let frames = [
        frame(&hello),
        frame(&ready),
        frame(&aborted),
        frame(&fence),
        frame(&data),
        frame(&spawn),
    ];
    frames.into_iter().flatten().collect()
}

/// Frames between a server and the helper with a debug library.
pub(super) fn queue_frames() -> Vec<Vec<u8>> {
    let ask = QueuesAsk {
        version: QUEUES_VERSION,
        library: b"/usr/lib/libompi_dbg_msgq.so".to_vec(),
        symbols: vec![("ompi_mpi_communicators".to_owned(), 0x7fff_0000)],
        types: vec![TypeLayout {
            name: "opal_list_t".to_owned(),
            size_bytes: 64,
            fields: vec![("opal_list_sentinel".to_owned(), 16)],
        }],
    };
    let message = QueuedMessage {
        kind: QueueKind::Receive,
        is_matched: false,
        peer: Some(3),
        world_peer: Some(3),
        is_remote: false,
        tag: None,
        length_bytes: 40,
        buffer: 0x7fff_0000,
    };
    let known = QueuesAnswer::Known(ProcessQueues {
        communicators: vec![CommunicatorQueues {
            name: "MPI_COMM_WORLD".to_owned(),
            messages: vec![message],
        }],
        more: 1,
        knows_unexpected: false,
    });
    let failed = QueuesAnswer::Failed {
        text: "a reason".to_owned(),
    };
    let answers = [known, failed];
    let answers = answers.iter().map(|it| frame(it).expect("it is short"));
    answers.chain([frame(&ask).expect("it is short")]).collect()
}
