//! Which part of a run this process is, and where the parts meet.

use std::fmt;

use bolide_probe::engine::Share;

use crate::options::PartsArguments;

/// The port where the parts meet when none is named.
const PORT: u16 = 7117;

/// More parts than this are a mistake.
const MOST_PARTS: usize = 1000;

/// Meeting place of the parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendezvous {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Rendezvous {
    /// Reads `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
    fn parse(text: &str, source: &str) -> Result<Self, String> {
        let wrong = || format!("{source}: `{text}` is not HOST or HOST:PORT, such as load1:7117");
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?)
            }
            // No port, or an IPv6 address without brackets.
            _ => (text, PORT),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.chars().any(|one| one.is_whitespace() || one == '/') {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }

    pub(super) fn loopback() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: PORT }
    }

    /// Returns whether only this host can reach it.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Rendezvous {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

/// Which part of a run this process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(super) share: Share,
    pub(super) rendezvous: Rendezvous,
    /// Source of it.
    pub(super) source: &'static str,
}

impl Identity {
    /// Returns whether it is the one that leads the run and reports.
    pub(crate) fn is_first(&self) -> bool {
        self.share.number() == 0
    }
}

/// The variables in which schedulers tell number and count. Kubernetes tells the number alone.
const SCHEDULERS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("JOB_COMPLETION_INDEX", "BOLIDE_PARTS"),
];

/// Looks for the identity in the options, then in what schedulers say in the environment. `None`: the process is alone.
pub(crate) fn find(
    arguments: &PartsArguments,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Identity>, String> {
    let found = match &arguments.part {
        Some(text) => Some((share_of_option(text)?, "--part")),
        None if !arguments.on.is_empty() => Some((share_of_hosts(&arguments.on)?, "--on")),
        None => share_of_scheduler(environment)?,
    };
    let Some((share, source)) = found.filter(|(share, _)| share.count() > 1) else {
        return match &arguments.rendezvous {
            Some(_) if found.is_none() => {
                Err("--rendezvous needs --part K/N, --on, or a scheduler".into())
            }
            _ => Ok(None),
        };
    };
    let rendezvous = match (&arguments.rendezvous, environment("BOLIDE_RENDEZVOUS")) {
        (Some(text), _) => Rendezvous::parse(text, "--rendezvous")?,
        (None, Some(text)) => Rendezvous::parse(&text, "BOLIDE_RENDEZVOUS")?,
        (None, None) => rendezvous_of(source, environment)?,
    };
    Ok(Some(Identity { share, rendezvous, source }))
}

fn share_of_option(text: &str) -> Result<Share, String> {
    let wrong = || format!("--part {text}: must be K/N with K from 1 to N, such as 2/4");
    let (number, count) = text.split_once('/').ok_or_else(wrong)?;
    let (number, count): (usize, usize) =
        number.parse().ok().zip(count.parse().ok()).ok_or_else(wrong)?;
    if number == 0 || number > count {
        return Err(wrong());
    }
    share("--part", number - 1, count)
}

fn share_of_hosts(hosts: &[String]) -> Result<Share, String> {
    for (index, host) in hosts.iter().enumerate() {
        if host.is_empty() || host.starts_with('-') {
            return Err(format!("--on: `{host}` is not the name of a host"));
        }
        if hosts[..index].contains(host) {
            return Err(format!("--on: {host} is listed twice"));
        }
    }
    share("--on", 0, hosts.len() + 1)
}

fn share_of_scheduler(
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<(Share, &'static str)>, String> {
    for (number_name, count_name) in SCHEDULERS {
        let (Some(number), Some(count)) = (environment(number_name), environment(count_name))
        else {
            continue;
        };
        let parsed = number.parse().ok().zip(count.parse().ok());
        let (number, count): (usize, usize) =
            parsed.filter(|(number, count)| number < count).ok_or_else(|| {
                format!("{number_name}={number} and {count_name}={count} don't name a part: use --part K/N")
            })?;
        return Ok(Some((share(count_name, number, count)?, number_name)));
    }
    Ok(None)
}

fn share(source: &str, number: usize, count: usize) -> Result<Share, String> {
    if count > MOST_PARTS {
        return Err(format!("{source}: {count} parts, but there may be at most {MOST_PARTS}"));
    }
    Ok(Share::new(number, count))
}

/// The address of part 1, as the scheduler tells it.
fn rendezvous_of(
    source: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Rendezvous, String> {
    let named = |host: String| Rendezvous { host, ..Rendezvous::loopback() };
    let host = match source {
        "--part" | "--on" => return Ok(Rendezvous::loopback()),
        "OMPI_COMM_WORLD_RANK" => {
            let is_one_host =
                environment("OMPI_COMM_WORLD_LOCAL_SIZE") == environment("OMPI_COMM_WORLD_SIZE");
            is_one_host.then(|| Rendezvous::loopback().host)
        }
        "SLURM_PROCID" => environment("SLURM_STEP_NODELIST")
            .or_else(|| environment("SLURM_JOB_NODELIST"))
            .and_then(|list| first_node(&list)),
        "JOB_COMPLETION_INDEX" => environment("HOSTNAME").and_then(|name| {
            let job = name.strip_suffix(&format!("-{}", environment(source)?))?.to_owned();
            Some(format!("{job}-0.{job}"))
        }),
        _ => None,
    };
    host.map(named).ok_or_else(|| {
        format!("{source} names a part, but not the host of part 1: use --rendezvous HOST[:PORT] or BOLIDE_RENDEZVOUS")
    })
}

/// The first node of Slurm's list: `load01` of `load[01-04,07]` and of `load01,load02`.
fn first_node(list: &str) -> Option<String> {
    let (name, rest) = list.split_at(list.find(['[', ',']).unwrap_or(list.len()));
    let first = match rest.strip_prefix('[') {
        Some(numbers) => &numbers[..numbers.find([',', '-', ']'])?],
        None => "",
    };
    let node = format!("{name}{first}");
    (!node.is_empty()).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        arguments: &PartsArguments,
        variables: &[(&str, &str)],
    ) -> Result<Option<(usize, usize, String)>, String> {
        let environment = |name: &str| {
            let variable = variables.iter().find(|(known, _)| *known == name);
            variable.map(|(_, value)| (*value).to_owned())
        };
        let found = find(arguments, &environment)?;
        Ok(found.map(|identity| {
            let Identity { share, rendezvous, .. } = identity;
            (share.number(), share.count(), rendezvous.to_string())
        }))
    }

    fn part(text: &str) -> PartsArguments {
        PartsArguments { part: Some(text.into()), ..PartsArguments::default() }
    }

    fn at(text: &str) -> PartsArguments {
        PartsArguments { rendezvous: Some(text.into()), ..part("2/4") }
    }

    #[test]
    fn an_option_names_the_part() {
        let loopback = "127.0.0.1:7117".to_owned();
        assert_eq!(found(&part("2/4"), &[]), Ok(Some((1, 4, loopback))));
        assert_eq!(found(&part("1/1"), &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), Ok(None));
        assert_eq!(found(&PartsArguments::default(), &[]), Ok(None));
        for wrong in ["0/4", "5/4", "2", "a/4", "2/", "-1/4", "1/99999"] {
            let mistake = found(&part(wrong), &[]).unwrap_err();
            assert!(mistake.starts_with("--part"), "{mistake}");
        }
    }

    #[test]
    fn an_address_is_read_with_and_without_a_port() {
        for (text, read) in [
            ("load1", "load1:7117"),
            ("load1:80", "load1:80"),
            ("::1", "[::1]:7117"),
            ("[::1]:9", "[::1]:9"),
            ("10.0.0.1", "10.0.0.1:7117"),
        ] {
            assert_eq!(found(&at(text), &[]).unwrap().unwrap().2, read);
        }
        for wrong in ["", "load1:", "load1:0", "load1:70000", "http://load1", "a b"] {
            assert!(found(&at(wrong), &[]).unwrap_err().contains("such as load1:7117"), "{wrong}");
        }
        let alone = PartsArguments { part: None, ..at("load1") };
        assert!(found(&alone, &[]).unwrap_err().contains("needs --part"));
    }

    #[test]
    fn schedulers_name_the_part() {
        let none = PartsArguments::default();
        let ranks = |rank, size, local| {
            [
                ("OMPI_COMM_WORLD_RANK", rank),
                ("OMPI_COMM_WORLD_SIZE", size),
                ("OMPI_COMM_WORLD_LOCAL_SIZE", local),
            ]
        };
        let here = "127.0.0.1:7117".to_owned();
        assert_eq!(found(&none, &ranks("3", "4", "4")), Ok(Some((3, 4, here))));
        let apart = found(&none, &ranks("3", "4", "2")).unwrap_err();
        assert!(apart.contains("use --rendezvous"), "{apart}");
        assert!(found(&none, &ranks("4", "4", "4")).unwrap_err().contains("don't name a part"));
        assert_eq!(found(&none, &ranks("0", "1", "1")), Ok(None));
        let slurm = [
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_STEP_NODELIST", "load[03-04,09]"),
        ];
        assert_eq!(found(&none, &slurm), Ok(Some((1, 2, "load03:7117".to_owned()))));
        let job = [("JOB_COMPLETION_INDEX", "2"), ("BOLIDE_PARTS", "3"), ("HOSTNAME", "my-load-2")];
        assert_eq!(found(&none, &job), Ok(Some((2, 3, "my-load-0.my-load:7117".to_owned()))));
        let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("BOLIDE_RENDEZVOUS", "a:1")];
        assert_eq!(found(&none, &pmi), Ok(Some((1, 2, "a:1".to_owned()))));
    }

    #[test]
    fn the_first_node_of_a_list_is_found() {
        for (list, node) in [("a", "a"), ("a,b", "a"), ("n[1-3]", "n1"), ("n[07,9],m", "n07")] {
            assert_eq!(first_node(list).as_deref(), Some(node));
        }
        assert_eq!(first_node(""), None);
        assert_eq!(first_node("n[1"), None);
    }

    #[test]
    fn hosts_are_named_once() {
        let on = |hosts: &[&str]| PartsArguments {
            on: hosts.iter().map(|host| (*host).to_owned()).collect(),
            ..PartsArguments::default()
        };
        assert_eq!(found(&on(&["a", "b"]), &[]).unwrap().unwrap().1, 3);
        assert!(found(&on(&["a", "a"]), &[]).unwrap_err().contains("listed twice"));
        assert!(found(&on(&["-oProxyCommand=x"]), &[]).unwrap_err().contains("not the name"));
    }
}
