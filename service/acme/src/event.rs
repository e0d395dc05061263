//! RFC 8555 §6.7: what there is to say of a name, in one line.

use std::fmt;
use std::time::Duration;

/// Something that has happened to a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Its certificate was issued, and is in force.
    Issued {
        /// The name.
        name: String,
        /// How long it is valid from now on.
        valid: Duration,
        /// When it is renewed, from now on.
        renewal: Duration,
        /// Why it could not be stored, if it could not: then it is lost at the end of the process.
        unstored: Option<String>,
    },
    /// Another process has stored a certificate for it, which is in force.
    Adopted {
        /// The name.
        name: String,
        /// How long it is valid from now on.
        valid: Duration,
    },
    /// An order failed.
    Failed {
        /// The name.
        name: String,
        /// Why.
        what: String,
        /// How often, one after the other.
        failures: u32,
        /// When the next order follows, from now on.
        retry: Duration,
        /// How long the certificate in force is valid; `None`: there is none, and TLS handshakes fail.
        valid: Option<Duration>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issued { name, valid, renewal, unstored } => {
                let (valid, renewal) = (rough(*valid), rough(*renewal));
                write!(
                    formatter,
                    "the certificate for {name} was issued: valid for {valid}, renewed in {renewal}"
                )?;
                match unstored {
                    Some(why) => write!(
                        formatter,
                        "; it can't be stored and is lost at the end of this process: {why}"
                    ),
                    None => Ok(()),
                }
            }
            Self::Adopted { name, valid } => write!(
                formatter,
                "the certificate for {name} that another process has stored is in force: valid for {}",
                rough(*valid)
            ),
            Self::Failed { name, what, failures, retry, valid } => {
                let retry = rough(*retry);
                match valid {
                    Some(valid) => write!(
                        formatter,
                        "the certificate for {name} was not renewed and stays valid for {}",
                        rough(*valid)
                    )?,
                    None => write!(
                        formatter,
                        "the certificate for {name} was not issued, TLS handshakes for it fail"
                    )?,
                }
                write!(formatter, "; attempt {failures}, the next one in {retry}: {what}")
            }
        }
    }
}

/// A time in its largest unit of which there are at least two.
fn rough(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_sentence() {
        let name = "a.org".to_owned();
        let days = |count: u64| Duration::from_secs(count * 86_400);
        let issued = Event::Issued {
            name: name.clone(),
            valid: days(90),
            renewal: days(60),
            unstored: None,
        };
        assert_eq!(
            issued.to_string(),
            "the certificate for a.org was issued: valid for 90 days, renewed in 60 days"
        );
        let failed = |valid| Event::Failed {
            name: name.clone(),
            what: "connection refused".to_owned(),
            failures: 2,
            retry: Duration::from_secs(180),
            valid,
        };
        assert_eq!(
            failed(None).to_string(),
            "the certificate for a.org was not issued, TLS handshakes for it fail; attempt 2, the next one \
             in 3 min: connection refused"
        );
        assert!(failed(Some(days(20))).to_string().contains("stays valid for 20 days; attempt 2"));
    }
}
