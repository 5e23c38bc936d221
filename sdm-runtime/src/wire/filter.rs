//! Filters of outgoing events. The document leaves their meaning to the agent; this is ours.

use super::event::Event;
use crate::attribute;

/// Takes out of an event what filters name: a name leaves that attribute out, `key=value` leaves out elements that have it.
/// PTP's `stdout` and `stderr` mean the attributes of a process. Returns nothing where nothing is left.
pub(super) fn apply(filters: &[String], mut event: Event) -> Option<Event> {
    let (is_change, groups) = match &mut event {
        Event::New(_, _, groups) => (false, groups),
        Event::Change(_, _, groups) => (true, groups),
        _ => return Some(event),
    };
    if filters.is_empty() {
        return Some(event);
    }
    groups.retain_mut(|group| {
        let has = |filter: &String| {
            let pair = filter.split_once('=');
            pair.is_some_and(|(k, v)| {
                group
                    .attributes
                    .iter()
                    .any(|(key, value)| k == key && v == value)
            })
        };
        if filters.iter().any(has) {
            return false;
        }
        group.attributes.retain(|(key, _)| {
            !filters.iter().any(|filter| match filter.as_str() {
                "stdout" => key == attribute::PROCESS_STDOUT,
                "stderr" => key == attribute::PROCESS_STDERR,
                name => name == key,
            })
        });
        !(is_change && group.attributes.is_empty())
    });
    (!groups.is_empty()).then_some(event)
}
