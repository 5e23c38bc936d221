//! Sets of task ids, designed for a million tasks.
//!
//! [`TaskId`] identifies one debugged process. [`IdSet`] is a set of task ids, stored as compressed bitmaps
//! (`roaring`), with a text form for users and a wire form for links. The set of the first million ids
//! needs no heap memory, eight characters as text (`0-999999`) and four bytes on the wire.
//!
//! The crate does no I/O, depends on no other crate of SDM, and never panics on external input. The
//! decoders ([`IdSet::decode`], [`FromStr`](std::str::FromStr)) check everything and limit their
//! allocations ([`ID_MAX`], [`SET_BYTES_MAX`], [`TEXT_BYTES_MAX`]).
//!
//! There are three main types: [`IdSet`]; [`TaskId`], its element; and [`Stride`], a run of evenly spaced ids. The text
//! form consists of strides, and so does the wire form of regular sets. Large sets are best iterated by strides.
//!
//! ```
//! use sdm_idset::{IdSet, TaskId};
//!
//! let all = IdSet::all_below(1_000_000);
//! let mut waiting = all.clone();
//! waiting.remove(TaskId(63));
//! assert_eq!(waiting.to_string(), "0-62,64-999999");
//! assert_eq!((&all - &waiting).to_string(), "63");
//!
//! let odd: IdSet = "1-999999/2".parse()?;
//! assert_eq!(odd.len(), 500_000);
//!
//! let mut wire = Vec::new();
//! odd.encode(0, &mut wire);
//! assert!(wire.len() < 10);
//! let (back, used) = IdSet::decode(0, &wire)?;
//! assert_eq!((back, used), (odd, wire.len()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The names in PTP's design
//!
//! The functions of "PTP new SDM, Set Operations", and their counterparts here:
//!
//! | PTP | here |
//! |---|---|
//! | `sdm_set_new` | [`IdSet::new`], [`IdSet::single`], [`IdSet::from_range`] |
//! | `sdm_set_free` | dropping the set |
//! | `sdm_set_clear` | [`IdSet::clear`] |
//! | `sdm_set_size` | [`IdSet::len`] |
//! | `sdm_set_add_element` | [`IdSet::insert`] |
//! | `sdm_set_remove_element` | [`IdSet::remove`] |
//! | `sdm_set_add_all` | [`IdSet::insert_range`] with `0..=id`; [`IdSet::all_below`] |
//! | `sdm_set_is_subset` | [`IdSet::is_subset`] |
//! | `sdm_set_is_empty` | [`IdSet::is_empty`] |
//! | `sdm_set_compare` | `!=` |
//! | `sdm_set_union` | [`IdSet::union_with`], `\|=`, `\|`, [`IdSet::union_all`] |
//! | `sdm_set_intersect` | [`IdSet::intersect_with`], `&=`, `&` |
//! | `sdm_set_diff` | [`IdSet::subtract`], `-=`, `-` |
//! | `sdm_set_contains` | [`IdSet::contains`] |
//! | `sdm_set_max` | [`TaskId::MAX`], [`ID_MAX`] |
//! | `sdm_set_first`, `sdm_set_next`, `sdm_set_done` | [`IdSet::iter`], [`IdSet::first`] |
//! | `sdm_set_serialize` | [`IdSet::encode`]; as text [`Display`](std::fmt::Display) |
//! | `sdm_set_serialized_length` | [`IdSet::encoded_len`]; [`SET_BYTES_MAX`] bounds it |
//! | `sdm_set_deserialize` | [`IdSet::decode`]; from text [`FromStr`](std::str::FromStr) |

#![forbid(unsafe_code)]

mod coding;
mod dense;
#[doc(hidden)]
pub mod fuzz;
mod iter;
mod ops;
mod run;
mod set;
mod text;
mod wire;

pub use coding::{SETS_BYTES_MAX, bounded};
pub use iter::{Iter, Ranges, Stride, Strides};
pub use set::{ID_MAX, IdSet, TaskId};
pub use text::{ParseError, TEXT_BYTES_MAX, set_text};
pub use wire::{DecodeError, SET_BYTES_MAX, write_number};
