//! A map of a machine's nodes: one cell per node, or per block of nodes if there are more nodes than cells.

use ratatui::Frame;
use ratatui::layout::Rect;
use sdm_runtime::states::{NODE, NODE_EXTRA, NODE_PROCESSES, States};

use crate::platform_state::Item;
use crate::style::{Style, Tone, state, used};

/// A cell: the sign of the state, the sign of the use, and a space.
const CELL_COLUMNS: u16 = 3;

/// Consecutive nodes with equal attributes.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Index of the first node among the machine's nodes.
    start: u64,
    /// Number of nodes; at least 1.
    len: u64,
    /// Element number of the first node. None for a string id.
    id: Option<u32>,
    /// Index of the item that the nodes belong to.
    item: usize,
}

/// The nodes of one machine.
#[derive(Debug, Default)]
pub(crate) struct Map {
    items: Vec<Item>,
    spans: Vec<Span>,
    total: u64,
    /// Number of nodes per cell. None: as few as fit.
    block: Option<u64>,
    /// Index of the selected node, `< total` unless there is none.
    at: u64,
    /// Number of cells per line in the last frame.
    across: u64,
    /// Number of nodes per cell in the last frame.
    drawn: u64,
}

impl Map {
    /// Sets the nodes of the machine.
    pub(crate) fn fill(&mut self, items: Vec<Item>) {
        let mut found: Vec<(Option<u32>, u64, usize)> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let ranges = item.ranges();
            if ranges.is_empty() {
                found.push((None, 1, at));
            }
            let each = ranges.into_iter();
            found.extend(each.map(|(first, last)| (Some(first), u64::from(last - first) + 1, at)));
        }
        found.sort_by_key(|(id, _, item)| (*id, *item));
        self.total = 0;
        self.spans.clear();
        for (id, len, item) in found {
            self.spans.push(Span {
                start: self.total,
                len,
                id,
                item,
            });
            self.total += len;
        }
        self.items = items;
        self.at = self.at.min(self.total.saturating_sub(1));
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Moves the selection by cells to the right and down.
    pub(crate) fn step(&mut self, right: i64, down: i64) {
        let across = i64::try_from(self.across.max(1)).unwrap_or(i64::MAX);
        let block = i64::try_from(self.drawn.max(1)).unwrap_or(i64::MAX);
        let by = down.saturating_mul(across).saturating_add(right);
        let by = by.saturating_mul(block);
        let last = self.total.saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    /// Selects the cell in this column and line of the area where it is drawn, if there is one.
    pub(crate) fn choose(&mut self, column: u16, line: u16, area: Rect) {
        let (across, block) = (self.across.max(1), self.drawn.max(1));
        let first_line = self.first_line(area.height);
        let column = u64::from(column / CELL_COLUMNS);
        let cell = (first_line + u64::from(line)) * across + column;
        let is_there = line < area.height && column < across && cell * block < self.total;
        if is_there {
            self.at = cell * block;
        }
    }

    /// The first drawn line such that the selected cell is visible.
    fn first_line(&self, height: u16) -> u64 {
        let line = self.at / self.drawn.max(1) / self.across.max(1);
        (line + 1).saturating_sub(height.into())
    }

    /// A summary of the nodes: the number in each state and use, worst first, each with up to eight names.
    pub(crate) fn lines(&self) -> Vec<(String, Tone)> {
        let mut groups: Vec<(String, u64, Vec<&str>, Tone)> = Vec::new();
        for span in &self.spans {
            let node = &self.items[span.item];
            let words = words(node);
            let known = groups.iter_mut().find(|it| it.0 == words);
            match known {
                Some(known) => {
                    known.1 += span.len;
                    known.2.push(node.name());
                }
                None => {
                    let tone = signs(node).1;
                    groups.push((words, span.len, vec![node.name()], tone));
                }
            }
        }
        groups.sort_by_key(|it| std::cmp::Reverse((it.3, it.1)));
        let line = |(words, count, names, tone): (String, u64, Vec<&str>, Tone)| {
            let shown = names[..names.len().min(8)].join(" ");
            (format!("{count} {words}: {shown}"), tone)
        };
        groups.into_iter().map(line).collect()
    }

    /// Halves or doubles the number of nodes per cell.
    pub(crate) fn zoom(&mut self, closer: bool) {
        let now = self.block.unwrap_or(self.drawn).max(1);
        self.block = Some(match closer {
            true => (now / 2).max(1),
            false => (now * 2).min(self.total.next_power_of_two().max(1)),
        });
    }

    /// The attributes of the selected node, and its element's number. None without nodes; the number is None for a
    /// string id.
    pub(crate) fn selected(&self) -> Option<(&Item, Option<u32>)> {
        let found = self.spans.partition_point(|span| span.start <= self.at);
        let span = self.spans.get(found.checked_sub(1)?)?;
        let offset = u32::try_from(self.at - span.start).ok();
        let id = span.id.zip(offset).map(|(id, offset)| id + offset);
        Some((&self.items[span.item], id))
    }

    /// Draws the map. Returns the number of nodes per cell.
    pub(crate) fn draw(
        &mut self,
        frame: &mut Frame<'_>,
        area: Rect,
        style: Style,
        focus: bool,
    ) -> u64 {
        let across = u64::from((area.width / CELL_COLUMNS).max(1));
        let cells = across * u64::from(area.height.max(1));
        let fits = self.total.div_ceil(cells).max(1).next_power_of_two();
        let block = self.block.unwrap_or(fits).max(1);
        (self.across, self.drawn) = (across, block);
        let first_line = self.first_line(area.height);
        let mut span = 0;
        for y in 0..area.height {
            for x in 0..across {
                let cell = (first_line + u64::from(y)) * across + x;
                let begin = cell.saturating_mul(block);
                if begin >= self.total {
                    return block;
                }
                let (signs, tone) = self.block_signs(begin, block, &mut span);
                let column = area.x + u16::try_from(x).unwrap_or(0) * CELL_COLUMNS;
                let mut cells = style.tone(tone);
                if self.at / block == cell {
                    cells = cells.patch(style.selected(focus));
                }
                let buffer = frame.buffer_mut();
                buffer.set_stringn(column, area.y + y, signs, 2, cells);
            }
        }
        block
    }

    /// The sign of the block of nodes from `begin` on, which is that of its worst node. The search for its
    /// spans begins at `span`.
    fn block_signs(&self, begin: u64, block: u64, span: &mut usize) -> (String, Tone) {
        while let Some(it) = self.spans.get(*span)
            && it.start + it.len <= begin
        {
            *span += 1;
        }
        let inside = self.spans.iter().skip(*span);
        let inside = inside.take_while(|it| it.start < begin + block);
        let each = inside.map(|it| self.signs(it.item));
        each.max_by_key(|(_, tone)| *tone)
            .unwrap_or_else(|| ("??".to_owned(), Tone::Unknown))
    }

    fn signs(&self, item: usize) -> (String, Tone) {
        signs(&self.items[item])
    }
}

/// The states of a node, its use, and its processes.
fn states(node: &Item) -> [&str; 3] {
    [&NODE, &NODE_EXTRA, &NODE_PROCESSES]
        .map(|states: &States| node.get(states.attribute).unwrap_or(states.default))
}

/// A node's states in words; a single NONE if the node is not allocated and has no processes.
pub(crate) fn words(node: &Item) -> String {
    let [of_node, of_use, processes] = states(node);
    if processes == NODE_PROCESSES.default {
        return format!("{of_node} {of_use}");
    }
    match of_use == NODE_EXTRA.default {
        true => format!("{of_node} {processes}"),
        false => format!("{of_node} {of_use} {processes}"),
    }
}

/// Two signs that are distinct for every combination of state and use.
pub(crate) fn signs(node: &Item) -> (String, Tone) {
    let [of_node, of_use, processes] = states(node);
    let ((first, good), (second, of_use)) = (state(of_node), used(of_use, processes));
    // A bad state of the node determines the tone; otherwise its use does.
    let tone = if good > Tone::Good { good } else { of_use };
    (format!("{first}{second}"), tone)
}
