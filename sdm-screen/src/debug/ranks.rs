//! A map of all ranks: one cell per rank, or per block of ranks if there are more ranks than cells.

use ratatui::layout::Rect;
use sdm_debug::TaskState;
use sdm_idset::{IdSet, TaskId};
use sdm_view::item::{Happening, RankRow};
use sdm_view::overview::Overview;
use sdm_view::readable;

use crate::style::Tone;

/// Letters for the innermost frames of ranks, most ranks first. The last one stands for all further frames.
const PLACES: &[u8] = b"abcdefghijklmnopqrstuvw*";

/// Tasks with the same state and, if they are stopped, the same innermost frame. Crashed tasks form one class, whatever
/// their frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankClass {
    pub(crate) sign: char,
    pub(crate) tone: Tone,
    pub(crate) tasks: IdSet,
    /// The common state or innermost frame, as text.
    pub(crate) what: String,
}

/// All ranks by class.
#[derive(Debug, Default)]
pub(crate) struct RankMap {
    all: IdSet,
    pub(crate) classes: Vec<RankClass>,
    /// Index of the selected rank.
    pub(crate) at: u64,
    /// The class in each cell of the last frame's area.
    cells: Vec<u8>,
    /// The width and height of the area for which `cells` was computed. None if `cells` is out of date.
    drawn: Option<(u16, u16)>,
    pub(crate) block: u64,
    pub(crate) across: u64,
}

impl RankMap {
    /// Sets the state of the session.
    pub(crate) fn fill(&mut self, board: &Overview) {
        let classes = classes(board);
        if classes != self.classes || board.all != self.all {
            self.classes = classes;
            self.all.clone_from(&board.all);
            self.at = self.at.min(self.all.len().saturating_sub(1));
            self.drawn = None;
        }
    }

    /// The class of the cell with this index. None beyond the last one.
    pub(crate) fn cell(&self, at: u64) -> Option<&RankClass> {
        let class = self.cells.get(usize::try_from(at).ok()?)?;
        self.classes.get(usize::from(*class))
    }

    /// Computes the class in each cell for an area, unless it is current.
    pub(crate) fn lay_out(&mut self, area: Rect) {
        let size = (area.width, area.height);
        if self.drawn == Some(size) {
            return;
        }
        self.drawn = Some(size);
        let room = u64::from(area.width.max(1)) * u64::from(area.height.max(1));
        self.across = u64::from(area.width.max(1));
        self.block = self.all.len().div_ceil(room).max(1);
        let count = usize::try_from(self.all.len().div_ceil(self.block)).unwrap_or(0);
        self.cells = vec![u8::MAX; count];
        let first = self.all.first().map_or(0, |id| u64::from(id.0));
        let last = self.all.last().map_or(0, |id| u64::from(id.0));
        let is_dense = last - first + 1 == self.all.len();
        // The smallest class is drawn last, so that it is visible in a cell of several ranks.
        for (at, class) in self.classes.iter().enumerate() {
            let Ok(at) = u8::try_from(at) else {
                break;
            };
            for range in class.tasks.ranges() {
                let place = |id: u32| match is_dense {
                    true => Some(u64::from(id) - first),
                    false => self.all.index_of(TaskId(id)),
                };
                let places = place(*range.start()).zip(place(*range.end()));
                let cells = places.and_then(|(from, to)| {
                    let cell = |place: u64| usize::try_from(place / self.block).ok();
                    self.cells.get_mut(cell(from)?..=cell(to)?)
                });
                cells.into_iter().flatten().for_each(|cell| *cell = at);
            }
        }
    }

    /// Moves the selection by cells to the right and down.
    pub(crate) fn step(&mut self, right: i64, down: i64) {
        let across = i64::try_from(self.across.max(1)).unwrap_or(i64::MAX);
        let block = i64::try_from(self.block.max(1)).unwrap_or(i64::MAX);
        let by = down.saturating_mul(across).saturating_add(right);
        let last = self.all.len().saturating_sub(1);
        self.at = self
            .at
            .saturating_add_signed(by.saturating_mul(block))
            .min(last);
    }

    /// Selects the cell at this column and line. Returns false if there is none.
    pub(crate) fn choose(&mut self, column: u16, line: u16) -> bool {
        let cell = u64::from(line) * self.across + u64::from(column);
        let is_there = u64::from(column) < self.across && self.cell(cell).is_some();
        if is_there {
            self.at = cell * self.block.max(1);
        }
        is_there
    }

    /// The ranks of the selected cell.
    pub(crate) fn selected(&self) -> IdSet {
        let block = self.block.max(1);
        let first = self.at / block * block;
        let ids = (first..(first + block).min(self.all.len())).map_while(|at| self.all.nth(at));
        ids.collect::<IdSet>()
    }

    /// The class of one rank; None for an unknown rank.
    pub(crate) fn class_of(&self, id: TaskId) -> Option<&RankClass> {
        self.classes.iter().rfind(|class| class.tasks.contains(id))
    }
}

/// The classes, most tasks first; classes with errors last.
fn classes(board: &Overview) -> Vec<RankClass> {
    let mut classes: Vec<RankClass> = Vec::new();
    let mut standing: Vec<(&RankRow, IdSet)> = Vec::new();
    for row in &board.ranks {
        match (&row.state, row.health) {
            (TaskState::Stopped, None) => standing.push((row, row.tasks.clone())),
            (state, health) => {
                let (sign, tone, what) = of_state(state, health);
                add(&mut classes, sign, tone, what, &row.tasks);
            }
        }
    }
    let crashed = |row: &RankRow| match &row.last {
        Some(Happening::Stopped(stop)) => stop.reason.is_crash(),
        _ => false,
    };
    let bad = IdSet::union_all(
        standing
            .iter()
            .filter(|(row, _)| crashed(row))
            .map(|(_, tasks)| tasks),
    );
    let all_standing = IdSet::union_all(standing.iter().map(|(_, tasks)| tasks));
    let mut left = all_standing.difference(&bad);
    let places = match board.is_stale {
        false => places(board),
        true => Vec::new(),
    };
    for (at, (tasks, what)) in places.into_iter().enumerate() {
        let here = tasks.intersection(&left);
        left.subtract(&here);
        if !here.is_empty() {
            let sign = char::from(PLACES[at.min(PLACES.len() - 1)]);
            let tone = if at == 0 { Tone::Good } else { Tone::Wait };
            add(&mut classes, sign, tone, what, &here);
        }
    }
    add(&mut classes, '#', Tone::Good, "stopped".to_owned(), &left);
    add(&mut classes, '!', Tone::Bad, "crashed".to_owned(), &bad);
    classes.retain(|class| !class.tasks.is_empty());
    classes.sort_by(|a, b| {
        let bad = (a.tone == Tone::Bad).cmp(&(b.tone == Tone::Bad));
        bad.then(b.tasks.len().cmp(&a.tasks.len()))
    });
    classes
}

/// The innermost frames as text, each with its tasks, most tasks first.
fn places(board: &Overview) -> Vec<(IdSet, String)> {
    let mut places: Vec<(IdSet, String)> = Vec::new();
    if let Some(stacks) = &board.sight.stacks {
        stacks.tree.walk(|_, node| {
            if !node.here.is_empty() {
                let function = readable::function(&node.frame.function);
                let what = match node.frame.line {
                    0 => function.into_owned(),
                    line => format!("{function} {}:{line}", node.frame.file),
                };
                places.push((node.here.clone(), what));
            }
        });
    }
    places.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
    places
}

fn of_state(state: &TaskState, health: Option<&'static str>) -> (char, Tone, String) {
    let (sign, tone) = match (health, state) {
        (Some("lost"), _) => ('?', Tone::Bad),
        (Some(_), _) => ('~', Tone::Unknown),
        (None, TaskState::Running) => ('>', Tone::Busy),
        (None, TaskState::Starting) => ('^', Tone::Busy),
        (None, TaskState::Stopped) => ('#', Tone::Good),
        (None, TaskState::Exited(0)) => ('-', Tone::Off),
        (None, TaskState::Exited(_)) => ('X', Tone::Bad),
        (None, TaskState::Signalled(_)) => ('!', Tone::Bad),
        (None, TaskState::Detached) => ('=', Tone::Off),
        (None, _) => ('.', Tone::Off),
    };
    let what = match (health, state) {
        (Some(health), _) => health.to_owned(),
        (None, TaskState::Exited(code)) => format!("exited with code {code}"),
        (None, TaskState::Signalled(signal)) => format!("ended by {signal}"),
        (None, state) => state.name().to_owned(),
    };
    (sign, tone, what)
}

fn add(classes: &mut Vec<RankClass>, sign: char, tone: Tone, what: String, tasks: &IdSet) {
    let same = |class: &&mut RankClass| (class.sign, &class.what) == (sign, &what);
    match classes.iter_mut().find(same) {
        Some(class) => class.tasks.union_with(tasks),
        None => classes.push(RankClass {
            sign,
            tone,
            tasks: tasks.clone(),
            what,
        }),
    }
}
