//! The limits of what is kept of clients.

/// How many clients a rate limit remembers, for all workers together; beyond it, the one of a few that owes least is
/// forgotten. Default: 65,536. Unit: clients. Reason: 1.1 MiB for each route with a limit; who has more addresses than that is not stopped by
/// a limit for each. Answers: address-flood.
pub const RATE_CLIENTS_COUNT: usize = 65_536;

/// The prefix of an IPv6 address that is one client. Default: 64. Unit: bits. Reason: a network at home gets at least
/// that many addresses, and its host may use a new one for each request. Answers: address-flood.
pub const RATE_IPV6_BITS_COUNT: u8 = 64;
