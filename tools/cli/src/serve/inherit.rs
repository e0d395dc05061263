//! Listening sockets that this process did not open: a service manager's (`LISTEN_FDS`, sd_listen_fds(3)), or those
//! of the process that it takes over from.

use std::env;
use std::io::Write;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use bolide::server::{EarlierProcess, Listener};
use bolide_eventloop::inherited;

use crate::configuration::Listen;

/// Says what a predecessor hands on, a line each: `ready FD`, `listen FD,FD… ADDRESS`, `datagrams FD,FD… ADDRESS`,
/// `admin FD,FD… ADDRESS`; `earlier NUMBER,FD,FD…` for itself and those before it that have HTTP/3 connections; and `managed 1`
/// if it had the sockets from a service manager.
pub(super) const HANDED_ON: &str = "BOLIDE_HANDED_ON";

/// The first descriptor of a service manager.
const FIRST: RawFd = 3;

/// The names that a service manager's sockets may have.
const NAMES: [&str; 3] = ["http", "https", "admin"];

/// Inheritance of this process at its start.
#[derive(Debug)]
pub(super) enum Inheritance {
    /// Nothing.
    None,
    /// A service manager's sockets, with their names.
    Manager(Vec<(String, RawFd)>),
    /// A predecessor's.
    Predecessor(Predecessor),
}

/// Things that a process hands on to the one that takes over.
#[derive(Debug, Default)]
pub(super) struct Predecessor {
    ready: Option<RawFd>,
    is_managed: bool,
    listen: Vec<(String, Vec<RawFd>)>,
    datagrams: Vec<(String, Vec<RawFd>)>,
    admin: Vec<(String, Vec<RawFd>)>,
    earlier: Vec<(u8, Vec<RawFd>)>,
}

/// The inheritance, listener by listener.
#[derive(Debug, Default)]
pub(super) struct Dealt {
    /// For each listener: what takes the place of its address. None: it is bound.
    pub(super) listen: Vec<Option<Listener>>,
    pub(super) admin: Option<Listener>,
    /// Processes that have HTTP/3 connections, the latest first.
    pub(super) earlier: Vec<EarlierProcess>,
    /// Pipe on which a predecessor waits to hear that all listen.
    pub(super) ready: Option<Ready>,
    /// A service manager holds the sockets: another process may go on with them.
    pub(super) is_managed: bool,
}

/// A predecessor that waits.
#[derive(Debug)]
pub(super) struct Ready(UnixStream);

/// Message to it.
pub(super) const READY: &[u8] = b"ready\n";

impl Ready {
    /// It may go.
    pub(super) fn say(mut self) {
        // One that has gone already needs no word.
        let _ = self.0.write_all(READY);
    }
}

impl Inheritance {
    /// Reads the environment. Nothing is taken yet.
    pub(super) fn from_environment() -> Result<Self, String> {
        let variable = |name: &str| env::var(name).ok();
        if let Some(text) = variable(HANDED_ON) {
            return predecessor(&text).map(Self::Predecessor);
        }
        let own = std::process::id().to_string();
        // Those for another process were left over by one between.
        match (variable("LISTEN_PID"), variable("LISTEN_FDS")) {
            (Some(pid), Some(count)) if pid == own => {
                manager(&count, variable("LISTEN_FDNAMES").as_deref()).map(Self::Manager)
            }
            _ => Ok(Self::None),
        }
    }

    /// Takes the sockets, each for its listener. `admin`: there is to be an operator's listener.
    pub(super) fn deal(self, listen: &[Listen], admin: bool) -> Result<Dealt, String> {
        match self {
            Self::None => {
                Ok(Dealt { listen: listen.iter().map(|_| None).collect(), ..Dealt::default() })
            }
            Self::Manager(sockets) => deal_managers(&sockets, listen, admin),
            Self::Predecessor(sockets) => sockets.deal(listen),
        }
    }
}

fn manager(count: &str, names: Option<&str>) -> Result<Vec<(String, RawFd)>, String> {
    let counted = count.parse::<RawFd>().ok().filter(|count| (0..=1024).contains(count));
    let Some(count) = counted else {
        return Err(format!("LISTEN_FDS is `{count}`: must be a number of sockets, 0 to 1024"));
    };
    let mut given = names.unwrap_or_default().split(':').map(str::to_owned);
    Ok((FIRST..FIRST + count).map(|number| (given.next().unwrap_or_default(), number)).collect())
}

fn predecessor(text: &str) -> Result<Predecessor, String> {
    let mut sockets = Predecessor::default();
    for line in text.lines() {
        let mistake = || format!("{HANDED_ON}: `{line}` is not what a predecessor writes");
        let mut words = line.splitn(3, ' ');
        let (what, numbers) = (words.next(), words.next().unwrap_or_default());
        let numbers = numbers.split(',').map(str::parse).collect::<Result<Vec<RawFd>, _>>();
        let numbers = numbers.map_err(|_| mistake())?;
        match (what, words.next()) {
            (Some("ready"), None) => sockets.ready = numbers.first().copied(),
            (Some("managed"), None) => sockets.is_managed = numbers == [1],
            (Some("earlier"), None) => {
                let (number, pipes) = numbers.split_first().ok_or_else(mistake)?;
                let number = u8::try_from(*number).map_err(|_| mistake())?;
                sockets.earlier.push((number, pipes.to_vec()));
            }
            (Some("datagrams"), Some(address)) => {
                sockets.datagrams.push((address.to_owned(), numbers));
            }
            (Some("listen"), Some(address)) => sockets.listen.push((address.to_owned(), numbers)),
            (Some("admin"), Some(address)) => sockets.admin.push((address.to_owned(), numbers)),
            _ => return Err(mistake()),
        }
    }
    Ok(sockets)
}

/// Takes one descriptor; `who` stands for what named it.
fn take(number: RawFd, who: &str) -> Result<OwnedFd, String> {
    inherited(number).map_err(|error| format!("{who}: can't use descriptor {number}: {error}"))
}

/// The sockets of a manager by their names, or, where they have none of ours, in order.
fn deal_managers(
    sockets: &[(String, RawFd)],
    listen: &[Listen],
    admin: bool,
) -> Result<Dealt, String> {
    let is_ours = |name: &str| NAMES.contains(&name);
    let named = sockets.iter().filter(|(name, _)| is_ours(name)).count();
    if 0 < named && named < sockets.len() {
        let other = sockets.iter().find(|(name, _)| !is_ours(name));
        let other = other.map_or("", |(name, _)| name.as_str());
        return Err(format!(
            "LISTEN_FDNAMES: a socket is named `{other}`, others are named after listeners: name each \
             http, https or admin (FileDescriptorName= in the socket unit), or none of them"
        ));
    }
    let mut left: Vec<&(String, RawFd)> = sockets.iter().collect();
    let mut next = |name: &str| {
        let at = left.iter().position(|(own, _)| named == 0 || own == name)?;
        Some(left.remove(at).1)
    };
    let mut numbers = Vec::new();
    for one in listen {
        numbers.push(next(if one.tls.is_some() { "https" } else { "http" }));
    }
    let admin = if admin && named > 0 { next("admin") } else { None };
    if numbers.contains(&None) || !left.is_empty() {
        let kind = |one: &Listen| if one.tls.is_some() { "https" } else { "http" };
        let wanted: Vec<String> =
            listen.iter().map(|one| format!("{} {}", kind(one), one.address)).collect();
        let names: Vec<&str> = sockets.iter().map(|(name, _)| name.as_str()).collect();
        let names = if named == 0 { String::new() } else { format!(" named {}", names.join(", ")) };
        return Err(format!(
            "LISTEN_FDS has {}{names} for {} ({}): each listener needs one socket",
            super::counted(sockets.len(), "socket"),
            super::counted(wanted.len(), "listener"),
            wanted.join(", "),
        ));
    }
    let socket = |number: RawFd| {
        let sockets = vec![take(number, "LISTEN_FDS")?];
        Ok::<_, String>(Listener::Inherited { sockets, datagrams: Vec::new(), path: None })
    };
    let listen = numbers.into_iter().map(|number| number.map(socket).transpose());
    Ok(Dealt {
        listen: listen.collect::<Result<_, _>>()?,
        admin: admin.map(socket).transpose()?,
        earlier: Vec::new(),
        ready: None,
        is_managed: true,
    })
}

impl Predecessor {
    /// A listener whose address was listened on before goes on with the same sockets. What is not asked for any
    /// more is closed here; until the predecessor closes it too, that one answers.
    fn deal(mut self, listen: &[Listen]) -> Result<Dealt, String> {
        let ready = self.ready.map(|number| take(number, HANDED_ON)).transpose()?;
        let ready = ready.map(|ready| Ready(ready.into()));
        let mut dealt = Dealt { ready, is_managed: self.is_managed, ..Dealt::default() };
        let sockets = |numbers: Vec<RawFd>| {
            numbers.into_iter().map(|number| take(number, HANDED_ON)).collect::<Result<Vec<_>, _>>()
        };
        for one in listen {
            let at = self.listen.iter().position(|(address, _)| *address == one.address);
            let path = one.address.strip_prefix("unix:").map(PathBuf::from);
            // A manager's file is not ours to remove.
            let path = path.filter(|_| !self.is_managed);
            dealt.listen.push(match at.map(|at| self.listen.remove(at)) {
                Some((address, numbers)) => {
                    let at = self.datagrams.iter().position(|(other, _)| *other == address);
                    let datagrams = at.map(|at| self.datagrams.remove(at).1).unwrap_or_default();
                    let (sockets, datagrams) = (sockets(numbers)?, sockets(datagrams)?);
                    Some(Listener::Inherited { sockets, datagrams, path })
                }
                None => None,
            });
        }
        for (_, numbers) in self.listen.into_iter().chain(self.datagrams) {
            drop(sockets(numbers)?);
        }
        for (_, numbers) in self.admin {
            let (sockets, datagrams) = (sockets(numbers)?, Vec::new());
            dealt.admin = Some(Listener::Inherited { sockets, datagrams, path: None });
        }
        for (number, pipes) in self.earlier {
            dealt.earlier.push(EarlierProcess { number, pipes: sockets(pipes)? });
        }
        Ok(dealt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::TlsFiles;

    fn listen(addresses: &[(&str, bool)]) -> Vec<Listen> {
        let one = |(address, tls): &(&str, bool)| Listen {
            address: (*address).to_owned(),
            tls: tls.then(TlsFiles::default),
            proxy_protocol: bolide::server::ProxyProtocol::Off,
            place: None,
        };
        addresses.iter().map(one).collect()
    }

    fn refused(names: &[&str], listen: &[Listen], admin: bool) -> String {
        // No such descriptor is open: nothing is taken by accident.
        let sockets: Vec<_> = names.iter().map(|name| ((*name).to_owned(), 900)).collect();
        deal_managers(&sockets, listen, admin).unwrap_err()
    }

    #[test]
    fn each_listener_takes_one_socket() {
        let both = listen(&[("0.0.0.0:80", false), ("0.0.0.0:443", true)]);
        let said = refused(&["bolide.socket"], &both, false);
        assert_eq!(
            said,
            "LISTEN_FDS has 1 socket for 2 listeners (http 0.0.0.0:80, https 0.0.0.0:443): each \
             listener needs one socket"
        );
        assert!(refused(&["", "", ""], &both, false).contains("has 3 sockets"));
        let said = refused(&["http", "http"], &both, false);
        assert!(said.contains("2 sockets named http, http"), "{said}");
        assert!(refused(&["http", "https", "admin"], &both, false).contains("3 sockets"));
        assert!(refused(&["http", "web"], &both, false).contains("`web`"));
        // They fit, and are looked for.
        for names in [["https", "http"], ["a", "b"]] {
            assert!(refused(&names, &both, false).contains("can't use descriptor 900"));
        }
        assert!(refused(&["admin", "https", "http"], &both, true).contains("descriptor 900"));
    }

    #[test]
    fn what_the_environment_says_is_checked() {
        assert_eq!(manager("2", Some("http")).unwrap(), [("http".into(), 3), (String::new(), 4)]);
        assert!(manager("many", None).unwrap_err().contains("`many`"));
        assert!(manager("-1", None).unwrap_err().contains("`-1`"));
        let text = "ready 9\nmanaged 1\nlisten 5,6 127.0.0.1:80\ndatagrams 10,11 127.0.0.1:80\n\
            listen 7 unix:/a b\nadmin 8 127.0.0.1:90\nearlier 255,12\nearlier 254,13,14\n";
        let read = predecessor(text).unwrap();
        assert_eq!((read.ready, read.is_managed), (Some(9), true));
        assert_eq!(read.listen[0], ("127.0.0.1:80".into(), vec![5, 6]));
        assert_eq!(read.listen[1], ("unix:/a b".into(), vec![7]));
        assert_eq!(read.admin, [("127.0.0.1:90".into(), vec![8])]);
        assert_eq!(read.datagrams, [("127.0.0.1:80".into(), vec![10, 11])]);
        assert_eq!(read.earlier, [(255, vec![12]), (254, vec![13, 14])]);
        for bad in ["listen 5", "listen x a", "other 5 a", "earlier 256,1", "ready", ""] {
            let is_fine = predecessor(bad).is_ok();
            assert_eq!(is_fine, bad.is_empty(), "{bad}");
        }
    }
}
