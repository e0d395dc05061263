//! Output of callgrind: instructions by function.

use std::collections::BTreeMap;

/// Cost of one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions in itself.
    pub own: i64,
    /// Instructions in itself and in what it called.
    pub inclusive: i64,
    /// How often it was called.
    pub calls: i64,
}

/// A line of source, as a part of a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The function that it was compiled into.
    pub function: String,
    /// The path of its file.
    pub file: String,
    /// Its number; 0: the compiler names none.
    pub line: i64,
}

/// Counts of one run of a program, or the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// All instructions.
    pub total: i64,
    /// By name of the function. Calls of a function to itself are in it.
    pub functions: BTreeMap<String, Cost>,
    /// Own instructions by place, inlined functions where they are written.
    pub places: BTreeMap<Place, i64>,
}

/// Names that a file of callgrind gives once and then calls by a number.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    /// `(7) name` and later `(7)`, or a plain name.
    fn resolve(&mut self, text: &str) -> Result<String, String> {
        let Some((number, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        else {
            return Ok(text.to_owned());
        };
        let name = name.trim_start();
        if !name.is_empty() {
            self.0.insert(number.to_owned(), name.to_owned());
        }
        self.0.get(number).cloned().ok_or_else(|| format!("callgrind names nothing ({number})"))
    }
}

/// Position of the reader of a file.
#[derive(Debug, Default)]
struct Reader {
    profile: Profile,
    functions: Names,
    files: Names,
    function: String,
    file: String,
    callee: String,
    line: i64,
    /// The next line of costs is that of a call.
    in_call: bool,
}

impl Profile {
    /// Reads a file of callgrind.
    ///
    /// # Errors
    ///
    /// What in it can't be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::default();
        let mut total = None;
        for line in text.lines() {
            if let Some(value) = line.strip_prefix("totals:") {
                total = Some(number(value.trim())?);
            } else {
                reader.take(line)?;
            }
        }
        reader.profile.total = total.ok_or("callgrind has not written its counts to the end")?;
        Ok(reader.profile)
    }

    /// Returns what this one has more than the other.
    pub fn without(mut self, other: &Self) -> Self {
        self.total -= other.total;
        for (name, less) in &other.functions {
            let cost = self.functions.entry(name.clone()).or_default();
            cost.own -= less.own;
            cost.inclusive -= less.inclusive;
            cost.calls -= less.calls;
        }
        for (place, less) in &other.places {
            *self.places.entry(place.clone()).or_default() -= less;
        }
        self
    }

    fn function(&mut self, name: &str) -> &mut Cost {
        self.functions.entry(name.to_owned()).or_default()
    }
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let Some(first) = line.bytes().next() else { return Ok(()) };
        if first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'*') {
            return self.cost(line);
        }
        // Others are about the file as a whole.
        let Some((key, value)) = line.split_once('=') else { return Ok(()) };
        match key {
            "fl" | "fi" | "fe" => self.file = self.files.resolve(value)?,
            "fn" => self.function = whole_name(&self.functions.resolve(value)?),
            "cfn" => self.callee = whole_name(&self.functions.resolve(value)?),
            // Names share their numbers with those of the callers.
            "cfi" | "cfl" => drop(self.files.resolve(value)?),
            "calls" => {
                let count = number(value.split(' ').next().unwrap_or_default())?;
                let callee = std::mem::take(&mut self.callee);
                self.profile.function(&callee).calls += count;
                // A function's calls to itself are in its own cost already.
                self.in_call = true;
                self.callee = callee;
            }
            _ => {}
        }
        Ok(())
    }

    /// `LINE COST`, the line perhaps relative to the one before.
    fn cost(&mut self, text: &str) -> Result<(), String> {
        let (position, cost) =
            text.split_once(' ').ok_or_else(|| format!("callgrind's `{text}` has no cost"))?;
        self.line = match position.as_bytes()[0] {
            b'*' => self.line,
            b'+' | b'-' => self.line + number(position)?,
            _ => number(position)?,
        };
        let cost = number(cost)?;
        if std::mem::take(&mut self.in_call) {
            if self.callee != self.function {
                self.profile.function(&self.function).inclusive += cost;
            }
        } else {
            let of_function = self.profile.function(&self.function);
            of_function.own += cost;
            of_function.inclusive += cost;
            let (function, file) = (self.function.clone(), self.file.clone());
            let place = Place { function, file, line: self.line };
            *self.profile.places.entry(place).or_default() += cost;
        }
        Ok(())
    }
}

/// callgrind counts what a function called by itself does as a function of its own, `name'2`.
fn whole_name(name: &str) -> String {
    let (whole, depth) = name.rsplit_once('\'').unwrap_or((name, ""));
    let is_depth = !depth.is_empty() && depth.bytes().all(|byte| byte.is_ascii_digit());
    if is_depth { whole.to_owned() } else { name.to_owned() }
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("callgrind's `{text}` is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
positions: line
events: Ir
summary: 1234

ob=(1) /usr/bin/bolide
fl=(1) /src/one.rs
fn=(1) crate::outer
10 5
fi=(2) /src/two.rs
+3 7
fe=(1)
cfi=(2)
cfn=(2) crate::inner
calls=3 40
* 300
-2 1

fl=(2)
fn=(2)
40 200
cfn=(3) crate::inner'2
calls=2 40
+1 60

fn=(3)
40 100

totals: 313
";

    fn cost(own: i64, inclusive: i64, calls: i64) -> Cost {
        Cost { own, inclusive, calls }
    }

    #[test]
    fn costs_go_to_their_functions_and_lines() {
        let profile = Profile::parse(FILE).unwrap();
        assert_eq!(profile.total, 313);
        assert_eq!(profile.functions["crate::outer"], cost(13, 313, 0));
        assert_eq!(profile.functions["crate::inner"], cost(300, 300, 5));
        assert_eq!(profile.functions.len(), 2);
        let places = profile.places.iter();
        let places: Vec<_> = places.map(|(at, own)| (at.file.as_str(), at.line, *own)).collect();
        let inner = ("/src/two.rs", 40, 300);
        let outer = [("/src/one.rs", 10, 5), ("/src/one.rs", 11, 1), ("/src/two.rs", 13, 7)];
        assert_eq!((places[0], &places[1..]), (inner, &outer[..]));
    }

    #[test]
    fn a_difference_has_what_only_the_longer_run_has() {
        let shorter = Profile::parse(FILE).unwrap();
        let mut longer = shorter.clone();
        longer.total += 50;
        longer.functions.insert("crate::new".to_owned(), cost(50, 50, 1));
        let difference = longer.without(&shorter);
        assert_eq!(difference.total, 50);
        assert_eq!(difference.functions["crate::new"], cost(50, 50, 1));
        assert_eq!(difference.functions["crate::inner"], cost(0, 0, 0));
        assert!(difference.places.values().all(|own| *own == 0));
    }

    #[test]
    fn a_file_that_ends_early_is_refused() {
        let (cut, _) = FILE.split_once("totals").unwrap();
        assert_eq!(
            Profile::parse(cut),
            Err("callgrind has not written its counts to the end".to_owned())
        );
        assert!(Profile::parse("fn=(9)\ntotals: 1\n").unwrap_err().contains("(9)"));
        assert!(Profile::parse("fn=a\n1 x\ntotals: 1\n").unwrap_err().contains("`x`"));
    }
}
