//! Records of each request, written while the load runs: CSV (RFC 4180), JSON Lines or Parquet.

#[cfg(feature = "parquet")]
mod parquet;

use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bolide_probe::progress::{Record, RecordSink};
use bolide_probe::report::Failure;
use serde::Serialize;

#[cfg(feature = "parquet")]
use self::parquet::Table;

/// A file of records.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    out: Rc<RefCell<Out>>,
}

#[derive(Debug)]
struct Out {
    file: Format,
    /// Nothing more is written after the first error.
    result: io::Result<()>,
}

/// Format of records, and its name.
enum Format {
    Csv(BufWriter<File>),
    Lines(BufWriter<File>),
    #[cfg(feature = "parquet")]
    Parquet(Box<Table>),
}

impl fmt::Debug for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Csv(_) => "Csv",
            Self::Lines(_) => "Lines",
            #[cfg(feature = "parquet")]
            Self::Parquet(_) => "Parquet",
        })
    }
}

/// A line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    phase: &'a str,
    at_ns: u64,
    latency_ns: u64,
    request: u32,
    status: u16,
    bytes: u64,
    failure: Option<Failure>,
}

impl Records {
    /// Creates the file, whose name says what it has: `.jsonl`, `.parquet`, or else CSV.
    ///
    /// # Errors
    ///
    /// Why it can't be created, in a sentence.
    pub fn create(path: &Path) -> Result<Self, String> {
        let refused = |error: io::Error| format!("--records {}: {error}", path.display());
        let file = Format::begin(path).map_err(refused)?;
        let out = Out { file, result: Ok(()) };
        Ok(Self { path: path.to_owned(), out: Rc::new(RefCell::new(out)) })
    }

    /// Writes what it is given.
    pub fn sink(&self) -> RecordSink {
        let out = Rc::clone(&self.out);
        Box::new(move |phase, records| {
            let out = &mut *out.borrow_mut();
            if out.result.is_ok() {
                out.result = out.file.write(phase, records);
            }
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// The first error of writing, in a sentence.
    pub fn finish(self) -> Result<(), String> {
        let out = &mut *self.out.borrow_mut();
        let result = std::mem::replace(&mut out.result, Ok(()));
        result
            .and_then(|()| out.file.finish())
            .map_err(|error| format!("{} can't be written: {error}", self.path.display()))
    }
}

impl Format {
    fn begin(path: &Path) -> io::Result<Self> {
        let kind = path.extension().and_then(|extension| extension.to_str());
        #[cfg(not(feature = "parquet"))]
        if kind == Some("parquet") {
            return Err(io::Error::other(
                "this program was built without Parquet: give a name in .csv or .jsonl, or build it with `--features parquet`",
            ));
        }
        let file = File::create(path)?;
        match kind {
            Some("jsonl") => Ok(Self::Lines(BufWriter::new(file))),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Self::Parquet(Box::new(Table::new(file)?))),
            _ => {
                let mut file = BufWriter::new(file);
                file.write_all(b"phase,at_ns,latency_ns,request,status,bytes,failure\r\n")?;
                Ok(Self::Csv(file))
            }
        }
    }

    fn write(&mut self, phase: &str, records: &[Record]) -> io::Result<()> {
        match self {
            Self::Csv(file) => records.iter().try_for_each(|record| write_csv(file, phase, record)),
            Self::Lines(file) => {
                records.iter().try_for_each(|record| write_line(file, phase, record))
            }
            #[cfg(feature = "parquet")]
            Self::Parquet(table) => table.push(phase, records),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Csv(file) | Self::Lines(file) => file.flush(),
            #[cfg(feature = "parquet")]
            Self::Parquet(table) => table.finish(),
        }
    }
}

fn write_line(out: &mut impl Write, phase: &str, record: &Record) -> io::Result<()> {
    let Record { at_ns, latency_ns, request, status, bytes, failure } = *record;
    let line = Line { phase, at_ns, latency_ns, request, status, bytes, failure };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

fn write_csv(out: &mut impl Write, phase: &str, record: &Record) -> io::Result<()> {
    let Record { at_ns, latency_ns, request, status, bytes, failure } = *record;
    let failure = failure.map(failure_name).unwrap_or_default();
    let phase = phase.replace('"', "\"\"");
    write!(out, "\"{phase}\",{at_ns},{latency_ns},{request},{status},{bytes},{failure}\r\n")
}

/// A failure as JSON has it.
fn failure_name(failure: Failure) -> String {
    let name = serde_json::to_value(failure).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_lines_of_csv_or_json() {
        let right =
            Record { at_ns: 5, latency_ns: 4, request: 1, status: 200, bytes: 7, failure: None };
        let wrong = Record { status: 0, failure: Some(Failure::Timeout), ..right };
        let written = |name: &str| {
            let name = format!("bolide-records-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let records = Records::create(&path).unwrap();
            let mut sink = records.sink();
            sink("a \"b\"", &[right]);
            sink("c", &[wrong]);
            records.finish().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            text
        };
        let head = "phase,at_ns,latency_ns,request,status,bytes,failure\r\n";
        let lines = "\"a \"\"b\"\"\",5,4,1,200,7,\r\n\"c\",5,4,1,0,7,timeout\r\n";
        assert_eq!(written("x.csv"), format!("{head}{lines}"));
        let json = written("x.jsonl");
        let lines: Vec<serde_json::Value> =
            json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            (lines[0]["phase"].as_str(), lines[0]["failure"].is_null()),
            (Some("a \"b\""), true)
        );
        assert_eq!((lines.len(), lines[1]["failure"].as_str()), (2, Some("timeout")));
        #[cfg(not(feature = "parquet"))]
        assert!(
            Records::create(Path::new("x.parquet")).unwrap_err().contains("--features parquet")
        );
        let why = Records::create(Path::new("/no such directory/x")).unwrap_err();
        assert!(why.starts_with("--records /no such directory/x: "), "{why}");
    }
}
