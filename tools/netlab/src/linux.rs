//! Parts that only Linux has: namespaces, links, queueing disciplines, TUN devices.

pub(crate) mod carrier;
pub(crate) mod keeper;
pub(crate) mod namespace;
pub(crate) mod processes;
pub(crate) mod record;
pub(crate) mod shaping;
pub(crate) mod topology;
pub(crate) mod verify;
