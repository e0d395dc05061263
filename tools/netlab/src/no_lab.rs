//! Labs where there are no network namespaces: none can be made.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::Mistake;
use crate::spec::{Node, Spec};

/// A lab: outside of Linux there is none.
#[derive(Debug)]
pub enum Lab {}

impl Lab {
    /// Says that there are no labs here.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn up(_: &Spec, _: impl FnMut(&str)) -> Result<Self, Mistake> {
        Err(Mistake::Usage("a lab is made of network namespaces, which Linux alone has".to_owned()))
    }

    /// As on Linux.
    ///
    /// # Errors
    ///
    /// None: there is no lab.
    pub fn down(self) -> Result<(), Mistake> {
        match self {}
    }

    /// As on Linux.
    pub fn spec(&self) -> &Spec {
        match *self {}
    }

    /// As on Linux.
    pub fn command(&self, _: Node, _: impl AsRef<OsStr>) -> Command {
        match *self {}
    }

    /// As on Linux.
    ///
    /// # Errors
    ///
    /// None: there is no lab.
    pub fn connect(&self, _: Node, _: SocketAddr, _: Duration) -> Result<TcpStream, Mistake> {
        match *self {}
    }

    /// As on Linux.
    ///
    /// # Errors
    ///
    /// None: there is no lab.
    pub fn listen(&self, _: Node, _: SocketAddr) -> Result<TcpListener, Mistake> {
        match *self {}
    }
}
