//! The tree: it carries commands from a front-end to any set of tasks and merged answers back,
//! and interprets neither commands nor answers.
//!
//! A [`member::Member`] is one process of the tree: a [`node::Node`] (routing, accounting and merging) with its
//! [`link::Link`]s (frames, encryption, credit). Both do no I/O by themselves; a [`driver::MemberDriver`] runs a
//! member over a [`transport::Transport`]. The carried protocol defines the meaning of payloads, and merge rules
//! beyond equality ([`Merge`]). `docs/api.md` maps the operations of the requirements to the items here.
//!
//! # A protocol of your own
//!
//! Four servers, one task each, know a temperature; the front-end asks a set of them. Equal answers
//! arrive as one, with the set of tasks that gave it. Here every member is a thread on a network in memory; with
//! [`transport::tcp::TcpTransport`] the same code runs in processes.
//!
//! ```
//! use std::sync::Arc;
//! use std::thread;
//! use std::time::{Duration, Instant};
//!
//! use bytes::Bytes;
//! use sdm_core::aggregate::Merge;
//! use sdm_core::driver::{MemberDriver, DriverEvent};
//! use sdm_core::link::LinkConfig;
//! use sdm_core::member::{Member, Output};
//! use sdm_core::message::{EndPolicy, Lane, PlanEntry, Slice, Status, SyncPolicy};
//! use sdm_core::node::{Delivery, Node, Submission};
//! use sdm_core::secure::{SessionKey, draw_session_id};
//! use sdm_core::topology::Topology;
//! use sdm_core::transport::Transport;
//! use sdm_core::transport::mem::{MemNetwork, MemTransport};
//! use sdm_core::{CommandId, Config, ServerId};
//! use sdm_idset::{IdSet, TaskId};
//!
//! // This protocol merges by equality alone, so it brings no rules.
//! let rules = |_number: u16, _params: &[u8]| None::<Box<dyn Merge>>;
//!
//! // A server, or the master, which has no tasks and is asked nothing.
//! fn serve(mut driver: MemberDriver<MemTransport>, temperature: &'static str) -> std::io::Result<()> {
//!     while let Some(event) = driver.next(None)? {
//!         match event {
//!             DriverEvent::Output(Output::Execute { id, tasks, payload }) => {
//!                 assert_eq!(&payload[..], b"how warm?");
//!                 let answer = Bytes::from_static(temperature.as_bytes());
//!                 driver.with_member(|m, now| m.handle_local(now, id, &tasks, Status::Ok, answer));
//!             }
//!             DriverEvent::Output(Output::End(_)) => {
//!                 driver.with_member(|m, now| m.handle_local_down(now));
//!             }
//!             DriverEvent::Output(Output::Ended) => break,
//!             _ => {}
//!         }
//!     }
//!     driver.flush();
//!     Ok(())
//! }
//!
//! // Every member holds the session's key: nobody else gets in.
//! let config = Arc::new(LinkConfig::new(SessionKey::draw()?, draw_session_id()?));
//! let network = MemNetwork::new();
//! let patience = Instant::now() + Duration::from_secs(60);
//!
//! let mut entries = Vec::new();
//! let mut threads = Vec::new();
//! for (server, temperature) in
//!     [(ServerId::MASTER, ""), (ServerId(0), "21"), (ServerId(1), "21"), (ServerId(2), "35"), (ServerId(3), "21")]
//! {
//!     let mut transport = network.transport();
//!     let address = transport.listen(&"tcp://127.0.0.1:0".parse()?, 1)?;
//!     let is_master = server == ServerId::MASTER;
//!     entries.push(PlanEntry {
//!         server,
//!         subtree_count: 0,
//!         tasks: if is_master { IdSet::new() } else { IdSet::single(TaskId(server.0)) },
//!         host: "here".into(),
//!         addresses: [address.to_string()].iter().collect(),
//!     });
//!     let node = Node::new(server, rules, patience);
//!     let driver = MemberDriver::new(Member::new(node, Arc::clone(&config)), transport);
//!     threads.push((driver, temperature));
//! }
//!
//! // The front-end listens, the master connects to it, and the plan goes down the tree.
//! let mut transport = network.transport();
//! let front_end = transport.listen(&"tcp://127.0.0.1:0".parse()?, 1)?;
//! threads[0].0.connect_front_end(&front_end);
//! let threads: Vec<_> = threads
//!     .into_iter()
//!     .map(|(driver, temperature)| thread::spawn(move || serve(driver, temperature)))
//!     .collect();
//! let root = Node::root(Instant::now(), rules);
//! let mut driver = MemberDriver::new(Member::new(root, config), transport);
//! let plan = Topology::Binomial.plan(entries.remove(0), entries);
//! driver.with_member(|m, now| m.start(now, Config::default(), Slice::new(plan)))?;
//!
//! let mut answers = Vec::new();
//! while let Some(event) = driver.next(Some(patience))? {
//!     let DriverEvent::Output(output) = event else { continue };
//!     match output {
//!         // The initialisation is a command too, answered by the members. Now ask three of four.
//!         Output::Deliver(Delivery::Complete(CommandId::INIT)) => {
//!             let submission = Submission {
//!                 destination: "0-2".parse()?,
//!                 lane: Lane::Control,
//!                 sync: SyncPolicy::WaitForAll,
//!                 rule: 0,
//!                 rule_params: Bytes::new(),
//!                 payload: Bytes::from_static(b"how warm?"),
//!             };
//!             driver.with_member(|m, now| m.submit(now, submission));
//!         }
//!         Output::Deliver(Delivery::Answer { id, blocks, .. }) if id != CommandId::INIT => {
//!             answers.extend(blocks.iter().map(|block| {
//!                 format!("{}: {}", block.sources, String::from_utf8_lossy(&block.payload))
//!             }));
//!         }
//!         Output::Deliver(Delivery::Complete(_)) => {
//!             driver.with_member(|m, now| m.finish(now, EndPolicy::KillStarted));
//!         }
//!         Output::End(_) => driver.with_member(|m, now| m.handle_local_down(now)),
//!         Output::Ended => break,
//!         _ => {}
//!     }
//! }
//! answers.sort();
//! assert_eq!(answers, ["0-1: 21", "2: 35"]);
//! for thread in threads {
//!     thread.join().expect("no member panics")?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod aggregate;
pub mod codec;
pub mod config;
pub mod dialer;
#[cfg(feature = "net")]
pub mod driver;
pub mod failure;
pub mod frame;
pub mod ids;
pub mod limits;
pub mod link;
pub mod member;
pub mod message;
pub mod node;
pub mod secure;
pub mod topology;
pub mod transport;

pub use aggregate::Merge;
pub use config::Config;
pub use ids::{Attempt, CommandId, Epoch, ServerId, SessionId};
