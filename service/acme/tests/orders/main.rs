//! Orders at a CA that is as it should be, or broken.

#![cfg(test)]

mod ca;
mod cases;
