//! The live pages of a session that a client shows: their records, and their requests for further ones.

use std::collections::VecDeque;
use std::sync::Arc;

use sdm_web::News;
use serde_json::{Value, json};

use crate::message::Request;

/// Maximum number of pages that wait for records. A client that shows a page anew may leave its last request behind.
const WAITING_MAX: usize = 8;

/// The records for pages, and the pages that wait for some.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) news: Arc<News>,
    /// Requests for records, each with the number of the last record that its page has.
    waiting: VecDeque<(Request, u64)>,
    /// The prompt that the pages know, and true if it is a question. `None` while no line is requested.
    asked: Option<(String, bool)>,
}

impl Pages {
    /// Adds a request for the records after number `after`. Of too many the oldest is answered, without a record.
    pub(crate) fn wait(&mut self, request: &Request, after: u64) -> Option<Value> {
        self.waiting.push_back((request.clone(), after));
        self.news.set_awaited(true);
        let oldest = match self.waiting.len() > WAITING_MAX {
            true => self.waiting.pop_front(),
            false => None,
        };
        oldest.map(|(request, after)| answer(&request, after, &[]))
    }

    /// True while a page waits for records.
    pub(crate) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes all waiting requests, as there will be no further records.
    pub(crate) fn take_waiting(&mut self) -> impl Iterator<Item = Request> + use<> {
        self.news.set_awaited(false);
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|(request, _)| request)
    }

    /// Shows a line of a page on all pages, which then have no prompt.
    pub(crate) fn take_line(&mut self, text: &str) {
        self.news.take_line(text);
        self.asked = None;
    }

    /// Shows the prompt for the next line.
    pub(crate) fn ask(&mut self, prompt: (String, bool)) {
        if self.asked.as_ref() != Some(&prompt) {
            self.news.ask(&prompt.0, prompt.1);
            self.asked = Some(prompt);
        }
    }

    /// The answers to the requests for which there are records by now.
    pub(crate) fn take_answers(&mut self) -> Vec<Value> {
        let mut answers = Vec::new();
        self.waiting.retain(|(request, after)| {
            let (last, records) = self.news.since(*after);
            if !records.is_empty() {
                answers.push(answer(request, last, &records));
            }
            records.is_empty()
        });
        self.news.set_awaited(self.are_waiting());
        answers
    }
}

/// The answer to a request for records, each of which is the text of a JSON object.
fn answer(request: &Request, last: u64, records: &[Arc<str>]) -> Value {
    let records: Vec<&str> = records.iter().map(|record| &**record).collect();
    request.response(json!({"last": last, "records": records}))
}
