//! Settings of the screen that are kept for the next start.

use super::{Top, View};
use crate::palette::Palette;
use crate::rows::Order;

const VIEWS: [(&str, View); 3] = [
    ("managers", View::Managers),
    ("machines", View::Machines),
    ("jobs", View::Jobs),
];

impl Top {
    /// The settings to keep, as lines of `WORD VALUE`.
    #[must_use]
    pub fn remembered(&self) -> String {
        let view = VIEWS.iter().find(|(_, view)| *view == self.view);
        let view = view.map_or("jobs", |(word, _)| word);
        let listing = self.listing;
        let yes = |it: bool| if it { "yes" } else { "no" };
        format!(
            "palette {}\nview {view}\norder {}\nreverse {}\nmine {}\n",
            self.style.palette.word(),
            listing.order.word(),
            yes(listing.reverse),
            yes(listing.own),
        )
    }

    /// Restores settings from the last start. Unknown lines, which another version wrote, are ignored.
    pub fn recall(&mut self, text: &str) {
        for (word, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            match word {
                "palette" => {
                    self.style.palette = Palette::named(value).unwrap_or(self.style.palette);
                }
                "view" => {
                    let view = VIEWS.iter().find(|(word, _)| *word == value);
                    self.go(view.map_or(self.view, |(_, view)| *view));
                }
                "order" => {
                    self.listing.order = Order::named(value).unwrap_or(self.listing.order);
                }
                "reverse" => self.listing.reverse = value == "yes",
                "mine" => self.listing.own = value == "yes",
                _ => {}
            }
        }
        self.fill();
    }
}
