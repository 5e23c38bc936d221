//! Sample values of every frame that a terminal and a keeper send each other.

use sdm_keep::{Frame, Size, send};

use super::every;
use super::kept::Entry;

pub(super) fn entries() -> Vec<Entry> {
    let size = Size {
        rows: 40,
        columns: 200,
    };
    let frames = every!(Frame:
        Frame::Open(_) => Frame::Open(size),
        Frame::Input(_) => Frame::Input(b"bt\n".to_vec()),
        Frame::Resized(_) => Frame::Resized(size),
        Frame::Shown(_) => Frame::Shown(300),
        Frame::Detach => Frame::Detach,
        Frame::Ask => Frame::Ask,
        Frame::Begin { .. } => Frame::Begin { dropped: 3, at: 900 },
        Frame::Output(_) => Frame::Output(b"7\n".to_vec()),
        Frame::LetGo(_) => Frame::LetGo(true),
        Frame::Exited(_) => Frame::Exited(-1),
        Frame::About { .. } => Frame::About {
            age_s: 7,
            attached: true,
            command: "sdm run -- ./heat".to_owned(),
        },
    );
    let entry = |(name, frame): (String, Frame)| {
        let mut bytes = Vec::new();
        send(&mut bytes, &frame).expect("memory takes it");
        Entry { name, bytes }
    };
    frames.into_iter().map(entry).collect()
}
