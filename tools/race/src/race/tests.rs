//! Races between planted servers, which are this test program itself, started again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::catalogue::{Certificate, Protocol, Route};
use crate::contender::{Contender, Sources};
use crate::interrupt::INTERRUPTED;
use crate::interrupt::Interrupt;
use crate::process::is_alive;
use crate::requests::Requests;
use crate::rounds::Rounds;

/// What the planted server is to do; unset in the test's own process.
const PART: &str = "BOLIDE_RACE_PLANTED";

/// Requests that the mortal one answers.
const LIFE: u32 = 300;

/// Requests by which a server knows that it has been verified.
const VERIFIED: u32 = 30;

/// Not a test when it is started by a race: the planted server.
#[test]
fn planted() {
    let Ok(part) = std::env::var(PART) else { return };
    let (part, port) = part.split_once(':').unwrap();
    if part == "mute" {
        for number in 1..=12 {
            eprintln!("waiting for nothing, line {number}");
        }
        loop {
            std::thread::park();
        }
    }
    if part == "late" && std::fs::File::create_new("was-here").is_ok() {
        eprintln!("Address already in use");
        std::process::exit(1);
    }
    if part == "escaping" || part == "hiding" {
        // Its parent ends at once, so that it is in nobody's tree.
        let mut parent = std::process::Command::new("sh");
        parent.args(["-c", "sh -c 'while :; do :; done' &"]);
        if part == "hiding" {
            parent.env_clear();
        }
        parent.spawn().unwrap().wait().unwrap();
    }
    if part == "straying" {
        crate::process::pin_this_thread(&(0..64).collect::<Vec<_>>());
    }
    if part == "lazy" {
        std::fs::write("never", "").unwrap();
    }
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let answered = Arc::new(AtomicU32::new(0));
    for stream in listener.incoming().flatten() {
        let (part, answered) = (part.to_owned(), Arc::clone(&answered));
        std::thread::spawn(move || drop(serve(stream, &part, &answered)));
    }
}

fn serve(mut stream: TcpStream, part: &str, answered: &AtomicU32) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut learnt = Vec::new();
    for number in 1.. {
        let mut request = String::new();
        reader.read_line(&mut request)?;
        let mut length = 0;
        loop {
            let mut field = String::new();
            if reader.read_line(&mut field)? == 0 {
                return Ok(());
            }
            if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if field.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if part == "diligent" {
            let file = std::fs::File::options().create(true).append(true).open("asked");
            file?.write_all(request.as_bytes())?;
        }
        let count = answered.fetch_add(1, Ordering::Relaxed);
        if part == "mortal" && count > LIFE {
            eprintln!("out of planted memory");
            std::process::exit(9);
        }
        let size = request.split_once("size=").map(|(_, rest)| rest.split(' ').next().unwrap());
        let size: usize = size.map_or(4, |size| size.parse().unwrap());
        if length == 0 {
            body = match part {
                "constant" => vec![b'x'; 64],
                "turncoat" if count > LIFE => vec![b'x'; size + 1],
                _ => vec![b'x'; size],
            };
        }
        match part {
            "smudging" if count > VERIFIED && count.is_multiple_of(20) => body[0] ^= 1,
            "learning" if count > VERIFIED && learnt.len() == body.len() => {
                body.clone_from(&learnt)
            }
            _ => learnt.clone_from(&body),
        }
        let is_busy = part == "busy" && count > VERIFIED && count.is_multiple_of(50);
        let status = if is_busy { "503 Busy" } else { "200 OK" };
        let is_last = part == "closing" && number % 10 == 0;
        let close = if is_last { "Connection: close\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status}\r\n{close}Content-Length: {}\r\n\r\n", body.len());
        let response = [head.as_bytes(), &body].concat();
        let copies = match part {
            "gushing" => 1000,
            // Each connection that verifies it asks for less.
            "doubling" if number > 10 => 2,
            _ => 1,
        };
        stream.write_all(&response.repeat(copies))?;
        if is_last {
            break;
        }
    }
    Ok(())
}

fn present(part: &str, interrupt: &Interrupt) -> Present {
    let program = std::env::current_exe().unwrap();
    let text = format!(
        "name = '{part}'\nprotocols = ['h1']\nroutes = ['echo', 'post']\n[start]\n\
         command = ['{}', 'race::tests::planted', '--exact', '--nocapture']\n\
         env = {{ {PART} = '{part}:{{port}}' }}\nwrites = {}\n[ready]\nwithin_s = {}\n",
        program.display(),
        match part {
            "diligent" => "['asked']",
            "lazy" => "['never']",
            _ => "[]",
        },
        if part == "mute" { 0.5 } else { 20.0 },
    );
    let contender = Contender::parse(&text, part).unwrap();
    crate::entrant::detect(&contender, &Sources::Carried, interrupt, &mut || {}).unwrap()
}

fn cell() -> Cell {
    Cell {
        protocol: Protocol::H1,
        route: Route::Echo,
        connections: 1,
        depth: 1,
        size: 64,
        window: None,
        load: Kind::Closed,
        cores: Cores::One,
        certificate: Certificate::default(),
        requests: Requests::default(),
    }
}

/// Races these parts, with `each` called before each step; races work in one folder, one by one.
fn raced(
    parts: &[&str],
    interrupt: &Interrupt,
    each: &mut dyn FnMut(&str),
) -> Result<CellOutcome, String> {
    raced_in(&cell(), parts, interrupt, each)
}

fn raced_in(
    cell: &Cell,
    parts: &[&str],
    interrupt: &Interrupt,
    each: &mut dyn FnMut(&str),
) -> Result<CellOutcome, String> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let present: Vec<Present> = parts.iter().map(|part| present(part, interrupt)).collect();
    let ground = Ground {
        sources: &Sources::Carried,
        interrupt,
        program: std::env::current_exe().unwrap(),
        seed: 5,
    };
    let settings = Settings { rounds: Rounds::Fixed(3), ..Settings::full() };
    let mut race = Race {
        ground,
        place: Workplace::new(5).unwrap(),
        generator: Generator::InProcess,
        settings,
        reference: parts[0].to_owned(),
        cores: Layout::of(crate::process::available()),
    };
    race.run(cell, &present, each).map(Option::unwrap)
}

/// Our children that are planted servers of `part`.
fn planted_servers(part: &str) -> Vec<u32> {
    crate::process::tree(std::process::id())
        .into_iter()
        .filter(|id| {
            let wanted = format!("{PART}={part}:");
            std::fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|text| String::from_utf8_lossy(&text).contains(&wanted))
        })
        .collect()
}

#[test]
fn an_honest_server_and_its_twin_are_timed_in_every_round() {
    let outcome = raced(&["honest"], &Interrupt::default(), &mut |_| {}).unwrap();
    assert_eq!(outcome.entrants.len(), 2);
    for entrant in &outcome.entrants {
        // Where the host has moved the cores, rounds that have no like are run again.
        assert_eq!(entrant.fate, Fate::Timed);
        assert!((3..=6).contains(&entrant.rounds.len()), "{}", entrant.rounds.len());
        assert!(entrant.figures().all(|figures| figures.cpu_us > 0.0), "{entrant:?}");
        assert!(entrant.peak_memory_bytes > 100_000);
    }
    assert!(outcome.twins().is_some());
    assert_eq!(planted_servers("honest"), [0; 0]);
}

#[test]
fn a_server_that_cheats_is_disqualified_and_the_others_go_on() {
    let outcome = raced(&["plain", "constant"], &Interrupt::default(), &mut |_| {}).unwrap();
    let Fate::Disqualified(evidence) = &outcome.entrant("constant").unwrap().fate else {
        panic!("{:?}", outcome.entrants)
    };
    assert!(evidence.contains("the body has 64 bytes, not "), "{evidence}");
    assert!(outcome.entrant("plain").unwrap().counts());
}

#[test]
fn a_server_that_sends_more_responses_than_it_reads_requests_is_not_timed() {
    let outcome = raced(&["gushing", "doubling"], &Interrupt::default(), &mut |_| {}).unwrap();
    let why = "bytes came that answered no request";
    let Fate::Disqualified(evidence) = &outcome.entrant("gushing").unwrap().fate else {
        panic!("{:?}", outcome.entrants)
    };
    assert!(evidence.contains(why), "{evidence}");
    // This one begins when it has been verified.
    let doubling = outcome.entrant("doubling").unwrap();
    assert!(!doubling.counts(), "{doubling:?}");
    assert_eq!(doubling.remarks, [why; 3]);
}

#[test]
fn a_server_that_turns_in_the_middle_of_a_run_is_caught() {
    let outcome = raced(&["turncoat"], &Interrupt::default(), &mut |_| {}).unwrap();
    let Fate::Disqualified(evidence) = &outcome.entrants[0].fate else {
        panic!("{:?}", outcome.entrants)
    };
    assert!(evidence.starts_with("in the middle of a run: "), "{evidence}");
}

/// The evidence against a part that races an honest one.
fn evidence(cell: &Cell, part: &str) -> String {
    found(cell, part).unwrap_or_else(|fate| panic!("{fate:?}"))
}

/// The same, or what else became of it.
fn found(cell: &Cell, part: &str) -> Result<String, Fate> {
    let outcome = raced_in(cell, &["honest", part], &Interrupt::default(), &mut |_| {}).unwrap();
    assert!(outcome.entrant("honest").unwrap().counts(), "{:?}", outcome.entrants);
    match &outcome.entrant(part).unwrap().fate {
        Fate::Disqualified(evidence) => Ok(evidence.clone()),
        fate => Err(fate.clone()),
    }
}

#[test]
fn wrong_bytes_at_the_right_length_are_caught_under_load() {
    let found = evidence(&cell(), "smudging");
    assert!(found.contains(" bodies under load were wrong, of 600 responses"), "{found}");
}

#[test]
fn a_body_that_is_sent_back_from_memory_is_caught_under_load() {
    let found = evidence(&Cell { route: Route::Post, ..cell() }, "learning");
    assert!(found.contains("bod"), "{found}");
}

#[test]
fn responses_with_a_wrong_status_are_named_with_their_kind() {
    let found = evidence(&cell(), "busy");
    assert!(found.contains("wrong or missing: status 1"), "{found}");
}

#[test]
fn a_server_that_announces_that_it_closes_is_named() {
    let outcome = raced(&["closing"], &Interrupt::default(), &mut |_| {}).unwrap();
    let closing = outcome.entrant("closing").unwrap();
    assert_eq!(closing.remarks[0], "it closed connections under load: 21 were made for 1");
    assert!(closing.counts());
}

#[test]
fn work_in_a_process_that_left_the_tree_is_caught_and_the_process_ended() {
    // Without its environment it is found by its control group alone.
    let parts: &[&str] =
        if crate::process::has_groups() { &["escaping", "hiding"] } else { &["escaping"] };
    for part in parts {
        // On a busy machine, it may not have had the CPU that it takes within the runs of one race.
        let found = (0..5).find_map(|_| found(&cell(), part).ok()).unwrap();
        assert!(found.contains(" left its process tree and used "), "{found}");
        let id: u32 = found.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(!is_alive(id));
    }
}

#[test]
fn a_server_that_may_run_on_the_generators_core_is_caught() {
    if crate::process::available().len() < 2 {
        return;
    }
    let found = evidence(&cell(), "straying");
    assert!(found.contains(" may run on core 1, which is not the server's"), "{found}");
}

#[test]
fn impossible_figures_and_foreign_work_are_caught() {
    use crate::outcome::tests::entrant;
    let reference = entrant("bolide", false, &[3.0; 6]);
    let mut other = entrant("other", false, &[0.001; 6]);
    let found = complaint(&other, Some(&reference)).unwrap();
    assert!(found.starts_with("0.00 µs of CPU per request can't be all"), "{found}");
    assert_eq!(complaint(&other, Some(&entrant("bolide", false, &[0.0; 6]))), None);
    other = entrant("other", false, &[3.0; 6]);
    for (index, figures) in other.rounds.iter_mut().flatten().enumerate() {
        figures.foreign_cores = if index == 0 { 0.9 } else { 0.1 };
    }
    assert_eq!(complaint(&other, Some(&reference)), None);
    for figures in other.rounds.iter_mut().flatten() {
        figures.foreign_cores = 0.42;
    }
    let found = complaint(&other, Some(&reference)).unwrap();
    assert!(found.starts_with("0.42 cores were in use outside of its processes"), "{found}");
}

#[test]
fn a_server_that_does_not_write_what_it_has_to_is_disqualified() {
    let mut left = Vec::new();
    let outcome = raced(&["diligent", "lazy"], &Interrupt::default(), &mut |step| {
        if step.starts_with("round 3") && left.is_empty() {
            left = planted_servers("diligent")
                .iter()
                .map(|id| std::fs::metadata(format!("/proc/{id}/cwd/asked")).unwrap().len())
                .collect();
        }
    });
    let outcome = outcome.unwrap();
    assert!(outcome.entrant("diligent").unwrap().counts(), "{:?}", outcome.entrants);
    let Fate::Disqualified(evidence) = &outcome.entrant("lazy").unwrap().fate else {
        panic!("{:?}", outcome.entrants)
    };
    assert_eq!(evidence, "it has written nothing to `never`");
    // A round writes tens of kilobytes, which are gone after it.
    assert!(!left.is_empty() && left.iter().all(|bytes| *bytes < 10_000), "{left:?}");
}

#[test]
fn a_server_that_dies_is_reported_with_its_last_words() {
    let outcome = raced(&["mortal"], &Interrupt::default(), &mut |_| {}).unwrap();
    let Fate::Died(words) = &outcome.entrants[0].fate else { panic!("{:?}", outcome.entrants) };
    assert!(words.contains("out of planted memory"), "{words}");
}

#[test]
fn a_server_that_does_not_come_up_shows_its_last_ten_lines() {
    let outcome = raced(&["mute"], &Interrupt::default(), &mut |_| {}).unwrap();
    let Fate::NotStarted(why) = &outcome.entrants[0].fate else { panic!("{:?}", outcome.entrants) };
    assert!(why.starts_with("not ready within 0.5 s"), "{why}");
    assert!(
        why.contains("line 3\n") && why.contains("line 12") && !why.contains("line 2\n"),
        "{why}"
    );
}

#[test]
fn a_port_that_is_taken_is_chosen_anew() {
    let outcome = raced(&["late"], &Interrupt::default(), &mut |_| {}).unwrap();
    assert_eq!(outcome.entrants[0].fate, Fate::Timed);
}

#[test]
fn an_interruption_stops_every_server() {
    let signals = Interrupt::install().unwrap();
    let mut seen = Vec::new();
    let result = raced(&["brief"], &signals, &mut |step| {
        if step.starts_with("round 2") {
            seen.extend(planted_servers("brief"));
            signal_hook::low_level::raise(signal_hook::consts::SIGTERM).unwrap();
        }
    });
    assert_eq!(result.unwrap_err(), INTERRUPTED);
    assert_eq!(seen.len(), 2, "the server and its twin ran");
    assert!(!seen.iter().any(|id| is_alive(*id)));
}
