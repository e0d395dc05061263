//! Messages on WebSocket connections: which options go with them, and what is sent.

use bolide_probe::plan::{ExpectedBody, WebSocketPlan};
use bytes::Bytes;
use http::Method;

use super::Arguments;
use super::request::Requests;

/// The length of a message when nothing says what to send, in bytes.
const MESSAGE_BYTES: usize = 64;

impl Arguments {
    /// How messages are sent, if the URL is of a WebSocket; the requests become messages.
    ///
    /// # Errors
    ///
    /// The option that doesn't go with the URL.
    pub(super) fn websocket(
        &self,
        requests: &mut Requests,
    ) -> Result<Option<WebSocketPlan>, String> {
        let (request, expect) = (&self.request, &self.expect);
        let of = WebSocketPlan {
            one_way: request.messages.one_way,
            echo: expect.expect_echo,
            binary: request.messages.binary,
            deflate: request.messages.deflate,
        };
        if !requests.target.scheme.is_websocket() {
            let only = [
                ("--one-way", of.one_way),
                ("--binary", of.binary),
                ("--deflate", of.deflate),
                ("--expect-echo", of.echo),
            ];
            return match only.iter().find(|(_, is_set)| *is_set) {
                Some((option, _)) => Err(format!("{option} needs a ws:// or wss:// URL")),
                None => Ok(None),
            };
        }
        let never = [
            ("-X", request.method.is_some()),
            ("--urls", request.sources.urls.is_some()),
            ("a second URL", self.url.len() > 1),
            ("--events", request.messages.events),
            ("--openai", request.messages.openai),
            ("--grpc", request.messages.grpc.is_some()),
            ("--exchanges", request.exchanges.is_some()),
            ("--expect-status", expect.expect_status.is_some()),
            ("--expect-field", !expect.expect_field.is_empty()),
            ("--expect-trailer", !expect.expect_trailer.is_empty()),
        ];
        if let Some((option, _)) = never.iter().find(|(_, is_set)| *is_set) {
            return Err(format!("{option} can't be combined with a ws:// or wss:// URL"));
        }
        let compares = requests.plans.iter().any(|plan| plan.response.is_some())
            || of.echo
            || expect.expect_length.is_some();
        if of.one_way && compares {
            return Err("--one-way has no replies: no option can expect any".into());
        }
        let has_body = requests.plans.iter().any(|plan| !plan.body.is_empty());
        let says_empty = request.bodies.data.is_some() || request.bodies.data_size.is_some();
        for plan in &mut requests.plans {
            plan.method = Method::GET;
            if !has_body && !says_empty && request.bodies.data_file.is_none() {
                plan.body = Bytes::from(vec![b'x'; MESSAGE_BYTES]);
            }
            if of.echo {
                plan.response = Some(ExpectedBody::Exact(plan.body.clone()));
            }
        }
        Ok(Some(of))
    }
}
