//! Settings of the view: paging of long output, and full-screen mode.
use sdm_view::item::Item;

use super::{SessionHandle, Verdict};

/// Carries out `set pagination on|off` and `show pagination`.
pub(super) fn paginate(session: &SessionHandle, on: Option<bool>) -> Verdict {
    if let Some(on) = on {
        session.edit(|model| model.options.pagination = on);
        session.shared().view.borrow_mut().set_pagination(on);
        return Verdict::Done;
    }
    let word = match session.read(|model| model.options.pagination) {
        true => "on",
        false => "off",
    };
    session.show(&Item::Text(format!("State of pagination is {word}.")));
    Verdict::Done
}

/// Carries out `tui enable` and `tui disable`.
pub(super) fn show_full_screen(session: &SessionHandle, on: bool) -> Verdict {
    if session.shared().view.borrow_mut().set_full_screen(on) || !on {
        return Verdict::Done;
    }
    session.complain(
        "tui: the screen needs a terminal with a prompt, and a TERM other than `dumb`",
        "",
    )
}
