//! RFC 8555 §7: one order, from the account to the certificate; and RFC 9773, renewal information.

use std::thread;
use std::time::{Instant, SystemTime};

use bolide_connection::{Identity, Issued, RenewalFacts};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeHandle,
    ChallengeType, Error, Identifier, NewAccount, NewOrder, Order, OrderStatus,
};
use serde::{Deserialize, Serialize};

use crate::certificate;
use crate::failure::Failure;
use crate::limits::{ORDER_TIMEOUT, POLL_PAUSE, POLL_PAUSE_MAX};
use crate::responses::Responses;
use crate::schedule::Suggestion;
use crate::settings::{Challenge, Settings};
use crate::storage::Storage;
use crate::transport::{Transport, at_once};

/// File in which the account is stored.
const ACCOUNT: &str = "account.json";

/// Runs a step of the library.
fn step<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    match at_once(future) {
        Some(result) => result.map_err(Failure::from),
        None => Err(Failure::new("the ACME library waits for something else than a response")),
    }
}

/// The account as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredAccount {
    contact: Vec<String>,
    directory: String,
    credentials: AccountCredentials,
}

/// Everything that an order needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderInputs<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) storage: &'a Storage,
    pub(crate) issued: &'a Issued,
    pub(crate) responses: &'a Responses,
}

impl OrderInputs<'_> {
    /// Orders a certificate for `name` and waits for it: its key and its chain, in PEM. `replaced`: the one that it follows.
    pub(crate) fn order(
        &self,
        name: &str,
        replaced: Option<&RenewalFacts>,
    ) -> Result<String, Failure> {
        let transport = Transport::new(self.settings.trust.as_ref())?;
        self.order_by(&transport, name, replaced).map_err(|mut failure| {
            failure.wait = transport.retry_after();
            failure
        })
    }

    fn order_by(
        &self,
        transport: &Transport,
        name: &str,
        replaced: Option<&RenewalFacts>,
    ) -> Result<String, Failure> {
        let account = self.account(transport)?;
        let mut order = match self.new_order(&account, name, replaced) {
            // The CA has forgotten the account, as staging environments do.
            Err(failure) if failure.is("accountDoesNotExist") => {
                let unremoved =
                    |error| Failure::new(format!("{ACCOUNT} can't be removed: {error}"));
                self.storage.remove(ACCOUNT).map_err(unremoved)?;
                self.new_order(&self.account(transport)?, name, replaced)?
            }
            order => order?,
        };
        let posted = self.post_responses(&mut order, name)?;
        if order.state().status == OrderStatus::Pending {
            let is_over = |status| !matches!(status, OrderStatus::Pending);
            poll(&mut order, transport, is_over).map_err(|failure| failure.about("validation"))?;
        }
        if order.state().status == OrderStatus::Invalid {
            return Err(invalid(&mut order));
        }
        drop(posted);
        let request = certificate::request(name)
            .map_err(|error| Failure::new(format!("the request can't be made: {error}")))?;
        if order.state().status == OrderStatus::Ready {
            step(order.finalize_csr(&request.der))?;
        }
        let is_over = |status| matches!(status, OrderStatus::Valid | OrderStatus::Invalid);
        if !is_over(order.state().status) {
            poll(&mut order, transport, is_over).map_err(|failure| failure.about("issuance"))?;
        }
        let chain = step(order.certificate())?
            .ok_or_else(|| Failure::new("the CA has issued no certificate"))?;
        let whole = format!("{}{chain}", request.key);
        check(&whole, name)?;
        Ok(whole)
    }

    /// The window in which the CA suggests to renew a certificate.
    pub(crate) fn suggestion(&self, facts: &RenewalFacts) -> Result<Suggestion, Failure> {
        let Some(identifier) = identifier(facts) else {
            return Ok(Suggestion { window: None, holds: None });
        };
        let transport = Transport::new(self.settings.trust.as_ref())?;
        let account = self.account(&transport)?;
        match at_once(account.renewal_info(&identifier)) {
            Some(Ok((info, holds))) => {
                let window = info.suggested_window;
                let window = (SystemTime::from(window.start), SystemTime::from(window.end));
                Ok(Suggestion { window: Some(window), holds: Some(holds) })
            }
            Some(Err(Error::Unsupported(_))) => Ok(Suggestion { window: None, holds: None }),
            Some(Err(error)) => Err(error.into()),
            None => Err(Failure::new("the ACME library waits for something else than a response")),
        }
    }

    /// The account that is stored; a new one if there is none.
    fn account(&self, transport: &Transport) -> Result<Account, Failure> {
        let Settings { directory, contact, .. } = self.settings;
        let builder = Account::builder_with_http(Box::new(transport.clone()));
        let unread = |error| Failure::new(format!("{ACCOUNT} can't be read: {error}"));
        let stored = self.storage.read(ACCOUNT).map_err(unread)?;
        // One that can't be read is lost. A new one orders as well.
        let stored: Option<StoredAccount> =
            stored.and_then(|content| serde_json::from_slice(&content).ok());
        if let Some(stored) = stored.filter(|stored| stored.directory == *directory) {
            let had = stored.contact.clone();
            let account = step(builder.from_credentials(stored.credentials))?;
            if had != *contact {
                let contacts: Vec<&str> = contact.iter().map(String::as_str).collect();
                step(account.update_contacts(&contacts))?;
                self.update_contact()?;
            }
            return Ok(account);
        }
        let contacts: Vec<&str> = contact.iter().map(String::as_str).collect();
        let new = NewAccount {
            contact: &contacts,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = step(builder.create(&new, directory.clone(), None))
            .map_err(|failure| failure.about("no account"))?;
        let (contact, directory) = (contact.clone(), directory.clone());
        self.store_account(&StoredAccount { contact, directory, credentials })?;
        Ok(account)
    }

    /// Notes that the CA has the contact of the settings.
    fn update_contact(&self) -> Result<(), Failure> {
        let unread = |what: String| Failure::new(format!("{ACCOUNT} can't be read: {what}"));
        let stored = self.storage.read(ACCOUNT).map_err(|error| unread(error.to_string()))?;
        let stored: StoredAccount = serde_json::from_slice(&stored.unwrap_or_default())
            .map_err(|error| unread(error.to_string()))?;
        self.store_account(&StoredAccount { contact: self.settings.contact.clone(), ..stored })
    }

    fn store_account(&self, account: &StoredAccount) -> Result<(), Failure> {
        let unwritten = |what: String| Failure::new(format!("{ACCOUNT} can't be written: {what}"));
        let text = serde_json::to_vec(account).map_err(|error| unwritten(error.to_string()))?;
        self.storage.write(ACCOUNT, &text).map_err(|error| unwritten(error.to_string()))
    }

    fn new_order(
        &self,
        account: &Account,
        name: &str,
        replaced: Option<&RenewalFacts>,
    ) -> Result<Order, Failure> {
        let names = [Identifier::Dns(name.to_owned())];
        if let Some(identifier) = replaced.and_then(identifier) {
            match at_once(account.new_order(&NewOrder::new(&names).replaces(identifier))) {
                Some(Ok(order)) => return Ok(order),
                // RFC 9773 §5: the CA doesn't know it, it was replaced already, or the CA knows of no renewal information.
                Some(Err(Error::Unsupported(_) | Error::Other(_))) => {}
                Some(Err(error)) => {
                    let failure = Failure::from(error);
                    let says_no = ["alreadyReplaced", "malformed", "conflict", "notFound"];
                    if !says_no.iter().any(|problem| failure.is(problem)) {
                        return Err(failure);
                    }
                }
                None => {}
            }
        }
        step(account.new_order(&NewOrder::new(&names)))
    }

    /// Puts responses in place for all names that are yet to be validated, and tells the CA.
    fn post_responses(&self, order: &mut Order, name: &str) -> Result<Vec<Posted<'_>>, Failure> {
        let mut posted = Vec::new();
        let mut authorizations = order.authorizations();
        loop {
            let next = at_once(authorizations.next()).ok_or_else(|| {
                Failure::new("the ACME library waits for something else than a response")
            })?;
            let Some(handle) = next else { return Ok(posted) };
            let mut handle = handle.map_err(Failure::from)?;
            match handle.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                status => return Err(Failure::new(format!("the authorization is {status:?}"))),
            }
            let kind = match self.settings.challenge {
                Challenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
                Challenge::Http01 => ChallengeType::Http01,
            };
            let Some(mut challenge) = handle.challenge(kind) else {
                let what = format!("the CA offers no {} challenge", self.settings.challenge.name());
                return Err(Failure::new(what));
            };
            posted.push(self.post_response(name, &challenge)?);
            step(challenge.set_ready())?;
        }
    }

    fn post_response(
        &self,
        name: &str,
        challenge: &ChallengeHandle<'_>,
    ) -> Result<Posted<'_>, Failure> {
        let authorization = challenge.key_authorization();
        match self.settings.challenge {
            Challenge::Http01 => {
                self.responses.set(&challenge.token, authorization.as_str());
                Ok(Posted::Response(self.responses, challenge.token.clone()))
            }
            Challenge::TlsAlpn01 => {
                let digest = authorization.digest();
                let digest: &[u8; 32] = digest
                    .as_ref()
                    .try_into()
                    .map_err(|_| Failure::new("the digest of a challenge has not 32 bytes"))?;
                let identity = certificate::of_challenge(name, digest).map_err(Failure::new)?;
                self.issued.set_challenge(name, Some(&identity));
                Ok(Posted::Certificate(self.issued, name.to_owned()))
            }
        }
    }
}

/// A response that is in place until this is dropped.
#[derive(Debug)]
enum Posted<'a> {
    Response(&'a Responses, String),
    Certificate(&'a Issued, String),
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        match self {
            Self::Response(responses, token) => responses.remove(token),
            Self::Certificate(issued, name) => issued.set_challenge(name, None),
        }
    }
}

/// Requests the state of an order until it is one that counts.
fn poll(
    order: &mut Order,
    transport: &Transport,
    is_over: impl Fn(OrderStatus) -> bool,
) -> Result<(), Failure> {
    let deadline = Instant::now() + ORDER_TIMEOUT;
    let (mut pause, mut asked) = (POLL_PAUSE, None);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let seconds = ORDER_TIMEOUT.as_secs();
            return Err(Failure::new(format!(
                "the CA has not come to a result within {seconds} s"
            )));
        }
        thread::sleep(asked.unwrap_or(pause).min(left));
        let state = step(order.refresh())?;
        if let Some(problem) = &state.error
            && state.status != OrderStatus::Invalid
        {
            return Err(Failure::of_problem(problem));
        }
        if is_over(state.status) {
            return Ok(());
        }
        pause = (pause * 3 / 2).min(POLL_PAUSE_MAX);
        asked = transport.retry_after();
    }
}

/// Why an order is invalid: what its challenges say, else what it says itself.
fn invalid(order: &mut Order) -> Failure {
    let mut said = None;
    let mut authorizations = order.authorizations();
    while let Some(Some(Ok(mut handle))) = at_once(authorizations.next()) {
        if let Ok(state) = step(handle.refresh()) {
            said = said.or_else(|| state.challenges.iter().find_map(|one| one.error.clone()));
        }
    }
    match said.or_else(|| order.state().error.clone()) {
        Some(problem) => Failure::of_problem(&problem),
        None => Failure::new("the CA calls the order invalid and doesn't say why"),
    }
}

/// Checks whether this is a certificate of `name` and its key.
fn check(whole: &str, name: &str) -> Result<(), Failure> {
    let identity = Identity::from_pem(whole.as_bytes(), whole.as_bytes())
        .map_err(|error| Failure::new(format!("the certificate can't be used: {error}")))?;
    if !identity.dns_names().iter().any(|own| own == name) {
        return Err(Failure::new("the certificate that the CA has issued is for another name"));
    }
    match identity.renewal_facts() {
        Some(facts) if facts.not_after > SystemTime::now() => Ok(()),
        Some(_) => Err(Failure::new(
            "the certificate that the CA has issued has expired (is the clock right?)",
        )),
        None => Err(Failure::new("the validity of the certificate can't be read")),
    }
}

/// RFC 9773 §4.1: what the CA calls a certificate by.
fn identifier(facts: &RenewalFacts) -> Option<CertificateIdentifier<'static>> {
    let authority = facts.authority_key.as_deref()?;
    Some(CertificateIdentifier::new(authority.into(), (&*facts.serial).into()).into_owned())
}
