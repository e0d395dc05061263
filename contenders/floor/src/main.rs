//! The floor: what a kernel asks for one HTTP/1.1 exchange, and nothing else.
//!
//! It waits, reads once, writes one canned response, and waits again. So it tells how little any
//! server on this machine could cost, and it is no server: it parses nothing, knows no path, no
//! method and no body, answers several pipelined requests once, and has no timeout, limit or TLS.
//! The one thing it looks at is whether the bytes that it read end in an empty line, so that a
//! request that arrives in two segments is still answered once.
//!
//!     floor-contender [--host ADDRESS] --port PORT [--workers N]
//!
//! Each worker is a thread with its own poller and its own `SO_REUSEPORT` listener.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use contender_program::{Clear, raise_file_limit};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Socket, Type};

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\npong";

const HEAD_END: &[u8] = b"\r\n\r\n";

const LISTENER: Token = Token(usize::MAX - 1);

/// One thread's loop and its sockets.
struct Worker {
    poll: Poll,
    listener: TcpListener,
    sockets: Vec<Option<TcpStream>>,
    free: Vec<usize>,
    block: Vec<u8>,
}

impl Worker {
    fn new(listener: TcpListener) -> io::Result<Self> {
        let poll = Poll::new()?;
        let block = vec![0; 64 * 1024];
        Ok(Self { poll, listener, sockets: Vec::new(), free: Vec::new(), block })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        self.poll.registry().register(&mut self.listener, LISTENER, Interest::READABLE)?;
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    Token(slot) => self.turn(slot, event),
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        // An error means that no client waits any more, or that there is no descriptor for the one that
        // does.
        while let Ok((mut socket, _)) = self.listener.accept() {
            let slot = self.free.pop().unwrap_or(self.sockets.len());
            if slot == self.sockets.len() {
                self.sockets.push(None);
            }
            self.poll.registry().register(&mut socket, Token(slot), Interest::READABLE)?;
            self.sockets[slot] = Some(socket);
        }
        Ok(())
    }

    fn turn(&mut self, slot: usize, event: &Event) {
        let Some(socket) = self.sockets[slot].as_mut() else { return };
        let ends = event.is_read_closed() || event.is_error();
        if !exchange(socket, &mut self.block, ends) {
            self.sockets[slot] = None;
            self.free.push(slot);
        }
    }
}

/// Answers what one edge brought. False once the connection is over.
fn exchange(socket: &mut TcpStream, block: &mut [u8], ends: bool) -> bool {
    loop {
        match socket.read(block) {
            Ok(0) => return false,
            Ok(count) => {
                let whole = block[..count].ends_with(HEAD_END);
                if whole && socket.write_all(RESPONSE).is_err() {
                    return false;
                }
                // A short read has emptied the socket; a second one would only say so.
                if count < block.len() && !ends {
                    return true;
                }
            }
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

fn listen(host: Ipv4Addr, port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    // Accepted sockets inherit it.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((host, port)).into())?;
    socket.listen(4096)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// The command line.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    clear: Clear,
}

fn serve() -> Result<(), String> {
    let Options { clear: Clear { host, port, workers } } = Options::parse();
    raise_file_limit().map_err(|error| format!("cannot raise the limit of open files: {error}"))?;
    let mut threads = Vec::new();
    for _ in 0..workers {
        let listener =
            listen(host, port).map_err(|error| format!("cannot listen on {port}: {error}"))?;
        let mut worker = Worker::new(listener).map_err(|error| format!("no poller: {error}"))?;
        threads.push(thread::spawn(move || worker.run()));
    }
    for thread in threads {
        let result = thread.join().map_err(|_| "a worker panicked")?;
        result.map_err(|error| format!("a worker failed: {error}"))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("floor-contender: {message}");
            ExitCode::FAILURE
        }
    }
}
