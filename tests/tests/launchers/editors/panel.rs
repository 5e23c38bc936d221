//! The page as a panel of VS Code, as code-server serves it to a browser.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::browser::Browser;
use sdm_tests::page::BrowserPage;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::{binaries, ordinary, parts, processes, sdm};
use serde_json::{Value, json};

use crate::stories::run;

/// The window of VS Code.
const SIZE: (u32, u32) = (1600, 1000);

/// A server of VS Code, of an ordinary user who has installed the extension.
struct CodeServer {
    child: Child,
    address: String,
}

impl CodeServer {
    /// Starts it with a launch configuration in the folder of the place.
    fn start(place: &Place, installed: &Path, launch: &Value) -> Self {
        let home = place.path().join("home");
        let files = [
            (
                place.path().join(".vscode/launch.json"),
                json!({ "version": "0.2.0", "configurations": [launch] }),
            ),
            (home.join("data/User/settings.json"), settings()),
        ];
        for (path, text) in files {
            let folder = path.parent().expect("it is in one");
            fs::create_dir_all(folder).expect("a folder");
            fs::write(&path, text.to_string()).expect("a file");
        }
        for folder in ["", "data", "data/User"] {
            ordinary::give(&home.join(folder));
        }
        ordinary::give(place.path());
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/vscode/package");
        run(sdm::command(place, package).arg(place.path()));
        let mut install = command(place, installed);
        install
            .arg("--install-extension")
            .arg(place.path().join("sdm-0.1.0.vsix"));
        run(&mut install);
        let mut serve = command(place, installed);
        serve.args([
            "--auth",
            "none",
            "--bind-addr",
            "127.0.0.1:0",
            "--disable-workspace-trust",
        ]);
        serve.args(["--disable-telemetry", "--disable-update-check"]);
        let mut child = serve.stderr(Stdio::null()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("HTTP server listening on ")?;
            Some(address.to_owned())
        });
        // Further lines are read, so that it can write them.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.expect("it says where");
        Self { child, address }
    }
}

impl Drop for CodeServer {
    fn drop(&mut self) {
        processes::signal(self.child.id(), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

/// A command line of code-server with folders in the place.
fn command(place: &Place, installed: &Path) -> Command {
    let modules = installed.join("node_modules");
    let nodes = fs::read_dir(&modules).expect("it is there").flatten();
    let mut nodes = nodes.filter(|it| it.file_name().to_string_lossy().starts_with("node-linux-"));
    let node = nodes
        .next()
        .expect("one for this machine")
        .path()
        .join("bin/node");
    let home = place.path().join("home");
    let mut command = sdm::command(place, node);
    command.arg(modules.join("code-server")).env("HOME", &home);
    command.arg("--user-data-dir").arg(home.join("data"));
    command.arg("--extensions-dir").arg(home.join("extensions"));
    command
}

fn settings() -> Value {
    json!({
        "sdm.path": binaries::folder().join("sdm"),
        "chat.disableAIFeatures": true,
        "debug.internalConsoleOptions": "neverOpen",
        "extensions.autoUpdate": false,
        "remote.autoForwardPorts": false,
        "workbench.startupEditor": "none",
    })
}

/// Carries out a command of VS Code by the keyboard.
fn carry_out(page: &mut BrowserPage, title: &str) {
    page.within = "";
    page.key("F1");
    // It has the focus once it is shown.
    page.wait("document.querySelector('.quick-input-widget input').offsetParent !== null");
    page.call("Input.insertText", json!({ "text": title }));
    page.wait_text(".quick-input-list .monaco-list-row.focused", title);
    page.key("Enter");
}

#[test]
fn web_page_in_a_vs_code_panel_controls_the_session() {
    let (Some(browser), Some(installed)) = (Browser::find(), parts::editors("code-server")) else {
        return;
    };
    let place = Place::new();
    let program = place.compile("halo", Compiler::OpenMpi);
    let server = CodeServer::start(
        &place,
        &installed,
        &json!({
            "type": "sdm", "request": "launch", "name": "halo", "program": program, "ranks": 4,
            "launcherOptions": ["--oversubscribe"], "stopAtEntry": true,
        }),
    );
    let folder = place.path().display();
    let address = format!("{}?folder={folder}", server.address);
    let mut page = BrowserPage::open(&browser, place.path(), &address, SIZE);
    page.click(".activitybar a[aria-label^='Run and Debug']");
    page.wait_text(".start-debug-action-item", "halo");
    // A start is lost before VS Code has read the extension; it notes when it has.
    page.wait("performance.getEntriesByName('code/didLoadExtensions').length > 0");
    page.click(".start-debug-action-item .codicon-debug-start");
    page.wait("Boolean(document.querySelector('.debug-top-stack-frame-line'))");
    carry_out(&mut page, "SDM: Show the page");
    page.within = "#controls";
    page.wait_text("#states", "4 stopped");
    page.wait_text("#program", "halo: ranks 0-3 (4)");
    page.wait_text("#tree", "main");
    page.wait("document.querySelectorAll('#mapcells text').length === 4");
    page.line("break exchange_halo");
    page.wait_text("#log", "breakpoint 1 at halo.c:");
    page.click("[data-line='continue &']");
    page.wait_text("#tree", "exchange_halo");
    page.wait_text("#maplegend", "ranks 0-3 (4)");
    page.complete("outl", "outliers ");
    page.complete("[2] print left_n", "[2] print left_neighbour ");
    // VS Code follows, and one click leads to the line in its editor.
    page.within = "";
    let begin = Place::line("halo.c", "int left_neighbour = rod");
    page.wait_text(".monaco-editor .active-line-number", &begin.to_string());
    let call = Place::line("halo.c", "heat = solve(&rod");
    page.within = "#controls";
    page.click("#tree [data-key*='main'] > .row .place");
    page.within = "";
    page.wait_text(".monaco-editor .active-line-number", &call.to_string());
    // A panel that is loaded anew has all of it again.
    page.within = "#controls";
    page.value("document.body.classList.add('old')");
    carry_out(&mut page, "Developer: Reload Webviews");
    page.within = "body:not(.old) #controls";
    page.wait_text("#log", "breakpoint 1 at halo.c:");
    page.wait_text("#tree", "exchange_halo");
    // Nothing moves any more under the mouse.
    page.wait_text("#states", "4 stopped");
    page.wait_text("#prompt", "4 stopped]");
    page.line("quit");
    page.wait_text("#log", "(sdm) quit");
    page.wait_text("#link", "The session is over.");
    let of_policy = |it: &&String| it.contains("Content Security Policy") || it.contains("Trusted");
    let complaints: Vec<_> = page.complaints.iter().filter(of_policy).collect();
    assert_eq!(complaints, Vec::<&String>::new());
    drop((page, server));
    place.assert_gone();
}
