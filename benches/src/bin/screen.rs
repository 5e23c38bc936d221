//! Cost of a frame of the screens: a session of 10,000 tasks, and a cluster with a job of 1,000,000 processes.

use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use sdm_benches::heap::{self, Counted};
use sdm_benches::table::Table;
use sdm_debug::TaskState;
use sdm_debug::reply::StackFrame;
use sdm_debug::rules::{StackNode, StackTree};
use sdm_idset::{IdSet, TaskId};
use sdm_runtime::wire::event::Kind;
use sdm_screen::{Cluster, Debugger, Facts, Item, KeyCode, KeyEvent, Style, Top};
use sdm_view::item::{MergedStacks, RankRow};
use sdm_view::overview::{Named, Overview, Sight, SourceSight};
use sdm_view::render::Names;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const TASKS: u32 = 10_000;
/// Number of places, and of distinct values of a variable.
const PLACES: u32 = 500;
const NODES: u32 = 10_000;
const PROCESSES: u32 = 1_000_000;
const STYLE: Style = Style {
    color: true,
    ascii: false,
    palette: sdm_screen::Palette::Terminal,
    linear: false,
};

/// Cost of a frame of the screens
#[derive(clap::Parser)]
struct Arguments {
    /// Number of repetitions; the smallest time counts
    #[arg(long, default_value_t = 50)]
    turns: u32,
}

/// Cost of a frame: processor time, and bytes for the terminal.
#[derive(Clone, Copy, Default)]
struct FrameCost {
    time: Duration,
    bytes: usize,
}

/// Output of a terminal that only counts the bytes.
#[derive(Clone, Default)]
struct Written(Rc<Cell<usize>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.set(self.0.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A terminal, with the count of the bytes that are written to it.
struct Paper {
    terminal: Terminal<CrosstermBackend<Written>>,
    written: Written,
}

impl Paper {
    fn new(columns: u16, lines: u16) -> Result<Self> {
        let viewport = Viewport::Fixed(Rect::new(0, 0, columns, lines));
        let written = Written::default();
        let backend = CrosstermBackend::new(written.clone());
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(Self { terminal, written })
    }

    fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<usize> {
        self.terminal.draw(draw)?;
        Ok(self.written.0.take())
    }
}

/// Processor time of this thread.
fn now() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// The smallest cost of a frame among `turns` calls of `turn`, each of which draws one and returns its bytes.
fn cost(turns: u32, mut turn: impl FnMut(u32) -> Result<usize>) -> Result<FrameCost> {
    let mut best: Option<FrameCost> = None;
    for number in 0..turns.max(1) {
        let before = now()?;
        let bytes = turn(number)?;
        let time = now()?.saturating_sub(before);
        if best.is_none_or(|it| time < it.time) {
            best = Some(FrameCost { time, bytes });
        }
    }
    best.context("at least one turn")
}

fn set(from: u32, step: u32, below: u32) -> IdSet {
    (from..below).step_by(step as usize).map(TaskId).collect()
}

/// A board of 10,000 tasks in 500 places, each place with a value of its own.
fn board(shift: u32) -> Overview {
    let mut children = Vec::new();
    let mut values = Vec::new();
    for place in 0..PLACES {
        let tasks = set(place, PLACES, TASKS);
        children.push(StackNode {
            frame: StackFrame::own("exchange", "halo.c", 100 + place + shift),
            tasks: tasks.clone(),
            threads: tasks.len(),
            here: tasks.clone(),
            children: Vec::new(),
        });
        values.push((tasks, (place + shift).to_string()));
    }
    let all = set(0, 1, TASKS);
    let root = StackNode {
        frame: StackFrame::own("main", "halo.c", 70),
        tasks: all.clone(),
        threads: all.len(),
        here: IdSet::new(),
        children,
    };
    let tree = StackTree {
        roots: vec![root],
        ..StackTree::default()
    };
    let lines = (0..2000).map(|line| format!("    cell[{line}] = left + right;"));
    let sight = Sight {
        stacks: Some(MergedStacks {
            tasks: all.clone(),
            tree,
        }),
        source: Some(SourceSight {
            path: "/home/me/halo.c".to_owned(),
            first: 1,
            lines: Arc::new(lines.collect()),
            line: 100 + shift,
            function: "exchange".to_owned(),
            is_caller: false,
            tasks: all.clone(),
        }),
        locals: vec![Named {
            name: "step".to_owned(),
            values,
        }],
        ..Sight::default()
    };
    Overview {
        prompt: "[all 10000: 10000 stopped] (sdm) ".to_owned(),
        all: all.clone(),
        focus: all.clone(),
        ranks: vec![RankRow {
            program: String::new(),
            tasks: all,
            state: TaskState::Stopped,
            last: None,
            health: None,
            place: None,
        }],
        sight: Arc::new(sight),
        ..Overview::default()
    }
}

fn item(kind: Kind, parent: &str, ids: String, attributes: &[(&str, String)]) -> Item {
    let attributes = attributes.iter();
    Item {
        cluster: "here".to_owned(),
        kind,
        parent: parent.to_owned(),
        ids,
        attributes: attributes
            .map(|(id, value)| ((*id).to_owned(), value.clone()))
            .collect(),
        sets: Vec::new(),
    }
}

/// 10,000 nodes and a job of 1,000,000 processes with pids of their own, a hundred on each node.
fn facts(shift: u32) -> Facts {
    let mut items = vec![
        item(
            Kind::Machine,
            "1",
            "2".to_owned(),
            &[("name", "big".to_owned())],
        ),
        item(
            Kind::Job,
            "1",
            "3".to_owned(),
            &[
                ("jobState", "RUNNING".to_owned()),
                ("jobNumProcs", PROCESSES.to_string()),
            ],
        ),
    ];
    let each = PROCESSES / NODES;
    for node in 0..NODES {
        let used = if node % 97 == shift {
            "NONE"
        } else {
            "RUNNING_PROCESS"
        };
        let known = [
            ("name", format!("n{node}")),
            ("nodeState", "UP".to_owned()),
            ("nodeExtraState", used.to_owned()),
        ];
        items.push(item(Kind::Node, "2", (1000 + node).to_string(), &known));
        let (first, last) = (node * each, node * each + each - 1);
        let ids = format!("{}-{}", 1_000_000 + first, 1_000_000 + last);
        let known = [
            ("processState", "RUNNING".to_owned()),
            ("processNodeId", (1000 + node).to_string()),
        ];
        let mut processes = item(Kind::Process, "3", ids, &known);
        processes.sets = vec![
            ("processIndex".to_owned(), format!("{first}-{last}")),
            (
                "processPID".to_owned(),
                format!("{}-{}", 2000 + node, 2099 + node),
            ),
        ];
        items.push(processes);
    }
    Facts {
        clusters: vec![Cluster {
            name: "here".to_owned(),
            state: "STARTED".to_owned(),
            ..Cluster::default()
        }],
        items,
        ..Facts::default()
    }
}

struct Rows<'a> {
    table: &'a mut Table,
    screen: String,
    memory: i64,
}

impl Rows<'_> {
    fn row(&mut self, what: &str, cost: FrameCost, limit: &str) {
        self.table.row(vec![
            self.screen.clone(),
            what.to_owned(),
            format!("{:.3}", cost.time.as_secs_f64() * 1e3),
            limit.to_owned(),
            cost.bytes.to_string(),
            format!("{:.1}", self.memory as f64 / 1e6),
        ]);
    }
}

fn debugger(turns: u32, size: (u16, u16), table: &mut Table) -> Result<()> {
    let mut paper = Paper::new(size.0, size.1)?;
    let before = heap::bytes();
    let mut debugger = Debugger::new(STYLE, Names::ranks());
    debugger.handle_board(board(0));
    debugger.handle_asked(Some(("(sdm) ".to_owned(), false)));
    paper.draw(|frame| debugger.draw(frame))?;
    let memory = heap::bytes().wrapping_sub(before).cast_signed();
    let screen = format!("debugger, 10,000 tasks, {}x{}", size.0, size.1);
    let mut rows = Rows {
        table,
        screen,
        memory,
    };
    let boards = [board(1), board(2)];
    let stop = cost(turns, |number| {
        debugger.handle_board(boards[number as usize % 2].clone());
        paper.draw(|frame| debugger.draw(frame))
    })?;
    rows.row("all stand elsewhere, in 500 places", stop, "16");
    let key = cost(turns, |_| {
        debugger.handle_key(KeyEvent::from(KeyCode::Down));
        while debugger.poll_action().is_some() {}
        paper.draw(|frame| debugger.draw(frame))
    })?;
    rows.row("a key", key, "16");
    let last = boards[(turns.max(1) as usize - 1) % 2].clone();
    let _ = debugger.take_changed();
    let same = cost(turns, |_| {
        debugger.handle_board(last.clone());
        debugger.handle_age(0);
        match debugger.take_changed() {
            true => paper.draw(|frame| debugger.draw(frame)),
            false => Ok(0),
        }
    })?;
    rows.row("nothing changed", same, "2");
    Ok(())
}

fn top(turns: u32, size: (u16, u16), table: &mut Table) -> Result<()> {
    let mut paper = Paper::new(size.0, size.1)?;
    let before = heap::bytes();
    let mut top = Top::new(STYLE, 1);
    top.handle_facts(facts(0));
    paper.draw(|frame| top.draw(frame))?;
    let memory = heap::bytes().wrapping_sub(before).cast_signed();
    let screen = format!("sdm top, 1,000,000 processes, {}x{}", size.0, size.1);
    let mut rows = Rows {
        table,
        screen,
        memory,
    };
    let keys = |top: &mut Top, keys: &[KeyCode]| {
        keys.iter()
            .for_each(|key| top.handle_key(KeyEvent::from(*key)));
    };
    for (name, typed) in [
        (
            "a key in the processes",
            &[KeyCode::Char('3'), KeyCode::Tab][..],
        ),
        (
            "a key in the map of the nodes",
            &[KeyCode::Char('2'), KeyCode::Tab],
        ),
    ] {
        keys(&mut top, typed);
        let key = cost(turns, |_| {
            keys(&mut top, &[KeyCode::Down]);
            paper.draw(|frame| top.draw(frame))
        })?;
        rows.row(name, key, "16");
    }
    let known = [facts(1), facts(2)];
    keys(&mut top, &[KeyCode::Char('3')]);
    let mut both = known.iter().cloned().cycle();
    let news = cost(turns, |_| {
        let facts = both.next().context("there is always another one")?;
        top.handle_facts(facts);
        paper.draw(|frame| top.draw(frame))
    })?;
    rows.row("nodes change, with 10,000 rows of processes", news, "-");
    let _ = top.take_changed();
    let same = cost(turns, |_| {
        top.handle_time(1);
        match top.take_changed() {
            true => paper.draw(|frame| top.draw(frame)),
            false => Ok(0),
        }
    })?;
    rows.row("nothing changed", same, "2");
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = "processor time of a frame";
    let head = [
        "screen",
        "what happens",
        "processor time, ms",
        "aim, ms",
        "bytes for the terminal",
        "memory, MB",
    ];
    let mut table = Table::new("screen", title, &head);
    for size in [(80, 24), (200, 60)] {
        debugger(arguments.turns, size, &mut table)?;
        top(arguments.turns, size, &mut table)?;
    }
    table.finish()
}
