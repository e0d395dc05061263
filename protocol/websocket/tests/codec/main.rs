//! The codec by its sections: rules, conversations, splits, attacks, and a foreign codec.

#![cfg(test)]

mod abuse;
mod any_split;
mod closing;
mod compression;
mod conversation;
mod foreign;
mod messages;
mod wire;
