//! The program itself: what it says, what it refuses, how it ends.

#![cfg(test)]

mod access;
mod agreement;
mod at_exit;
mod authentication;
mod balance;
#[cfg(target_os = "linux")]
mod bulk;
mod certificates;
mod compression;
mod configuration;
mod files;
mod finer_points;
#[cfg(target_os = "linux")]
mod four_hosts;
mod load;
mod many_hosts;
mod measure;
mod mistakes;
mod observe;
mod operators_site;
mod paper;
mod profile;
mod race_start;
mod reload;
mod shutdown;
mod site;
#[cfg(target_os = "linux")]
mod stalled;
mod start;
mod truncation;
mod under_load;
