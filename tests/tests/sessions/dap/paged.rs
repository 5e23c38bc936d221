//! The live page in an editor over the adapter: the page's files, the JSON records that it shows, and the lines typed
//! there.

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

use super::{all_stopped, configuration, set};

/// A page that an editor shows.
#[derive(Default)]
struct Page {
    /// Number of the last record.
    last: u64,
    /// The records that no test step has waited for.
    records: Vec<Value>,
}

impl Page {
    /// Waits for a record of this kind that `fits`.
    fn wait(
        &mut self,
        editor: &mut Editor<'_>,
        kind: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let is_it = |record: &Value| record["kind"] == kind && fits(record);
        loop {
            if let Some(at) = self.records.iter().position(is_it) {
                let found = self.records[at].clone();
                // Records of other kinds may come in another order.
                let mut place = 0..;
                let is_later = |record: &Value| place.next() > Some(at) || record["kind"] != kind;
                self.records.retain(is_later);
                return found;
            }
            let body = editor.ask("sdm/events", &json!({ "after": self.last }));
            self.take(&body);
        }
    }

    /// Takes the records of an answer.
    fn take(&mut self, body: &Value) {
        self.last = body["last"].as_u64().expect("a number");
        let records = body["records"].as_array().expect("a list").iter();
        let record = |it: &Value| serde_json::from_str(it.as_str().expect("a text"));
        let records = records.map(|it| record(it).expect("it is JSON"));
        self.records.extend(records);
    }

    /// Waits until the console of the page says this.
    fn wait_text(&mut self, editor: &mut Editor<'_>, text: &str) {
        let says = |record: &Value| record["text"].as_str().is_some_and(|it| it.contains(text));
        self.wait(editor, "said", says);
    }
}

/// Types a line on the page.
fn line(editor: &mut Editor<'_>, text: &str) {
    editor.ask("sdm/line", &json!({ "text": text }));
}

/// The ranks that stand in this function.
fn ranks_in(sight: &Value, function: &str) -> Option<String> {
    let stacks = sight["stacks"]["stacks"].as_array()?.iter();
    let is_in = |stack: &&Value| {
        let frames = stack["frames"].as_array();
        frames.is_some_and(|frames| frames.iter().any(|it| it["function"] == function))
    };
    let mut found = stacks.filter(is_in).map(|stack| stack["tasks"].as_str());
    found.next().flatten().map(str::to_owned)
}

/// Number of breakpoints at a glance.
fn breakpoints(board: &Value) -> Option<usize> {
    board["breakpoints"].as_array().map(Vec::len)
}

/// An editor whose page waits before the programs run, at the beginning of three ranks.
fn begin<'a>(place: &'a Place, arguments: &[&str]) -> (Editor<'a>, Page) {
    let work = place.compile("work", Compiler::C);
    let mut editor = Editor::new(place);
    let mut configuration = configuration(&work, arguments, 3);
    configuration["stopAtEntry"] = json!(true);
    editor.ask("initialize", &json!({ "adapterID": "sdm" }));
    let early = editor.send("sdm/events", &Value::Null);
    editor.ask("launch", &configuration);
    let mut page = Page::default();
    page.take(&editor.response(early)["body"]);
    let start = page.wait(&mut editor, "start", |_| true);
    assert_eq!(start["tasks"], "0-2");
    let program = start["program"][0].as_str().expect("a path");
    assert!(program.ends_with("work"), "{start}");
    editor.ask("configurationDone", &Value::Null);
    editor.event("stopped");
    (editor, page)
}

#[test]
fn page_in_an_editor_has_the_same_files_as_in_a_browser() {
    let place = Place::new();
    let mut editor = Editor::new(&place);
    editor.ask("initialize", &json!({ "adapterID": "sdm" }));
    let files = editor.ask("sdm/page", &Value::Null)["files"].clone();
    let files = files.as_array().expect("a list");
    assert_eq!(files[0]["path"], "/");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdm-web/page");
    let count = std::fs::read_dir(&folder).expect("it is there").count();
    assert_eq!(files.len(), count);
    for file in files {
        let name = match file["path"].as_str().expect("a path") {
            "/" => "index.html",
            path => path.trim_start_matches('/'),
        };
        let text = std::fs::read_to_string(folder.join(name)).expect(name);
        assert_eq!(file["text"], text, "{name}");
    }
    editor.disconnect();
}

#[test]
fn page_and_editor_debug_the_same_session() {
    let place = Place::new();
    let (mut editor, mut page) = begin(&place, &["steps"]);
    let at_main = |sight: &Value| ranks_in(sight, "main").as_deref() == Some("0-2");
    page.wait(&mut editor, "sight", at_main);
    // What is typed on the page is done in the editor's session, and the editor is told.
    line(&mut editor, "break twice");
    page.wait(&mut editor, "typed", |it| {
        it["text"] == "(sdm) break twice\n"
    });
    page.wait_text(&mut editor, "breakpoint 1 at work.c:");
    assert_eq!(editor.event("breakpoint")["reason"], "new");
    line(&mut editor, "continue &");
    let at = all_stopped(&mut editor);
    assert_eq!(at["hitBreakpointIds"], json!([1]), "{at}");
    let sight = page.wait(&mut editor, "sight", |it| ranks_in(it, "twice").is_some());
    let place_of = &sight["source"];
    assert!(
        place_of["path"]
            .as_str()
            .is_some_and(|it| it.ends_with("/work.c"))
    );
    assert_eq!(
        place_of["line"],
        Place::line("work.c", "int result = number * 2;")
    );
    line(&mut editor, "focus 1");
    let of_one = |board: &Value| board["focus"] == "1" && breakpoints(board) == Some(1);
    page.wait(&mut editor, "board", of_one);
    let is_asked = |it: &Value| it["asked"] == true && it["text"] == "[1: 1 stopped] (sdm) ";
    page.wait(&mut editor, "prompt", is_asked);
    line(&mut editor, "print number");
    let answer = page.wait(&mut editor, "answer", |it| it["command"] == "print number");
    assert_eq!(answer["classes"][0]["text"], "0", "{answer}");
    line(&mut editor, "quit");
    editor.event("terminated");
    editor.disconnect();
}

#[test]
fn page_follows_the_editor_and_new_page_gets_kept_state() {
    let place = Place::new();
    let (mut editor, mut page) = begin(&place, &["steps"]);
    // What the editor does is on the page.
    set(
        &mut editor,
        &[json!({ "line": Place::line("work.c", "return result;") })],
    );
    page.wait(&mut editor, "board", |board| breakpoints(board) == Some(1));
    let threads = editor.ask("threads", &Value::Null);
    editor.ask(
        "continue",
        &json!({ "threadId": threads["threads"][0]["id"] }),
    );
    let back = Place::line("work.c", "return result;");
    page.wait(&mut editor, "sight", |sight| {
        sight["source"]["line"] == back
    });
    // A page that is shown anew gets all that is kept.
    let mut anew = Page::default();
    anew.wait(&mut editor, "start", |_| true);
    anew.wait(&mut editor, "sight", |sight| {
        sight["source"]["line"] == back
    });
    assert!(
        editor
            .refused("sdm/line", &json!({ "text": "print 1\nquit" }))
            .contains("control")
    );
    line(&mut editor, "quit");
    editor.event("terminated");
    let waiting = editor.send("sdm/events", &json!({ "after": u32::MAX }));
    let transcript = editor.disconnect();
    let refused = transcript.iter().find(|it| it["request_seq"] == waiting);
    let why = "sdm/events: the debug session has ended";
    assert_eq!(refused.expect("it is answered")["message"], why);
}

#[test]
fn page_in_an_editor_interrupts_a_running_command() {
    let place = Place::new();
    let (mut editor, mut page) = begin(&place, &["spin"]);
    line(&mut editor, "continue");
    page.wait(&mut editor, "board", |board| board["running"] == "0-2");
    editor.ask("sdm/interrupt", &Value::Null);
    all_stopped(&mut editor);
    page.wait(&mut editor, "board", |board| board["running"] == "");
    page.wait(&mut editor, "prompt", |it| it["asked"] == true);
    line(&mut editor, "quit");
    editor.event("terminated");
    editor.disconnect();
}
