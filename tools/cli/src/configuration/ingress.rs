//! `trusted`, `forwarded` and `request-id`: what is taken from the proxies in front.

use bolide::server::{ForwardedFields, Ingress, Network, Networks, ProxyProtocol, RequestId};

use super::choice::choice;
use super::document::Section;
use super::listen::Listen;

/// Reads the keys at the top of the file.
pub(super) fn read(root: &mut Section<'_>) -> Result<Ingress, String> {
    let fields =
        [("x-forwarded", ForwardedFields::XForwarded), ("forwarded", ForwardedFields::Forwarded)];
    let request_ids = [
        ("off", RequestId::Off),
        ("request", RequestId::Request),
        ("response", RequestId::Response),
    ];
    Ok(Ingress {
        trusted: networks(root, "trusted")?,
        fields: choice(root, "forwarded", &fields)?.unwrap_or_default(),
        request_id: choice(root, "request-id", &request_ids)?.unwrap_or_default(),
    })
}

/// Reads a list of networks.
pub(super) fn networks(section: &mut Section<'_>, key: &str) -> Result<Networks, String> {
    let mut networks = Vec::new();
    for (text, at) in section.texts(key)? {
        let network = text.parse::<Network>();
        networks.push(
            network.map_err(|what| {
                at.mistake(format!("`{key}` is `{}`: {what}", text.escape_debug()))
            })?,
        );
    }
    Ok(networks.into_iter().collect())
}

/// Checks whether someone can send the PROXY headers that listeners take.
pub(super) fn check(ingress: &Ingress, listen: &[Listen]) -> Result<(), String> {
    let takes = listen.iter().find(|one| one.proxy_protocol != ProxyProtocol::Off);
    match takes.and_then(|one| one.place.as_ref()) {
        Some(place) if ingress.trusted.is_empty() => Err(place.mistake(
            "`proxy-protocol` needs to know whose headers to trust: write `trusted` with the balancer's \
             networks at the top of the file",
        )),
        _ => Ok(()),
    }
}
