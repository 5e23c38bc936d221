//! One member of the tree alone: the cost there of a command to all and of its merged answer.
//!
//! The caller plays the member's parent and its children; their work is not counted.

mod links;
mod member;
mod messages;
mod small;

use crate::meter::Part;

/// Numbers of children of the measured members.
pub const CHILDREN: [u32; 3] = [0, 2, 10];

/// The measured parts of a member, for one of the numbers of children in [`CHILDREN`].
pub struct Sized {
    /// Number of children.
    pub children: u32,
    /// The node: messages in, messages out.
    pub node: Part,
    /// Floor of the node: the messages that it sends, cloned.
    pub messages: Part,
    /// The node with its links: bytes in, bytes out, as a process has it.
    pub member: Part,
    /// Floor of the node with its links: the links alone, which pass the same messages.
    pub links: Part,
}

/// The members of all sizes.
#[must_use]
pub fn sizes() -> [Sized; 3] {
    [sized::<0>(), sized::<2>(), sized::<10>()]
}

fn sized<const CHILDREN: u32>() -> Sized {
    let name = |what| match CHILDREN {
        0 => format!("{what} of a leaf"),
        count => format!("{what} with {count} children"),
    };
    Sized {
        children: CHILDREN,
        node: Part::new(name("node"), || messages::node(CHILDREN)),
        messages: Part::new(name("messages"), || messages::clones(CHILDREN)),
        member: Part::new(name("member"), || member::member(CHILDREN)),
        links: Part::new(name("links"), || links::links(CHILDREN)),
    }
}

/// The measured pieces of a member's work.
#[must_use]
pub fn pieces() -> Vec<Part> {
    vec![
        Part::new("scripted task answers", small::task),
        Part::new("frame sealed", || links::one_way(true)),
        Part::new("frame opened", || links::one_way(false)),
        Part::new("set of 100 runs encoded", || small::encode(small::runs)),
        Part::new("set of 100 runs decoded", || small::decode(small::runs)),
        Part::new("odd ones of a million encoded", || {
            small::encode(small::odd)
        }),
        Part::new("odd ones of a million decoded", || {
            small::decode(small::odd)
        }),
        Part::new("half of a million encoded", || small::encode(small::half)),
        Part::new("half of a million decoded", || small::decode(small::half)),
        Part::new("100 answers merged", small::merge),
    ]
}
