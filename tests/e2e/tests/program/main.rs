//! The program itself: what it says, what it refuses, how it ends.
//!
//! The modules are `cfg(test)`, so that Clippy knows all of their functions as tests.

#[cfg(test)]
mod access;
#[cfg(test)]
mod agreement;
#[cfg(test)]
mod at_exit;
#[cfg(test)]
mod authentication;
#[cfg(test)]
mod balance;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod bulk;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod compression;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod files;
#[cfg(test)]
mod finer_points;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod four_hosts;
#[cfg(test)]
mod load;
#[cfg(test)]
mod many_hosts;
#[cfg(test)]
mod measure;
#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod observe;
#[cfg(test)]
mod operators_site;
#[cfg(test)]
mod paper;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod race_start;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod site;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod stalled;
#[cfg(test)]
mod start;
#[cfg(test)]
mod truncation;
#[cfg(test)]
mod under_load;
