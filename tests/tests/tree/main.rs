//! The tree of real servers, most with scripted tasks: its start, its faults, its strangers, and the simulator.

mod emulate;
mod faults;
mod looks;
mod merged;
mod page;
mod sim;
mod soak;
mod stalled;
mod startup;
mod strangers;
mod topology;
mod tree;
mod versions;
