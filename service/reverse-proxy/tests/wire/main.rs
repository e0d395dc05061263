//! The proxy through real sockets, byte by byte, before upstreams that follow a script.

#[cfg(test)]
mod bodies;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod heads;
#[cfg(test)]
mod interim;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod logged;
#[cfg(test)]
mod proxy_header;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod sticky;
#[cfg(test)]
mod takeover;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod tunnels;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod watch;
