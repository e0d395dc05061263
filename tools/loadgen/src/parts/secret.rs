//! The secret that all parts of a run have, and how each proves to the other that it has it.

use aws_lc_rs::{hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// A number that can't have been known before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Nonce(String);

impl Nonce {
    pub(super) fn new() -> Result<Self, String> {
        let mut bytes = [0; 32];
        rand::fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
        Ok(Self(STANDARD.encode(bytes)))
    }
}

/// Side that proves something: so that no proof can be sent back.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) enum Prover {
    First,
    Other,
}

/// Proof that only those can make who know the secret, for one meeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Proof(String);

/// The secret of a run. Without one, it is the empty text.
#[derive(Debug, Clone)]
pub(crate) struct Secret {
    key: hmac::Key,
    /// As it was given.
    text: String,
}

impl Secret {
    pub(super) fn new(text: Option<String>) -> Self {
        let text = text.unwrap_or_default();
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()), text }
    }

    /// Makes a secret of random bytes.
    pub(super) fn random() -> Result<Self, String> {
        Ok(Self::new(Some(Nonce::new()?.0)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Covers all that was said, so that nothing of it can be changed on the way.
    fn said(prover: Prover, hello: &impl Serialize, challenge: &Nonce) -> Vec<u8> {
        serde_json::to_vec(&("bolide load", prover, hello, challenge))
            .expect("texts and numbers are JSON")
    }

    pub(super) fn prove(&self, prover: Prover, hello: &impl Serialize, challenge: &Nonce) -> Proof {
        let tag = hmac::sign(&self.key, &Self::said(prover, hello, challenge));
        Proof(STANDARD.encode(tag))
    }

    pub(super) fn verifies(
        &self,
        proof: &Proof,
        prover: Prover,
        hello: &impl Serialize,
        challenge: &Nonce,
    ) -> bool {
        STANDARD.decode(&proof.0).is_ok_and(|tag| {
            hmac::verify(&self.key, &Self::said(prover, hello, challenge), &tag).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::protocol::Hello;

    #[test]
    fn only_the_same_secret_role_and_meeting_verify() {
        let (secret, other) = (Secret::new(Some("a".into())), Secret::new(Some("b".into())));
        let (hello, challenge) = (Hello::fabricated(), Nonce::new().unwrap());
        let proof = secret.prove(Prover::Other, &hello, &challenge);
        assert!(secret.verifies(&proof, Prover::Other, &hello, &challenge));
        assert!(!other.verifies(&proof, Prover::Other, &hello, &challenge));
        assert!(!secret.verifies(&proof, Prover::First, &hello, &challenge));
        assert!(!secret.verifies(&proof, Prover::Other, &hello, &Nonce::new().unwrap()));
        let changed = Hello { part: 3, ..hello.clone() };
        assert!(!secret.verifies(&proof, Prover::Other, &changed, &challenge));
        assert!(!secret.verifies(&Proof("!".into()), Prover::Other, &hello, &challenge));
    }
}
