//! The tree of real servers with scripted tasks: its start, its faults, its strangers, and the simulator.

mod emulate;
mod faults;
mod merged;
mod sim;
mod soak;
mod stalled;
mod startup;
mod strangers;
mod topology;
mod tree;
mod versions;
