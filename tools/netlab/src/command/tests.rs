use clap::{CommandFactory, FromArgMatches, Parser};

use super::*;

#[derive(Debug, Parser)]
struct Program {
    #[command(subcommand)]
    action: Action,
}

fn spec(arguments: &str) -> Result<Spec, String> {
    let words = ["net", "up"].into_iter().chain(arguments.split_whitespace());
    let matches =
        Program::command().try_get_matches_from(words).map_err(|error| error.to_string())?;
    let program = Program::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let Action::Up(up) = program.action else { unreachable!("`up` is what was asked for") };
    up.spec().map_err(|mistake| mistake.to_string())
}

#[test]
fn values_are_for_both_directions_or_for_each() {
    let spec = spec("--rate 20mbit/5mbit --rtt 50ms --loss 0%/1% --queue 100p --name x").unwrap();
    assert_eq!((spec.down.rate, spec.up.rate), (Some(20_000_000), Some(5_000_000)));
    assert_eq!([spec.down.delay, spec.up.delay], [Duration::from_millis(25); 2]);
    assert_eq!((spec.down.loss, spec.up.loss), (0.0, 0.01));
    assert_eq!(spec.up.queue, Queue::Packets(100));
}

#[test]
fn what_is_given_beside_a_profile_takes_precedence() {
    let spec = spec("--profile 4g-bloated --delay 5ms/7ms").unwrap();
    assert_eq!(spec.down.rate, Some(30_000_000));
    assert_eq!(spec.down.queue, Queue::Time(Duration::from_millis(500)));
    assert_eq!(spec.up.delay, Duration::from_millis(7));
}

#[test]
fn mistakes_are_one_sentence() {
    for (arguments, expected) in [
        ("--rate fast", "`fast` is not a rate"),
        ("--rate 1mbit/slow", "`slow` is not a rate"),
        ("--profile 6g", "no profile `6g`"),
        ("--left 192.168.1.0/24", "overlap"),
        ("--name ../x", "not a name of a lab"),
        ("--delay 1ms --rtt 2ms", "cannot be used with"),
        ("--discipline codel", "CoDel needs a queue"),
        ("--reorder 1%", "no packet can overtake"),
        ("--queue 5", "not a queue"),
        ("--left 10.0.0.1/24", "use 10.0.0.0/24"),
    ] {
        let error = spec(arguments).unwrap_err();
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

#[test]
fn times_of_a_measurement_are_seconds() {
    assert_eq!(seconds("5"), Ok(Duration::from_secs(5)));
    assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
    assert!(seconds("0").unwrap_err().contains("from 50ms to 1h"));
    assert!(seconds("x").unwrap_err().contains("not a time"));
}
