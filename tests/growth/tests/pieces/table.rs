//! All carriers, and the verdict.

use std::fmt::Write as _;

use bolide_launcher::decide;

use crate::cost::Cost;
use crate::{http3, parts, proxy, server};

/// How likely it is, at most, that a square is taken for a straight line: that of a list was in none of 1,000 runs next to busy loops.
const BY_CHANCE: f64 = 0.03;

/// Factor that four times as many pieces may take: 4 is a straight line, 16 a square.
const RATIO_MAX: f64 = 8.0;

/// A carrier of small pieces.
pub(crate) struct Carrier {
    /// Pieces that are carried, and their destination.
    pub(crate) name: &'static str,
    /// The smaller number of pieces.
    pub(crate) count: usize,
    /// Carries so many.
    pub(crate) carry: fn(usize) -> Cost,
    /// Bytes that are kept of the pieces, and copied for each that comes, at most: the limit of what no parser can use before the last.
    pub(crate) rest_bytes: usize,
}

impl Carrier {
    pub(crate) const fn new(name: &'static str, count: usize, carry: fn(usize) -> Cost) -> Self {
        Self { name, count, carry, rest_bytes: 0 }
    }

    /// The same, where so much may be kept and copied.
    pub(crate) const fn keeping(self, rest_bytes: usize) -> Self {
        Self { rest_bytes, ..self }
    }
}

/// Costs of `count` pieces and of four times as many.
struct Row {
    name: &'static str,
    count: usize,
    few: Cost,
    many: Cost,
    rest_bytes: usize,
}

impl Row {
    fn of(carrier: &Carrier) -> Self {
        let Carrier { name, count, carry, rest_bytes } = *carrier;
        Self { name, count, few: carry(count), many: carry(4 * count), rest_bytes }
    }

    fn time_ratio(&self) -> f64 {
        self.many.time.as_secs_f64() / self.few.time.as_secs_f64().max(1e-6)
    }

    fn allocated_ratio(&self) -> f64 {
        self.many.allocated_bytes as f64 / self.few.allocated_bytes.max(1) as f64
    }

    fn is_straight(&self) -> bool {
        let rests = 4 * self.count * self.rest_bytes;
        let allocates_straight =
            self.allocated_ratio() <= RATIO_MAX || self.many.allocated_bytes <= rests as u64;
        self.time_ratio() <= RATIO_MAX && allocates_straight
    }

    /// A row of the table in `docs/MEMORY.md`.
    fn text(&self) -> String {
        let pieces = 4 * self.count;
        let each = |bytes: u64| bytes as f64 / pieces as f64;
        format!(
            "| {} | {pieces} | {:.2} µs | {:.1} | {:.0} | {:.1} | {:.0} |",
            self.name,
            self.many.time.as_secs_f64() * 1e6 / pieces as f64,
            self.time_ratio(),
            each(self.many.allocated_bytes),
            self.allocated_ratio(),
            each(self.many.held_bytes),
        )
    }
}

const HEAD: &str = "| pieces | number | time each | time, 4 × | allocated each, bytes | allocated, 4 × | held each, bytes |
|---|--:|--:|--:|--:|--:|--:|";

#[test]
fn one_more_piece_costs_the_same_however_many_came_before() {
    let carriers = [server::CARRIERS, proxy::CARRIERS, http3::CARRIERS, parts::CARRIERS];
    let only = std::env::var("GROWTH_ONLY").unwrap_or_default();
    let mut text = format!("{HEAD}\n");
    let mut bent = Vec::new();
    for carrier in carriers.into_iter().flatten().filter(|carrier| carrier.name.contains(&only)) {
        let mut row = String::new();
        let decided = decide(BY_CHANCE, || {
            let measured = Row::of(carrier);
            row = measured.text();
            if measured.is_straight() { Ok(()) } else { Err(()) }
        });
        let _ = writeln!(text, "{row}");
        if decided.is_err() {
            bent.push(row);
        }
    }
    eprintln!("{text}");
    assert!(bent.is_empty(), "no straight line:\n{HEAD}\n{}", bent.join("\n"));
}

#[test]
fn a_list_that_is_gone_through_for_each_piece_is_found() {
    fn gone_through(count: usize) -> Cost {
        let mut list: Vec<usize> = Vec::with_capacity(count);
        Cost::of(|| {
            for piece in 0..count {
                list.push(piece);
                list.iter_mut().for_each(|kept| *kept = std::hint::black_box(*kept ^ 1));
            }
        })
    }
    fn copied(count: usize) -> Cost {
        Cost::of(|| {
            let mut kept = Vec::new();
            for _ in 0..count {
                kept = std::hint::black_box([&kept[..], b"x"].concat());
            }
        })
    }
    let row = Row::of(&Carrier::new("a list", 2000, gone_through));
    assert!(!row.is_straight(), "{}", row.text());
    let row = Row::of(&Carrier::new("a copy", 2000, copied));
    assert!(!row.is_straight(), "{}", row.text());
}
