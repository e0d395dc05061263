//! The limits of orders.

use std::time::Duration;

use bolide_limits::limits;

/// The longest pause that a CA may ask for with `Retry-After`. Default: 24 h. Unit: time. Reason: a certificate of six days survives it.
/// Against: slow-server.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long one request to a CA may take, with its response. Default: 30 s. Unit: time. Reason: CAs respond within a second.
/// Against: slow-server.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest response of a CA. Default: 256 KiB. Unit: bytes. Reason: a chain of certificates has some 5 KiB. Against:
/// endless-response.
pub const RESPONSE_BYTES: usize = 256 * 1024;

/// How long a CA may take to validate a name, and again to issue the certificate. Default: 2 min. Unit: time. Reason: CAs need
/// seconds; other names wait meanwhile. Against: slow-server.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(120);

/// The first pause before the state of an order is requested; each further one is half as long again. Default: 250 ms. Unit: time. Reason:
/// some CAs have validated a name by then. Against: none.
pub const POLL_PAUSE: Duration = Duration::from_millis(250);

/// The longest of these pauses. Default: 5 s. Unit: time. Reason: some 30 requests for an order that takes two minutes. Against: none.
pub const POLL_PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long renewal information is taken as it is where the CA says nothing, or can't be reached. Default: 6 h. Unit: time. Reason: RFC 9773
/// §4.3. Against: none.
pub const RENEWAL_INFO_TIME: Duration = Duration::from_secs(6 * 3600);

/// The shortest time for which it is taken as it is, whatever the CA says. Default: 1 min. Unit: time. Reason: RFC 9773 §4.3.2.
/// Against: none.
pub const RENEWAL_INFO_TIME_MIN: Duration = Duration::from_secs(60);

/// The longest time for which it is taken as it is, whatever the CA says. Default: 24 h. Unit: time. Reason: RFC 9773 §4.3.2; a CA that
/// has to revoke gives a day. Against: none.
pub const RENEWAL_INFO_TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// The longest that the thread sleeps. Default: 1 h. Unit: time. Reason: a machine that was suspended, or whose clock was set, is noticed.
/// Against: none.
pub const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// The longest text of a failure that is kept and logged. Default: 500. Unit: letters. Reason: a CA says in two sentences what
/// is wrong. Against: endless-response.
pub const FAILURE_LETTERS_COUNT: usize = 500;

limits! {
    /// The limits of orders that can be set.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct AcmeLimits {
        /// How long a name waits after its first order failed; each further failure triples it, and all are up to a quarter shorter
        /// or longer by chance. Default: 1 min. Unit: time. Reason: who corrects a DNS record sees it soon, and of six attempts in
        /// the first two hours a CA that allows five failures an hour refuses none. Against: none.
        retry_delay: Duration = Duration::from_secs(60),

        /// The longest that a name waits after its order failed. Default: 6 h. Unit: time. Reason: a CA that was out of order for
        /// days is asked four times a day for each name. Against: none.
        retry_delay_max: Duration = Duration::from_secs(6 * 3600),
    }
}
