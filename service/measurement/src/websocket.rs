//! `/ws`: messages come back as they are sent.

use bolide_server::websocket::{
    Assembly, DeflatePolicy, Kind, Options, Owner, Payload, Socket, WebSocket,
};
use bolide_server::{End, Reply, Request, Router};

/// `/ws` over HTTP/1.1 and HTTP/2, with subprotocol `echo` and compression where they are offered.
pub(crate) fn route(router: Router, kept: &Options) -> Router {
    let options = kept.clone().protocol("echo").deflate(DeflatePolicy::default());
    router.websocket("/ws", move |request: &mut Request<'_>| -> Reply {
        WebSocket::accept(request, &options, Echo::default())
    })
}

/// Sends whole messages back. Sent piece by piece, they would need no memory, but many clients don't read before
/// they have sent all of a message: with one of these, both ends would wait for each other.
#[derive(Debug, Default)]
struct Echo {
    message: Assembly,
}

impl Owner for Echo {
    fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>) {
        if let Some(message) = self.message.push(payload, end) {
            // It can only be closed already: then nobody waits for an answer.
            let _ = socket.send(kind, message);
        }
    }
}
