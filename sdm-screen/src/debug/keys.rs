//! Handling of keys in the debugger's screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Debugger, Panel, ScreenAction, source, values};

/// Minimum number of columns for the long list of keys of the source panel.
const COLUMNS_OF_ALL: u16 = 140;
/// Number of lines that PgUp and PgDn move.
const PAGE: i32 = 15;

/// A key, with the line that it sends to the session.
pub(crate) struct Action {
    pub(crate) key: char,
    /// The function key with this action in other debuggers. None if there is none.
    function: Option<(u8, KeyModifiers)>,
    line: &'static str,
    /// True if the action needs a stopped task.
    stands: bool,
}

const fn action(key: char, line: &'static str, stands: bool) -> Action {
    Action {
        key,
        function: None,
        line,
        stands,
    }
}

/// gdb's single-key commands, and those of other debuggers. Commands that continue tasks do not block the screen; `run`
/// does until the tasks stop.
pub(crate) const ACTIONS: [Action; 11] = [
    Action {
        function: Some((5, KeyModifiers::NONE)),
        ..action('c', "continue &", true)
    },
    Action {
        function: Some((10, KeyModifiers::NONE)),
        ..action('n', "next &", true)
    },
    Action {
        function: Some((11, KeyModifiers::NONE)),
        ..action('s', "step &", true)
    },
    action('o', "nexti &", true),
    action('i', "stepi &", true),
    Action {
        function: Some((11, KeyModifiers::SHIFT)),
        ..action('f', "finish &", true)
    },
    action('u', "up", true),
    action('d', "down", true),
    action('r', "run", false),
    action('D', "diagnose", false),
    action('q', "quit", false),
];

impl Debugger {
    /// Handles a key.
    pub fn handle_key(&mut self, key: KeyEvent) {
        self.set_changed();
        self.clear_hint();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if std::mem::take(&mut self.is_prefixed) {
            // gdb takes both, with and without Ctrl.
            if matches!(key.code, KeyCode::Char('a' | 'A')) {
                let typed = self.line.text().to_owned();
                self.line.set("");
                self.ask(ScreenAction::Leave(typed));
            }
            return;
        }
        let meant = match self.panel {
            Panel::Prompt => Some(key),
            _ if self.search.typed().is_some() => Some(key),
            _ => self.bindings.meant(key),
        };
        let Some(key) = meant else {
            return;
        };
        match key.code {
            KeyCode::Char('x') if control => self.is_prefixed = true,
            KeyCode::Char('c') if control => self.interrupt(),
            KeyCode::Char('z') if control && self.asked.is_some() => {
                self.ask(ScreenAction::Suspend)
            }
            KeyCode::Char('z') if control => self.ask(ScreenAction::Unwait),
            KeyCode::Char('l') if control => self.ask(ScreenAction::Redraw),
            _ if std::mem::take(&mut self.helps) => {}
            _ if self.search.typed().is_some() => self.search_key(key),
            _ if self.panel == Panel::Prompt => self.prompt_key(key),
            _ => self.single_key(key),
        }
    }

    fn interrupt(&mut self) {
        self.held = None;
        if self.asked.is_none() {
            return self.ask(ScreenAction::Interrupt);
        }
        if !self.line.text().is_empty() {
            self.line.set("");
        } else if self.is_question() {
            self.say("n".to_owned());
        } else if self.board.running.is_empty() {
            "no rank is running; press q to end the session".clone_into(&mut self.hint);
        } else {
            self.say("interrupt".to_owned());
        }
    }

    fn is_question(&self) -> bool {
        self.asked.as_ref().is_some_and(|(_, question)| *question)
    }

    fn prompt_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Esc => self.go_to(self.before),
            KeyCode::Enter => {
                let line = self.line.take(self.is_question());
                if std::mem::take(&mut self.visits) {
                    self.go_to(self.before);
                }
                self.say(line);
            }
            KeyCode::Tab => {
                let typed = self.line.before().to_owned();
                self.ask(ScreenAction::Complete(typed));
            }
            KeyCode::Char('d')
                if key.modifiers.contains(KeyModifiers::CONTROL) && self.line.text().is_empty() =>
            {
                self.ask(ScreenAction::Eof);
            }
            KeyCode::PageUp => self.console.scroll(PAGE as isize),
            KeyCode::PageDown => self.console.scroll(-(PAGE as isize)),
            _ => {
                self.line.key(key);
            }
        }
    }

    fn single_key(&mut self, key: KeyEvent) {
        let is_action = |action: &&Action| match key.code {
            KeyCode::Char(c) => c == action.key,
            KeyCode::F(number) => action.function == Some((number, key.modifiers)),
            _ => false,
        };
        if let Some(action) = ACTIONS.iter().find(is_action) {
            return self.act(action);
        }
        match key.code {
            KeyCode::Char(c @ '1'..='6') => {
                let at = usize::try_from(u32::from(c) - u32::from('1')).unwrap_or(0);
                self.go_to(Panel::ALL[at]);
            }
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Panel::ALL.len() - 1),
            KeyCode::Char(':') => self.visit(),
            KeyCode::Char('/') => self.search.begin(),
            KeyCode::Char('?') | KeyCode::F(1) => self.helps = true,
            KeyCode::Char('z') => self.zoomed = !self.zoomed,
            KeyCode::Char('p') | KeyCode::F(6) => self.pause(),
            KeyCode::Char('b') | KeyCode::F(9) => self.toggle_breakpoint(),
            KeyCode::Char('t') => self.run_to_line(),
            KeyCode::Char('w') => self.watch(),
            KeyCode::Char('y') => self.copy(),
            KeyCode::Char('P') => {
                self.style.palette = self.style.palette.next();
                self.hint = match self.style.color {
                    true => format!("colours: {}", self.style.palette.word()),
                    false => "NO_COLOR is set: colours are off".to_owned(),
                };
            }
            KeyCode::Char('a') => self.select(self.board.all.clone()),
            KeyCode::Enter => self.enter(),
            KeyCode::Up | KeyCode::Char('k') => self.step(0, -1),
            KeyCode::Down | KeyCode::Char('j') => self.step(0, 1),
            KeyCode::Left | KeyCode::Char('h') => self.step(-1, 0),
            KeyCode::Right | KeyCode::Char('l') => self.step(1, 0),
            KeyCode::PageUp => self.step(0, -PAGE),
            KeyCode::PageDown => self.step(0, PAGE),
            KeyCode::Char('g') | KeyCode::Home => self.step(0, i32::MIN / 2),
            KeyCode::Char('G') | KeyCode::End => self.step(0, i32::MAX / 2),
            KeyCode::Char(c) => {
                self.hint = format!("`{c}` has no function here; press ? for the list of keys")
            }
            _ => {}
        }
    }

    /// Moves the keyboard focus by a number of panels.
    fn turn(&mut self, by: usize) {
        let at = self.panel.number() - 1;
        self.go_to(Panel::ALL[(at + by) % Panel::ALL.len()]);
    }

    /// Sends an action's line once the shell requests one, or shows the reason why it cannot.
    fn act(&mut self, action: &Action) {
        let word = action.line.trim_end_matches(" &");
        if self.asked.is_none() {
            self.hint_at_line(format!(
                "{word}: starts when the current command has ended; Ctrl-C cancels both"
            ));
            self.held = Some(action.key);
            return;
        }
        if action.stands && !self.stands() {
            let running = !self.board.running.is_disjoint(&self.board.focus);
            self.hint = match running {
                true => format!("{word}: no rank in focus is stopped; press p to stop them"),
                false => {
                    format!("{word}: all ranks in focus have ended; press r to start the job again")
                }
            };
            return;
        }
        self.say(action.line.to_owned());
    }

    /// Handles a key that was typed while the previous line was carried out. A question of that line is not
    /// answered by it.
    pub(super) fn act_on_held(&mut self) {
        if let Some((_, is_question)) = self.asked
            && let Some(key) = self.held.take()
            && !is_question
        {
            let held = ACTIONS.iter().find(|action| action.key == key);
            held.into_iter().for_each(|action| self.act(action));
        }
    }

    /// True if a task of the focus is stopped.
    fn stands(&self) -> bool {
        self.board.ranks.iter().any(|row| {
            let stopped = row.state == sdm_debug::TaskState::Stopped;
            stopped && !row.tasks.is_disjoint(&self.board.focus)
        })
    }

    /// True if the shell requests a line. Otherwise a hint is shown.
    fn is_free(&mut self, word: &str) -> bool {
        if self.asked.is_none() {
            self.hint_at_line(format!(
                "{word}: the previous command is still running; Ctrl-C cancels it"
            ));
        }
        self.asked.is_some()
    }

    pub(super) fn clear_hint(&mut self) {
        self.hint.clear();
        self.hints_at_line = false;
    }

    /// Shows a hint while the shell carries out a line.
    fn hint_at_line(&mut self, hint: String) {
        self.hint = hint;
        self.hints_at_line = true;
    }

    fn pause(&mut self) {
        if self.asked.is_none() {
            return self.ask(ScreenAction::Interrupt);
        }
        match self.board.running.is_empty() {
            true => "interrupt: no rank is running".clone_into(&mut self.hint),
            false => self.say("interrupt".to_owned()),
        }
    }

    pub(super) fn toggle_breakpoint(&mut self) {
        if !self.is_free("break") {
            return;
        }
        let at = self.source.at;
        let path = self.board.sight.source.as_ref().map(|it| it.path.clone());
        let Some(path) = path.filter(|_| at > 0) else {
            "break: no source line is shown; use `:` and `break FUNCTION`"
                .clone_into(&mut self.hint);
            return;
        };
        let line = match source::breakpoint(&self.board, &path, at) {
            Some(known) => format!("delete {}", known.number),
            None => format!("break {}:{at}", path.rsplit('/').next().unwrap_or(&path)),
        };
        self.say(line);
    }

    fn run_to_line(&mut self) {
        if !self.is_free("advance") {
            return;
        }
        let at = self.source.at;
        match self.board.sight.source.as_ref().filter(|_| at > 0) {
            Some(source) => {
                let file = source.path.rsplit('/').next().unwrap_or(&source.path);
                let line = format!("advance {file}:{at} &");
                self.say(line);
            }
            None => "advance: no source line is shown".clone_into(&mut self.hint),
        }
    }

    /// Begins a `display` line at the prompt.
    fn watch(&mut self) {
        self.line.set("display ");
        self.visit();
    }

    /// Copies the selected line to the terminal's clipboard: in the map the selected ranks, in output and prompt the
    /// last line of output.
    fn copy(&mut self) {
        let sight = &self.board.sight;
        let text = match self.panel {
            Panel::Source => sight.source.as_ref().and_then(|source| {
                let at = self.source.at.checked_sub(source.first)?;
                source.lines.get(usize::try_from(at).ok()?).cloned()
            }),
            Panel::Stacks => self.stacks.rows.get(self.stacks.at).map(|row| {
                let who = self.names.label(&row.tasks, usize::MAX);
                format!("{who}: {}", row.place)
            }),
            Panel::Ranks => Some(self.ranks.selected().to_string()),
            Panel::Values => {
                let rows = self.value_rows();
                rows.get(self.values_at)
                    .map(|row| row.text.trim().to_owned())
            }
            Panel::Output | Panel::Prompt => {
                let last = self.printed.back();
                last.map(|it| String::from_utf8_lossy(&it.line).into_owned())
            }
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => {
                self.hint = format!("copied: {}", sdm_text::printable(text.as_bytes()));
                self.ask(ScreenAction::Copy(text));
            }
            None => "this panel has nothing to copy".clone_into(&mut self.hint),
        }
    }

    /// Selects these tasks as the focus.
    pub(super) fn select(&mut self, tasks: sdm_idset::IdSet) {
        if !tasks.is_empty() {
            self.wanted_focus = Some(tasks);
            self.tell_focus();
        }
    }

    fn enter(&mut self) {
        match self.panel {
            Panel::Ranks => self.select(self.ranks.selected()),
            Panel::Stacks => {
                if let Some(row) = self.stacks.rows.get(self.stacks.at) {
                    self.select(row.tasks.clone());
                }
            }
            Panel::Values => {
                if !self.is_free("outliers") {
                    return;
                }
                let rows = self.value_rows();
                let row = rows.get(self.values_at);
                let named = row.and_then(|row| values::named(&self.board.sight).nth(row.of));
                if let Some(name) = named.map(|it| it.name.clone()) {
                    self.say(format!("outliers {name}"));
                }
            }
            _ => self.go_to(Panel::Prompt),
        }
    }

    /// Moves the selection in the panel.
    pub(crate) fn step(&mut self, right: i32, down: i32) {
        let by = isize::try_from(down).unwrap_or(0);
        match self.panel {
            Panel::Source => self.source.step(self.board.sight.source.as_ref(), down),
            Panel::Stacks => {
                if let Some(tasks) = self.stacks.step(by).filter(|_| down != 0) {
                    self.select(tasks);
                }
            }
            Panel::Ranks => self.ranks.step(right.into(), down.into()),
            Panel::Values => self.step_values(by),
            Panel::Output => self.step_output(by),
            Panel::Prompt => {}
        }
    }

    pub(super) fn step_values(&mut self, by: isize) {
        let rows = self.value_rows().len();
        let at = self.values_at.saturating_add_signed(by);
        self.values_at = at.min(rows.saturating_sub(1));
    }

    /// Gives the prompt the keyboard focus for one line.
    fn visit(&mut self) {
        self.go_to(Panel::Prompt);
        self.visits = true;
    }

    fn set_changed(&mut self) {
        self.handle_resize();
    }

    /// The bottom line, with the key bindings.
    pub(crate) fn foot(&self) -> String {
        if let Some(typed) = self.search.typed() {
            let typed = sdm_text::printable(typed.as_bytes());
            return format!("/{typed}  (Enter: search; empty line: search again; Esc: back)");
        }
        match self.panel {
            Panel::Prompt => self.footer().to_owned(),
            _ => self.bindings.footer(self.footer()),
        }
    }

    /// The keys with an action here.
    fn footer(&self) -> &'static str {
        match self.panel {
            Panel::Prompt if self.asked.is_none() => {
                "^C stop the ranks  ^Z back to the prompt  Esc panels"
            }
            Panel::Prompt if self.is_question() => "type the answer, then Enter  ^C answers no",
            Panel::Prompt => "Enter run the line  Tab complete  Esc panels  ^X A prompt alone",
            _ if self.asked.is_none() => "^C cancel the command  1-6 panels  ? help",
            _ if !self.stands() && !self.board.running.is_empty() => {
                "p stop running ranks  D diagnose a hang  : command  1-6 panels  ? help  q quit"
            }
            _ if !self.stands() => "r run again  : command  1-6 panels  ? help  q quit",
            Panel::Source if self.area.width >= COLUMNS_OF_ALL => {
                "c continue  n next  s step  f finish  u up  d down  b breakpoint  t to here  p stop  D diagnose a hang  : command  ? help  q quit"
            }
            Panel::Source => {
                "c continue  n next  s step  f finish  b breakpoint  : command  ? help  q quit"
            }
            Panel::Stacks => {
                "arrows set the focus  a all ranks  c continue  n next  z zoom  : command  ? help"
            }
            Panel::Ranks => {
                "arrows  Enter set focus  a all ranks  c continue  n next  z zoom  : command  ? help"
            }
            Panel::Values => {
                "w watch  Enter compare ranks  y copy  c continue  n next  : command  ? help"
            }
            Panel::Output => {
                "arrows  / search  y copy  c continue  p stop  z zoom  : command  ? help"
            }
        }
    }
}
