//! The codec by its sections: rules, conversations, splits, attacks, and a foreign codec.

#[cfg(test)]
mod abuse;
#[cfg(test)]
mod any_split;
#[cfg(test)]
mod closing;
#[cfg(test)]
mod compression;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod wire;
