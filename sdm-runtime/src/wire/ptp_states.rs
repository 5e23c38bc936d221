//! The states of elements in the words of PTP's own client, which ignores all others.

use super::Attribute;
use super::event::Event;
use crate::attribute;
use crate::states::{JOB, PROCESS, QUEUE, States};

/// States that have other words in PTP's dialect, each with the attribute that has the word of this model there.
const STATES: [(&States, &str); 3] = [
    (&JOB, attribute::JOB_STATUS),
    (&PROCESS, "processStatus"),
    (&QUEUE, attribute::QUEUE_STATUS),
];

/// An event with the words of PTP's client. A state that the client does not have is left out.
pub(super) fn in_ptp_words(mut event: Event) -> Event {
    if let Event::New(_, _, groups) | Event::Change(_, _, groups) = &mut event {
        for group in groups {
            for (states, status) in STATES {
                translate(&mut group.attributes, states, status);
            }
        }
    }
    event
}

fn translate(attributes: &mut Vec<Attribute>, states: &States, status: &str) {
    let mut all = attributes.iter_mut();
    let state = all.find(|(key, _)| key == states.attribute);
    let Some((word, of_ptp)) = state.and_then(|(_, word)| {
        let of_ptp = states.ptp_word(word)?;
        Some((std::mem::replace(word, of_ptp.to_owned()), of_ptp))
    }) else {
        return;
    };
    if of_ptp.is_empty() {
        attributes.retain(|(key, _)| key != states.attribute);
    }
    match attributes.iter_mut().find(|(key, _)| key == status) {
        Some((_, text)) if text.is_empty() => *text = word,
        Some(_) => {}
        None => attributes.push((status.to_owned(), word)),
    }
}
