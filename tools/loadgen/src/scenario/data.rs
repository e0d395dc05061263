//! Rows of data for users: CSV (RFC 4180) with a line of names, or JSON Lines of objects.

use std::path::Path;

use serde_json::{Map, Value};

use crate::given::body_file;

/// Most columns.
const COLUMNS_COUNT: usize = 1000;

/// The names of the columns, and the rows.
pub(super) type Table = (Vec<String>, Vec<Box<[Box<str>]>>);

/// Reads a table; by the file's name, JSON Lines (`.jsonl`, `.ndjson`) or CSV.
///
/// # Errors
///
/// The file, the row and what is wrong with it.
pub(super) fn read(path: &Path) -> Result<Table, String> {
    let text = body_file("data", path)?;
    let is_lines = path.extension().is_some_and(|name| name == "jsonl" || name == "ndjson");
    let table = if is_lines { lines(&text) } else { csv(&text) };
    let (columns, rows) = table.map_err(|why| format!("data {}: {why}", path.display()))?;
    if rows.is_empty() {
        return Err(format!("data {}: has no row", path.display()));
    }
    Ok((columns, rows))
}

fn csv(text: &[u8]) -> Result<Table, String> {
    let mut reader = csv::Reader::from_reader(text);
    let columns: Vec<String> =
        reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
    check(&columns)?;
    let rows = reader.records().map(|record| {
        let record = record.map_err(|error| error.to_string())?;
        Ok(record.iter().map(Box::from).collect())
    });
    let rows = rows.collect::<Result<_, String>>()?;
    Ok((columns, rows))
}

fn lines(text: &[u8]) -> Result<Table, String> {
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let named = |why: String| format!("line {}: {why}", index + 1);
        let object: Map<String, Value> =
            serde_json::from_slice(line).map_err(|error| named(error.to_string()))?;
        if columns.is_empty() {
            columns = object.keys().cloned().collect();
            check(&columns).map_err(named)?;
        }
        let row = columns.iter().map(|column| match object.get(column) {
            Some(Value::String(text)) => Ok(text.as_str().into()),
            Some(Value::Null) => Ok("".into()),
            Some(value) => Ok(value.to_string().into()),
            None => Err(named(format!("has no `{column}`, which the first line has"))),
        });
        rows.push(row.collect::<Result<_, String>>()?);
    }
    Ok((columns, rows))
}

fn check(columns: &[String]) -> Result<(), String> {
    if columns.len() > COLUMNS_COUNT {
        return Err(format!("has {} columns, more than {COLUMNS_COUNT}", columns.len()));
    }
    let is_of = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match columns.iter().find(|name| name.is_empty() || !name.chars().all(is_of)) {
        Some(name) => Err(format!(
            "the column `{}` can't be a placeholder: use letters, digits, `_`, `-` and `.`",
            name.escape_debug()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown((columns, rows): Table) -> String {
        let rows = rows.iter().map(|row| row.join("|"));
        format!("{} {}", columns.join("|"), rows.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn tables_are_csv_or_lines_of_json() {
        let text = "name,word\nanna,\"a,b\"\n\"b\"\"c\",\n";
        assert_eq!(shown(csv(text.as_bytes()).unwrap()), "name|word anna|a,b b\"c|");
        let text =
            "{\"id\":7,\"name\":\"x\",\"o\":{\"a\":[1]}}\n\n{\"name\":null,\"id\":true,\"o\":1}\n";
        assert_eq!(shown(lines(text.as_bytes()).unwrap()), "id|name|o 7|x|{\"a\":[1]} true||1");
    }

    #[test]
    fn a_wrong_row_is_named() {
        for (said, why) in [
            (csv(b"a,b\n1\n"), "found record with 1 fields"),
            (csv(b"a b\n1\n"), "the column `a b`"),
            (csv(b"a,\n1,2\n"), "the column ``"),
            (lines(b"{\"a\":1}\n{\"b\":1}\n"), "line 2: has no `a`"),
            (lines(b"[1]\n"), "line 1: invalid type"),
            (lines(b"{\"a{\":1}\n"), "the column `a{`"),
        ] {
            let said = said.unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_reader(text in "(?s).{0,80}") {
            let _ = (csv(text.as_bytes()), lines(text.as_bytes()));
        }
    }
}
