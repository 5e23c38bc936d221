//! Tests of the backend with a real gdb and real programs.
#![allow(unsafe_code, clippy::unwrap_used)]

mod attach;
mod breakpoints;
mod cancel;
mod data;
mod ends;
mod environment;
mod findings;
mod harness;
mod interrupt;
mod objects;
mod odd;
mod old_mi;
mod pointers;
mod points;
mod probe;
mod python;
mod raw;
mod registers;
mod run;
mod shared;
mod sorts;
mod stacks;
mod starter;
mod streams;
mod strides;
