//! A worker that is stuck is reported while it is, without metrics. One test, for a process has one subscriber.

#![cfg(test)]

mod stuck;
