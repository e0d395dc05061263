//! The limits of what is kept of clients.

use std::time::Duration;

/// How many clients a rate limit remembers, for all workers together; beyond it, the one of a few that owes least is
/// forgotten. Default: 65,536. Unit: clients. Reason: 1.1 MiB for each route with a limit; who has more addresses than that is not stopped by
/// a limit for each. Against: address-flood.
pub const RATE_CLIENTS_COUNT: usize = 65_536;

/// The prefix of an IPv6 address that is one client. Default: 64. Unit: bits. Reason: a network at home gets at least
/// that many addresses, and its host may use a new one for each request. Against: address-flood.
pub const RATE_IPV6_BITS_COUNT: u8 = 64;

/// The longest value of `Authorization` that is looked at; a longer one is wrong. Default: 1 KiB. Unit: bytes. Reason: a name and a
/// password of 360 letters each; as many as may wait keep theirs. Against: password-flood.
pub const AUTH_CREDENTIALS_BYTES: usize = 1024;

/// The memory that one hash of a password may take to verify. Default: 256 MiB. Unit: bytes. Reason: 13 times what
/// `bolide hash-password` asks for; each thread that verifies takes it. Against: password-flood.
pub const AUTH_MEMORY_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// For how long a user's credentials that were right are taken without another look. Default: 5 min. Unit: time. Reason: a
/// page has dozens of requests, and each look takes 20 ms of a core. Against: none.
pub const AUTH_REMEMBERED: Duration = Duration::from_secs(300);

/// Threads that verify passwords, for all workers together. Default: 2. Unit: threads. Reason: a flood of wrong passwords takes
/// two cores and 38 MiB at most, not those of the workers. Against: password-flood.
pub const AUTH_THREADS_COUNT: usize = 2;

/// How many different credentials may wait to be verified for one route; more get 503. Default: 128. Unit: credentials.
/// Reason: the last of them waits for about a second and a half. Against: password-flood.
pub const AUTH_WAITING_COUNT: usize = 128;

/// How many of them one client may have sent, by its address. Default: 4. Unit: credentials. Reason: a person types one
/// at a time; a client that guesses does not keep the others out. Against: password-flood.
pub const AUTH_WAITING_EACH_COUNT: usize = 4;

/// How long the server of `forward-auth` may take to say whether a request passes; then it is a 502. Default: 5 s. Unit:
/// time. Reason: a user waits for it before each page. Against: slow-server.
pub const FORWARD_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest content of its response that is given to the client; a larger one is a 502. Default: 64 KiB. Unit:
/// bytes. Reason: a login page. Against: endless-response.
pub const FORWARD_BODY_BYTES: usize = 64 * 1024;

/// Threads that wait for the server of one route, for all workers together. Default: 32. Unit: threads. Reason: as many as
/// the client has connections to one server; a thread without work ends. Against: slow-server.
pub const FORWARD_THREADS_COUNT: usize = 32;

/// How many requests of one route may wait for the server; more get 503. Default: 1024. Unit: requests. Reason: as many as wait
/// for an upstream. Against: slow-server.
pub const FORWARD_WAITING_COUNT: usize = 1024;
