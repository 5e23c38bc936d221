//! Folding of templates of the C++ standard library, whose code is compiled into the program.

use super::{LIBC, check};

#[test]
fn standard_library_templates_are_not_user_frames() {
    let wait = "std::condition_variable::wait<main()::{lambda()#1}>@condition_variable:103";
    check(
        &[
            ("pthread_cond_wait@pthread_cond_wait.c:9", LIBC),
            (wait, ""),
            ("main@c.cc:9", ""),
        ],
        "main c.cc:9 > std::condition_variable::wait<main()::{lambda()#1}> c.cc:9",
        Some((
            2,
            Some("std::condition_variable::wait<main()::{lambda()#1}>"),
        )),
    );
    check(
        &[
            ("main::{lambda(int)#1}::operator()@c.cc:5", ""),
            (
                "std::for_each<int*, main::{lambda(int)#1}>@stl_algo.h:3",
                "",
            ),
            ("main@c.cc:9", ""),
        ],
        "main c.cc:9 > std::for_each<int*, main::{lambda(int)#1}> c.cc:9 > main::{lambda(int)#1}::operator() c.cc:5",
        Some((0, None)),
    );
}
