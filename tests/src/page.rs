//! A page in a headless browser, operated as by a person: clicks, keys and text, by Chromium's own protocol over pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::questions::Questions;
use crate::run::BOUND;

/// Shell command that starts the browser with the pipes of its protocol as descriptors 3 and 4, and no other stream.
const START: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// JavaScript of the document of a page and those of its frames.
const DOCUMENTS: &str = "((all) => all(document, all))((of, all) => [of, ...[...of.querySelectorAll('iframe')].flatMap((it) => it.contentDocument ? all(it.contentDocument, all) : [])])";
/// JavaScript of a promise for the value of EXPRESSION once that is truthy: it is looked at before each frame that the
/// browser draws, since a change of layout or of a document within is no mutation of the page's own.
const WAIT: &str = "new Promise((done) => {
  const look = () => { const found = (() => { try { return EXPRESSION; } catch { return null; } })(); if (found) done(found); else requestAnimationFrame(look); };
  look();
})";

/// A page that is open.
pub struct BrowserPage {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    number: u64,
    session: String,
    questions: Questions,
    /// Selector of an element: what is looked at and clicked is in the document that has it, the page's own or a
    /// frame's. Empty for the page's own.
    pub within: &'static str,
    /// Warnings and errors in the browser's log, such as requests that a security policy has blocked.
    pub complaints: Vec<String>,
    /// Number of requests of the page since `Network.enable`.
    pub requests: usize,
    /// Number of files that the browser has saved completely, or failed to save.
    downloads: usize,
}

impl BrowserPage {
    /// Opens an address in a window of this size. The browser's profile is in `folder`.
    ///
    /// # Panics
    /// If the browser fails.
    #[must_use]
    pub fn open(browser: &Browser, folder: &Path, address: &str, size: (u32, u32)) -> Self {
        let (width, height) = size;
        let mut command = Command::new("/bin/sh");
        let command = command
            .args(["-c", START, "sh", browser.program()])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!(
                "--user-data-dir={}",
                folder.join("browser").display()
            ))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it ran before");
        let to = child.stdin.take().expect("it is a pipe");
        let said = child.stdout.take().expect("it is a pipe");
        let (sender, from) = channel();
        thread::spawn(move || {
            let mut said = BufReader::new(said);
            let mut message = Vec::new();
            while said
                .read_until(0, &mut message)
                .is_ok_and(|count| count > 0)
            {
                message.pop();
                let message = std::mem::take(&mut message);
                let message = serde_json::from_slice(&message).expect("it says JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut page = Self {
            child,
            to,
            from,
            number: 0,
            session: String::new(),
            questions: Questions::default(),
            within: "",
            complaints: Vec::new(),
            requests: 0,
            downloads: 0,
        };
        let targets = page.call("Target.getTargets", json!({}));
        let targets = targets["targetInfos"].as_array().expect("some").iter();
        let target = targets.into_iter().find(|it| it["type"] == "page");
        let target = target.expect("it opens one")["targetId"].clone();
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = page.call("Target.attachToTarget", attach);
        attached["sessionId"]
            .as_str()
            .expect("a session")
            .clone_into(&mut page.session);
        for domain in ["Page", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.go(address);
        page
    }

    /// Goes to another address.
    ///
    /// # Panics
    /// If the browser fails.
    pub fn go(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
    }

    /// The value of an expression in the page.
    ///
    /// # Panics
    /// If the expression has no value.
    pub fn value(&mut self, expression: &str) -> Value {
        self.evaluate(&self.inside(expression))
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        loop {
            let answer = self.try_call("Runtime.evaluate", ask.clone());
            match answer {
                Ok(answer) if answer["exceptionDetails"].is_null() => {
                    return answer["result"]["value"].clone();
                }
                Ok(answer) => panic!("{expression}: {}", answer["exceptionDetails"]),
                // The page leads on to another one.
                Err(error) if error.contains("navigated") || error.contains("context") => {}
                Err(error) => panic!("{expression}: {error}"),
            }
        }
    }

    /// The expression, evaluated in the document that is meant.
    fn inside(&self, expression: &str) -> String {
        match self.within {
            "" => expression.to_owned(),
            within => format!(
                "((document) => {expression})({DOCUMENTS}.find((it) => it.querySelector({})))",
                json!(within)
            ),
        }
    }

    /// Waits until an expression is truthy; returns its value.
    ///
    /// # Panics
    /// If it does not come to that within [`BOUND`].
    pub fn wait(&mut self, expression: &str) -> Value {
        let wait = WAIT.replace("EXPRESSION", &self.inside(expression));
        self.evaluate(&wait)
    }

    /// Waits until an element of the selector contains `text`; returns the element's whole text.
    ///
    /// # Panics
    /// If it does not come to that within [`BOUND`].
    pub fn wait_text(&mut self, selector: &str, text: &str) -> String {
        let (selector, text) = (json!(selector), json!(text));
        let found = self.wait(&format!(
            "[...document.querySelectorAll({selector})].map((it) => it.textContent).find((it) => it.includes({text}))"
        ));
        found.as_str().expect("a text").to_owned()
    }

    /// Waits for an element of the selector, and clicks into the middle of the first one.
    ///
    /// # Panics
    /// If no such element appears.
    pub fn click(&mut self, selector: &str) {
        let selector = json!(selector);
        let at = self.wait(&format!(
            "(() => {{ const it = document.querySelector({selector}); it.scrollIntoView({{ block: 'nearest' }}); \
             const box = it.getBoundingClientRect(); let [x, y] = [box.x + box.width / 2, box.y + box.height / 2]; \
             for (let frame = it.ownerDocument.defaultView.frameElement; frame; frame = frame.ownerDocument.defaultView.frameElement) {{ \
             const outer = frame.getBoundingClientRect(); x += outer.x; y += outer.y; }} return [x, y]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Drags with the pressed mouse button from one point to another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        for (kind, (x, y)) in [
            ("mousePressed", from),
            ("mouseMoved", to),
            ("mouseReleased", to),
        ] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key: `Enter`, `ArrowDown`, `F1`, `c`.
    pub fn key(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            one if one.chars().count() == 1 => one,
            _ => "",
        };
        // VS Code knows keys by their numbers.
        let number = match key {
            "Enter" => 13,
            "Tab" => 9,
            "F1" => 112,
            _ => 0,
        };
        let down = json!({ "type": "keyDown", "key": key, "code": key, "text": text, "windowsVirtualKeyCode": number });
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyUp", "key": key }),
        );
    }

    /// Presses a key together with `Ctrl` or `Shift`.
    pub fn chord(&mut self, with: &str, key: &str) {
        let modifiers = if with == "Ctrl" { 2 } else { 8 };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({ "type": kind, "modifiers": modifiers, "key": key });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a line into the console.
    ///
    /// # Panics
    /// If it asks again what was asked before.
    pub fn line(&mut self, text: &str) {
        self.questions.enter(text);
        // A click can miss a field that moves, as while a page is loaded.
        self.wait(
            "(document.querySelector('#command').focus(), document.activeElement.id === 'command')",
        );
        self.call("Input.insertText", json!({ "text": text }));
        self.key("Enter");
    }

    /// Types `typed` in the console, presses Tab, and waits until the console has `line`.
    ///
    /// # Panics
    /// If it does not come to that within [`BOUND`].
    pub fn complete(&mut self, typed: &str, line: &str) {
        self.value("document.querySelector('#command').focus()");
        self.value("document.querySelector('#command').select()");
        self.call("Input.insertText", json!({ "text": typed }));
        self.key("Tab");
        self.wait(&format!(
            "document.querySelector('#command').value === '{line}'"
        ));
    }

    /// Clicks an element that saves a file into `folder`, and waits until the browser has written the whole file.
    ///
    /// # Panics
    /// If no file is saved.
    pub fn save(&mut self, selector: &str, folder: &Path) {
        let folder = folder.display().to_string();
        let down = json!({ "behavior": "allow", "downloadPath": folder, "eventsEnabled": true });
        self.call("Browser.setDownloadBehavior", down);
        let before = self.downloads;
        self.click(selector);
        let begin = Instant::now();
        while self.downloads == before {
            let came = self.receive(begin, "a file to be saved");
            self.note(&came);
        }
    }

    /// The next message of the browser, within [`BOUND`] from `begin` on.
    fn receive(&self, begin: Instant, wanted: &str) -> Value {
        let left = BOUND.saturating_sub(begin.elapsed());
        let came = self.from.recv_timeout(left);
        came.unwrap_or_else(|_| panic!("no answer: {wanted}"))
    }

    /// Saves a screenshot of the page as a PNG file.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn picture(&mut self, path: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let text = answer["data"].as_str().expect("a picture").to_owned();
        let file = std::fs::File::create(path).expect("the folder is ours");
        let mut command = Command::new("base64");
        let command = command.arg("-d").stdin(Stdio::piped()).stdout(file);
        let mut child = command.spawn().expect("coreutils are there");
        let mut input = child.stdin.take().expect("it is a pipe");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        assert!(child.wait().expect("it ends").success());
    }

    /// Sends a command of Chromium's protocol; returns its result.
    ///
    /// # Panics
    /// If the browser refuses it.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters)
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        let message = format!("{message}\0");
        self.to
            .write_all(message.as_bytes())
            .expect("the browser reads");
        let begin = Instant::now();
        loop {
            let came = self.receive(begin, &message);
            if came["id"] == self.number {
                return match came["error"].is_null() {
                    true => Ok(came["result"].clone()),
                    false => Err(came["error"].to_string()),
                };
            }
            self.note(&came);
        }
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                panic!(
                    "a script of the page fails: {}",
                    parameters["exceptionDetails"]
                )
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] != "info" => {
                self.complaints.push(parameters["entry"].to_string());
            }
            Some("Network.requestWillBeSent") => self.requests += 1,
            Some("Browser.downloadProgress") if parameters["state"] != "inProgress" => {
                self.downloads += 1;
            }
            _ => {}
        }
    }
}

impl Drop for BrowserPage {
    fn drop(&mut self) {
        // It ends with its pipe as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
