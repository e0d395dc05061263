//! Likely mistakes that `--check` names, although a server runs with them.

use std::net::SocketAddr;

use bolide_site::Scheme;

use super::names;
use super::plan::Plan;
use crate::certificate::Material;
use crate::configuration::Listen;
use crate::routes::{Route, RouteAction};

/// Returns what is likely a mistake, each in one sentence.
pub(super) fn find(plan: &Plan, materials: &[Material]) -> Vec<String> {
    let mut all = of_names(plan, materials);
    let has_client_ca =
        plan.listen.iter().any(|one| one.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()));
    for route in plan.routes.all() {
        if route.access.basic.is_some()
            && let Some(listen) = in_cleartext(plan, route)
        {
            all.push(format!(
                "`basic-auth` of {} takes passwords in cleartext at {}: add `scheme = \"https\"`",
                named(route),
                listen.address
            ));
        }
        if route.access.certificates.is_some() && !has_client_ca {
            all.push(format!(
                "{} requires a client certificate, and no listener has `client-ca`: every request gets a 403",
                named(route)
            ));
        }
    }
    all
}

fn named(route: &Route) -> String {
    let host = route.hosts.first().map_or("", String::as_str);
    format!("the route {host}{}", route.path)
}

/// Hosts without a certificate, and certificates without a host. Either may come later, so that it is no mistake.
fn of_names(plan: &Plan, materials: &[Material]) -> Vec<String> {
    if materials.is_empty() || materials.iter().any(|material| material.made.is_some()) {
        return Vec::new();
    }
    let certificates: Vec<Vec<String>> =
        materials.iter().flat_map(Material::fingerprints).map(|(_, names)| names).collect();
    let hosts = plan.routes.secure_hosts();
    let mut covered = certificates.concat();
    covered.extend(materials.iter().flat_map(Material::acme).cloned());
    let mut all: Vec<String> = names::without_certificate(&hosts, &covered)
        .into_iter()
        .map(|host| format!("no certificate is for `{host}`, which a route names"))
        .collect();
    let is_for_any = |route: &Route| {
        route.hosts.is_empty() && route.site.conditions.scheme != Some(Scheme::Http)
    };
    if !plan.routes.all().iter().any(is_for_any) {
        let unused = certificates.iter().filter(|names| !names::fit_one(names, &hosts));
        all.extend(unused.map(|names| {
            format!("the certificate for {} fits no host of a route", names.join(", "))
        }));
    }
    all
}

/// The listener that other machines reach without TLS, where a route is there for it. A trusted proxy in front may have
/// the TLS.
fn in_cleartext<'p>(plan: &'p Plan, route: &Route) -> Option<&'p Listen> {
    let conditions = &route.site.conditions;
    let redirects_all = |other: &Route| {
        other.site.conditions.scheme == Some(Scheme::Http)
            && other.hosts.is_empty()
            && other.path == "/"
            && matches!(other.action, RouteAction::Redirect(_))
    };
    if conditions.scheme == Some(Scheme::Https)
        || !plan.ingress.trusted.is_empty()
        || plan.routes.all().iter().any(redirects_all)
    {
        return None;
    }
    plan.listen.iter().filter(|listen| listen.tls.is_none()).find(|listen| {
        let Ok(address) = listen.address.parse::<SocketAddr>() else { return false };
        let is_meant = conditions.listeners.is_empty() || conditions.listeners.contains(&address);
        !address.ip().is_loopback() && is_meant
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: super::super::Arguments,
    }

    /// Returns what is said of a file with this text.
    fn said(name: &str, text: &str) -> Vec<String> {
        let directory =
            std::env::temp_dir().join(format!("bolide-warnings-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let path = directory.join("bolide.toml");
        std::fs::write(&path, text).unwrap();
        let line = Line::parse_from(["serve".as_ref(), "--config".as_ref(), path.as_os_str()]);
        let plan = Plan::make(&line.arguments).unwrap();
        let all = find(&plan, &plan.materials(true).unwrap());
        std::fs::remove_dir_all(&directory).unwrap();
        all
    }

    const AUTH: &str = "basic-auth = { users = { a = \"$argon2id$v=19$m=19456,t=2,p=1$HxrNemr5pkZMe0t8H3v7Ew$5ykw8YzilFREPYM5JQOtdnoqy+4b9EMrvTRpn/Xd4F8\" } }\n";

    #[test]
    fn passwords_in_cleartext_are_named_where_other_machines_send_them() {
        let open = "[[listen]]\nhttp = \"0.0.0.0:80\"\n[[listen]]\nhttps = \"0.0.0.0:443\"\n";
        let route = format!("[[route]]\npath = \"/admin/\"\nrespond = \"\"\n{AUTH}");
        let warned = said("open", &format!("{open}{route}"));
        assert_eq!(
            warned,
            [
                "`basic-auth` of the route /admin/ takes passwords in cleartext at 0.0.0.0:80: add `scheme = \"https\"`"
            ]
        );
        let redirect = "[[route]]\nscheme = \"http\"\nredirect = \"https://{host}{path}{query}\"\n";
        for (name, fine) in [
            ("secure", format!("{open}{route}scheme = \"https\"\n")),
            ("redirected", format!("{open}{route}{redirect}")),
            ("fronted", format!("trusted = \"10.0.0.0/8\"\n{open}{route}")),
            ("local", format!("[[listen]]\nhttp = \"127.0.0.1:80\"\n{route}")),
            ("elsewhere", format!("{open}{route}listen = \"0.0.0.0:443\"\n")),
        ] {
            assert_eq!(said(name, &fine), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn a_certificate_that_nobody_is_asked_for_is_named() {
        let text = "[[listen]]\nhttps = \"127.0.0.1:0\"\n[[route]]\npath = \"/x\"\nhost = \"b.example\"\nrespond = \"\"\n\
                    client-certificate = \"required\"\n";
        let warned = said("certificate", text);
        assert_eq!(warned.len(), 1, "{warned:?}");
        assert!(
            warned[0].starts_with("the route b.example/x requires a client certificate, and no")
        );
    }

    #[test]
    fn hosts_and_certificates_that_do_not_fit_are_named() {
        let text = |host: &str| {
            format!(
                "[[listen]]\nhttps = \"127.0.0.1:0\"\ncert = \"cert.pem\"\nkey = \"key.pem\"\n\
                 [[route]]\nhost = \"{host}\"\nrespond = \"\"\n"
            )
        };
        assert_eq!(said("fits", &text("a.example")), Vec::<String>::new());
        assert_eq!(
            said("other", &text("b.example")),
            [
                "no certificate is for `b.example`, which a route names",
                "the certificate for a.example fits no host of a route",
            ]
        );
        let any = format!("{}[[route]]\nrespond = \"\"\n", text("b.example"));
        assert_eq!(said("any", &any).len(), 1, "any host may be meant");
    }
}
