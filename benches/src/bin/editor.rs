//! Response time in an editor when 10,000 ranks have stopped: the list of threads and the call stack.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sdm_benches::editor::{DEPTH, Scene};
use sdm_benches::table::Table;
use sdm_dap::frame::framed;
use serde_json::{Value, json};

/// An editor at ten thousand ranks
#[derive(clap::Parser)]
struct Arguments {
    /// Number of ranks
    #[arg(long, default_value_t = 10_000)]
    ranks: u32,
    /// In how many places they stop
    #[arg(long, default_values_t = [1, 64, 1000])]
    places: Vec<u32>,
    /// Number of measurements of each; the median counts
    #[arg(long, default_value_t = 9)]
    times: usize,
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let ranks = arguments.ranks;
    let head = [
        "places",
        "threads",
        "call stack, ms",
        "bytes: stop",
        "bytes: threads",
        "bytes: call stack and variables",
    ];
    let title = format!(
        "{ranks} ranks: from the tree's answer to the filled call stack, in the adapter alone"
    );
    let mut table = Table::new("editor", title, &head);
    for places in &arguments.places {
        let mut looks = Vec::new();
        for _ in 0..arguments.times.max(1) {
            looks.push(Scene::begin(ranks, *places)?.look()?);
        }
        looks.sort_by_key(|look| look.took);
        let look = &looks[looks.len() / 2];
        table.row(vec![
            places.to_string(),
            look.threads.to_string(),
            format!("{:.1}", look.took.as_secs_f64() * 1e3),
            look.bytes[0].to_string(),
            look.bytes[1].to_string(),
            look.bytes[2].to_string(),
        ]);
    }
    table.finish()?;
    let head = [
        "places",
        "threads",
        "all have stopped, ms",
        "call stack, ms",
        "bytes: stop and threads",
        "bytes: call stack and variables",
    ];
    let title = format!(
        "{ranks} emulated ranks under `sdm dap`: from `configurationDone` to the stop, and from there"
    );
    let mut table = Table::new("editor_emulated", title, &head);
    for places in &arguments.places {
        let mut looks = Vec::new();
        for _ in 0..arguments.times.max(1) {
            looks.push(Editor::measure(ranks, *places)?);
        }
        looks.sort_by_key(|look| look.filled);
        let look = &looks[looks.len() / 2];
        table.row(vec![
            places.to_string(),
            look.threads.to_string(),
            format!("{:.0}", look.stopped.as_secs_f64() * 1e3),
            format!("{:.1}", look.filled.as_secs_f64() * 1e3),
            look.bytes[0].to_string(),
            look.bytes[1].to_string(),
        ]);
    }
    table.finish()
}

/// Measurements of a stop under `sdm dap`, at the editor's end of the connection.
struct Seen {
    /// From the request `configurationDone` to the first `stopped` event.
    stopped: Duration,
    /// From the stop until the threads, the call stack and the variables have arrived.
    filled: Duration,
    threads: usize,
    /// Bytes received for the stop and the threads, and for the requests after them.
    bytes: [usize; 2],
}

/// An `sdm dap` from this program's folder, driven as an editor would.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    seq: i64,
    /// Number of bytes received.
    bytes: usize,
}

impl Editor {
    /// Measures a stop of all ranks at their beginning, and the requests of an editor that shows the place.
    fn measure(ranks: u32, places: u32) -> Result<Seen> {
        let path = std::env::temp_dir().join(format!("sdm-editor-{}", std::process::id()));
        let stacks =
            (0..places).map(|line| format!("stack = main m.c:9 > solve s.c:{}\n", line + 1));
        std::fs::write(&path, format!("[all]\n{}", stacks.collect::<String>()))?;
        let program = std::env::current_exe()?.with_file_name("sdm");
        let mut process = Process::new(program);
        process
            .arg("dap")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = process.spawn()?;
        let input = child.stdin.take().context("piped")?;
        let output = BufReader::new(child.stdout.take().context("piped")?);
        let mut editor = Self {
            child,
            input,
            output,
            seq: 0,
            bytes: 0,
        };
        let options = ["--tasks-per-server", "200", "--scenario"].map(str::to_owned);
        let options: Vec<_> = options
            .into_iter()
            .chain([path.display().to_string()])
            .collect();
        editor.ask("initialize", &json!({}))?;
        editor.ask(
            "launch",
            &json!({"emulate": ranks, "stopAtEntry": true, "sdmOptions": options}),
        )?;
        editor.bytes = 0;
        let began = Instant::now();
        editor.ask("configurationDone", &json!({}))?;
        let thread = loop {
            let message = editor.next()?;
            if message["event"] == "stopped" {
                break message["body"]["threadId"].clone();
            }
        };
        let stopped = began.elapsed();
        let threads = editor.ask("threads", &json!({}))?;
        // The events of the other threads have arrived before.
        let listed = editor.bytes;
        let threads = threads["threads"].as_array().map_or(0, Vec::len);
        ensure!((1..=64).contains(&threads), "{threads} threads");
        let stack = editor.ask("stackTrace", &json!({"threadId": thread, "levels": DEPTH}))?;
        let scopes = editor.ask("scopes", &json!({"frameId": stack["stackFrames"][0]["id"]}))?;
        let reference = &scopes["scopes"][1]["variablesReference"];
        editor.ask("variables", &json!({"variablesReference": reference}))?;
        let filled = began.elapsed() - stopped;
        let all = editor.bytes;
        editor.ask("disconnect", &json!({}))?;
        drop(editor.input);
        editor.child.wait()?;
        std::fs::remove_file(path)?;
        Ok(Seen {
            stopped,
            filled,
            threads,
            bytes: [listed, all - listed],
        })
    }

    /// Sends a request, and gives the body of its response.
    fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.seq += 1;
        let request = json!({
            "seq": self.seq, "type": "request", "command": command, "arguments": arguments,
        });
        self.input
            .write_all(&framed(request.to_string().as_bytes()))?;
        loop {
            let message = self.next()?;
            if message["type"] == "response" && message["request_seq"] == self.seq {
                ensure!(message["success"] == true, "{message}");
                return Ok(message["body"].clone());
            }
        }
    }

    fn next(&mut self) -> Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "sdm dap has ended");
            self.bytes += line.len();
            match line.trim_end().split_once(": ") {
                Some((_, value)) => length = value.parse()?,
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body)?;
        self.bytes += length;
        Ok(serde_json::from_slice(&body)?)
    }
}
