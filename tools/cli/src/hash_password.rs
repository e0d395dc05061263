//! `bolide hash-password`: what `basic-auth` of a route compares passwords with.

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The longest password, in bytes.
const PASSWORD_BYTES: u64 = 512;

/// Reads a password, and prints its hash.
pub(crate) fn run() -> ExitCode {
    let hash = match read().and_then(|password| hash(&password)) {
        Ok(hash) => hash,
        Err(what) => {
            eprintln!("bolide: {what}");
            return ExitCode::from(2);
        }
    };
    match io::stdout().lock().write_all(format!("{hash}\n").as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bolide: can't print the hash: {error}");
            ExitCode::FAILURE
        }
    }
}

fn hash(password: &[u8]) -> Result<String, String> {
    if password.is_empty() {
        return Err("the password is empty".to_owned());
    }
    if password.len() as u64 > PASSWORD_BYTES {
        return Err(format!("the password is longer than {PASSWORD_BYTES} bytes"));
    }
    bolide_access::hash_password(password).map_err(|error| format!("can't hash: {error}"))
}

/// The first line of the standard input. At a terminal it is asked for twice, and not shown.
fn read() -> Result<Vec<u8>, String> {
    if !io::stdin().is_terminal() {
        return line();
    }
    let _silent =
        Silent::new().map_err(|error| format!("can't turn the terminal's echo off: {error}"))?;
    let first = ask("Password: ")?;
    if ask("Again: ")? != first {
        return Err("the passwords differ".to_owned());
    }
    Ok(first)
}

fn ask(prompt: &str) -> Result<Vec<u8>, String> {
    eprint!("{prompt}");
    let response = line();
    eprintln!();
    response
}

/// Byte by byte: what follows the line is left to the next one.
fn line() -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    for byte in io::stdin().lock().bytes().take(PASSWORD_BYTES as usize + 2) {
        match byte.map_err(|error| format!("can't read the password: {error}"))? {
            b'\n' => break,
            byte => line.push(byte),
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// A terminal that shows nothing of what is typed, until it is dropped.
struct Silent(Termios);

impl Silent {
    fn new() -> rustix::io::Result<Self> {
        io::stderr().flush().unwrap_or_default();
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
