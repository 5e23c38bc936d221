//! A view of a session for pages: the records of `--json`, the text of the prompt, and the state of the session.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use sdm_text::printable_lines;
use sdm_view::escape::shown;
use sdm_view::item::{Item, View};
use sdm_view::json::{JsonView, page};
use sdm_view::overview::{Overview, Sight};
use sdm_view::render::{Names, Screen, Style, TextView};

use crate::news::News;

/// Time limit at the end of a session for pages to receive the last records.
const END_WAIT: Duration = Duration::from_secs(2);

/// Shows a session in another view, and on its live web pages.
pub struct WebView {
    inner: Box<dyn View>,
    records: JsonView<Lines>,
    text: TextView<Text>,
    news: Arc<News>,
    sight: Option<Arc<Sight>>,
}

impl WebView {
    /// A view that passes all items to `inner` and to the pages. `names` are the names of tasks.
    #[must_use]
    pub fn new(inner: Box<dyn View>, names: Names, news: Arc<News>) -> Self {
        let lines = Lines(Arc::clone(&news), Vec::new());
        Self {
            inner,
            // What a launcher carries is told by `pass`.
            records: JsonView::new(lines, |_| {}),
            text: TextView::new(Text(Arc::clone(&news)), names),
            news,
            sight: None,
        }
    }
}

impl View for WebView {
    fn show(&mut self, at: Duration, item: &Item) {
        self.inner.show(at, item);
        self.records.show(at, item);
        self.text.show(at, item);
    }

    fn status(&mut self, line: Option<&str>) {
        self.inner.status(line);
        self.text.status(line);
    }

    fn pass(&mut self, stderr: bool, bytes: &[u8]) {
        self.inner.pass(stderr, bytes);
        self.text.pass(stderr, bytes);
    }

    fn group(&mut self, begins: bool) {
        self.inner.group(begins);
        self.text.group(begins);
    }

    fn set_pagination(&mut self, on: bool) {
        self.inner.set_pagination(on);
    }

    fn wants_board(&self) -> bool {
        self.inner.wants_board() || self.news.has_page()
    }

    fn show_board(&mut self, board: &Overview) {
        self.inner.show_board(board);
        let is_new = self
            .sight
            .as_ref()
            .is_none_or(|it| !Arc::ptr_eq(it, &board.sight));
        if is_new {
            self.news.replace("sight", &page::sight(&board.sight));
            self.sight = Some(Arc::clone(&board.sight));
        }
        self.news.replace("board", &page::board(board));
    }

    fn set_full_screen(&mut self, on: bool) -> bool {
        self.inner.set_full_screen(on)
    }

    fn is_gone(&self) -> bool {
        self.inner.is_gone()
    }
}

impl Drop for WebView {
    fn drop(&mut self) {
        self.news.end(END_WAIT);
    }
}

impl News {
    /// Tells the pages that the prompt requests a line, or that its text has changed.
    pub fn ask(&self, text: &str, is_question: bool) {
        self.replace("prompt", &page::prompt(&shown(text), (true, is_question)));
    }

    /// Offers words that can complete a partly typed line, from this byte of it on, to the page that has it.
    pub fn offer(&self, typed: &str, (from, words): (usize, &[String])) {
        let kept = typed.get(..from).unwrap_or(typed);
        self.replace("completion", &page::completion(typed, kept, words));
    }

    /// Shows a line that a page has given on all pages, which can give no further line until the next request.
    pub fn take_line(&self, text: &str) {
        self.add(&page::typed(&printable_lines(text)));
        self.replace("prompt", &page::prompt("", (false, false)));
    }
}

/// A writer of JSON lines, each of which becomes a record for the pages.
struct Lines(Arc<News>, Vec<u8>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.1);
        let text = String::from_utf8_lossy(&bytes);
        text.lines().for_each(|line| self.0.add(line));
        Ok(())
    }
}

/// A screen whose text goes to the console of the pages.
struct Text(Arc<News>);

impl Screen for Text {
    fn write(&mut self, text: &str) {
        self.0.add(&page::said(&printable_lines(text)));
    }

    fn status(&mut self, line: Option<&str>) {
        let line = line.map(printable_lines);
        self.0.replace("status", &page::status(line.as_deref()));
    }

    fn pass(&mut self, _stderr: bool, bytes: &[u8]) {
        let text = printable_lines(&String::from_utf8_lossy(bytes));
        self.0.add(&page::said(&text));
    }

    fn style(&self) -> Style {
        Style {
            colour: false,
            width: Some(self.0.columns()),
            rows: Style::ROWS,
        }
    }
}
