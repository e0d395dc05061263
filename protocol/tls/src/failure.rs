//! RFC 8446 §6: what is said of what rustls finds wrong, and the names under which it is counted.

use rustls::InvalidMessage;

use crate::TlsFailure;

/// Returns whether rustls has found no certificate to send: it has no variant for that.
fn is_without_certificate(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::General(what) if what == "no server certificate chain resolved")
}

/// The name under which an error is counted.
pub(crate) fn kind_of(error: &rustls::Error) -> &'static str {
    use rustls::Error;
    match error {
        Error::AlertReceived(_) => "alert",
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => "incompatible",
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => "certificate",
        Error::InvalidMessage(_) => "not-tls",
        Error::PeerMisbehaved(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => "misbehaved",
        _ if is_without_certificate(error) => TlsFailure::NO_CERTIFICATE,
        _ => "other",
    }
}

/// Returns what is said of an error. `server_name`: what the client has requested.
pub(crate) fn text_of(error: &rustls::Error, server_name: Option<&str>) -> String {
    match error {
        _ if is_without_certificate(error) => match server_name {
            Some(name) => {
                format!("there is no certificate for `{name}`, which the client requested")
            }
            None => "there is no certificate, and the client requested no name".to_owned(),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the peer sent no TLS: it may speak cleartext HTTP on this port".to_owned()
        }
        _ => error.to_string(),
    }
}
