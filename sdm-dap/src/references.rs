//! The frames and variables behind the numbers that the client has (`frameId`, `variablesReference`), valid while their
//! tasks are stopped.

use std::collections::BTreeMap;
use std::sync::Arc;

use sdm_debug::Command;
use sdm_debug::command::FrameSelect;
use sdm_idset::IdSet;

use crate::locations::GotoTargets;
use crate::member_expressions::{ParentValue, WholeKind};

/// Maximum number of frames, of nodes and of parts that are kept. Frames and nodes with the lowest numbers are dropped.
const REFERENCES_MAX: usize = 1 << 16;

/// A frame of tasks with equal stacks. It is shared, as each of thousands of values with parts refers to its frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameHandle {
    /// The tasks that have the frame.
    pub(crate) tasks: IdSet,
    /// gdb's level of the frame, by task set. The level differs between tasks that are inside a runtime.
    pub(crate) levels: Vec<(IdSet, u32)>,
    /// gdb's number of the thread, if the process has several. `None` otherwise.
    pub(crate) thread: Option<u32>,
}

impl FrameHandle {
    /// The commands that select the frame in each of its tasks.
    pub(crate) fn select(&self) -> Vec<(IdSet, Command)> {
        let thread = self.thread.iter().map(|number| {
            let command = Command::SelectThread { number: *number };
            (self.tasks.clone(), command)
        });
        let levels = self.levels.iter();
        let levels = levels.map(|(tasks, level)| {
            let command = Command::SelectFrame(FrameSelect::Level(*level));
            (tasks.clone(), command)
        });
        thread.chain(levels).collect()
    }
}

/// The contents of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Arguments,
    Locals,
    Registers,
}

impl ScopeKind {
    /// The expression for a variable of a scope of this kind.
    pub(crate) fn expression(self, name: &str) -> String {
        match self {
            Self::Registers => format!("${name}"),
            Self::Arguments | Self::Locals => name.to_owned(),
        }
    }
}

/// A node with variables below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A scope of a frame.
    Scope {
        frame: Arc<FrameHandle>,
        kind: ScopeKind,
    },
    /// An expression whose value has parts; it gets a variable object once its parts are requested.
    Expression {
        frame: Option<Arc<FrameHandle>>,
        tasks: IdSet,
        expression: String,
        object: Option<String>,
        kind: WholeKind,
        /// The type of the expression; empty until it has a variable object.
        type_name: String,
    },
    /// A part of a variable object, by the object's name, with its own parts from `from` on.
    Part {
        tasks: IdSet,
        object: String,
        from: u32,
        /// The part as an expression, which yields the expressions of its own parts.
        whole: ParentValue,
    },
    /// The distinct values of one variable or part, each with its tasks, and with a node if the value has parts.
    Values(Vec<(IdSet, String, Option<Box<Node>>)>),
}

impl Node {
    /// The tasks that the variables of this node belong to.
    pub(crate) fn tasks(&self) -> IdSet {
        match self {
            Self::Scope { frame, .. } => frame.tasks.clone(),
            Self::Expression { tasks, .. } | Self::Part { tasks, .. } => tasks.clone(),
            Self::Values(values) => IdSet::union_all(values.iter().map(|(tasks, _, _)| tasks)),
        }
    }

    /// The node restricted to fewer tasks. A scope, and a list of values, stay as they are.
    pub(crate) fn among(&self, few: &IdSet) -> Self {
        let mut node = self.clone();
        match &mut node {
            Self::Expression { tasks, .. } | Self::Part { tasks, .. } => tasks.intersect_with(few),
            Self::Scope { .. } | Self::Values(_) => {}
        }
        node
    }
}

/// The references that were given to the client. A number is used again only after all others.
#[derive(Debug, Default)]
pub(crate) struct References {
    last: i64,
    frames: BTreeMap<i64, Arc<FrameHandle>>,
    nodes: BTreeMap<i64, Node>,
    objects: u64,
    /// Targets of `goto`, by the client's numbers.
    pub(crate) places: GotoTargets,
    /// The variable object of each part, by its parent's variable object and its displayed name.
    parts: BTreeMap<(String, String), String>,
}

impl References {
    /// The references of one among several clients, whose variable objects have names of their own.
    pub(crate) fn of_client(number: u32) -> Self {
        Self {
            objects: u64::from(number) << 32,
            ..Self::default()
        }
    }

    fn next(&mut self) -> i64 {
        // References have 31 bits. When all were used, the client no longer has the first ones.
        self.last = if self.last >= i64::from(i32::MAX) {
            1
        } else {
            self.last + 1
        };
        self.last
    }

    /// Assigns a number to a frame.
    pub(crate) fn add_frame(&mut self, frame: Arc<FrameHandle>) -> i64 {
        let id = self.next();
        if self.frames.len() >= REFERENCES_MAX {
            self.frames.pop_first();
        }
        self.frames.insert(id, frame);
        id
    }

    /// Assigns a number to a node with variables below it.
    pub(crate) fn add(&mut self, node: Node) -> i64 {
        let id = self.next();
        if self.nodes.len() >= REFERENCES_MAX {
            self.nodes.pop_first();
        }
        self.nodes.insert(id, node);
        id
    }

    /// Records the displayed name of a part of a variable object.
    pub(crate) fn note_part(&mut self, object: &str, name: &str, part: &str) {
        if self.parts.len() >= REFERENCES_MAX {
            self.parts.pop_first();
        }
        let key = (object.to_owned(), name.to_owned());
        self.parts.insert(key, part.to_owned());
    }

    /// The variable object of the part with this displayed name. `None` for an unknown part.
    pub(crate) fn part(&self, object: &str, name: &str) -> Option<String> {
        let key = (object.to_owned(), name.to_owned());
        self.parts.get(&key).cloned()
    }

    pub(crate) fn frame(&self, id: i64) -> Option<&Arc<FrameHandle>> {
        self.frames.get(&id)
    }

    pub(crate) fn node(&self, id: i64) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Creates a name for the variable object of an expression, and stores it with the expression's reference. `None`
    /// if the reference is not that of an expression.
    pub(crate) fn name_object(&mut self, id: i64) -> Option<String> {
        let Some(Node::Expression { object, .. }) = self.nodes.get_mut(&id) else {
            return None;
        };
        self.objects += 1;
        let name = format!("dap{}", self.objects);
        *object = Some(name.clone());
        Some(name)
    }

    /// Stores the kind and the type of an expression's value, which are known once its variable object is made.
    pub(crate) fn note_type(&mut self, id: i64, known: &ParentValue) {
        if let Some(Node::Expression {
            kind, type_name, ..
        }) = self.nodes.get_mut(&id)
        {
            *kind = known.kind;
            type_name.clone_from(&known.type_name);
        }
    }

    /// Forgets the references of tasks that run now; returns their useless variable objects, each with its tasks.
    pub(crate) fn forget(&mut self, tasks: &IdSet) -> Vec<(IdSet, String)> {
        let mut objects = Vec::new();
        self.frames
            .retain(|_, frame| frame.tasks.is_disjoint(tasks));
        self.nodes.retain(|_, node| {
            let stays = node.tasks().is_disjoint(tasks);
            if let (
                false,
                Node::Expression {
                    tasks,
                    object: Some(object),
                    ..
                },
            ) = (stays, &*node)
            {
                objects.push((tasks.clone(), object.clone()));
            }
            stays
        });
        objects
    }
}
