//! `--print-config --config FILE`: one file with all that the configuration says, and the limits in force.

use std::fmt::Write as _;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::Configuration;
use super::document::Document;
use super::include;
use super::print::limits;

/// Reads the file and those that it includes, and writes what is in force. Mistakes are as at a start.
pub(crate) fn effective(path: &Path) -> Result<String, String> {
    let document = Document::read(path)?;
    let mut configuration = Configuration::of(&document, true)?;
    let included = include::read(&mut document.section()?)?;
    let mut out = format!(
        "# What {} says, with the files that it includes and all variables replaced. Relative paths start at\n\
         # the directory of the file that is named above them.\n",
        document.name()
    );
    let main = document.table()?;
    let (tables, values): (Vec<_>, Vec<_>) = main
        .iter()
        .map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()))
        .filter(|(key, _)| !matches!(*key, "include" | "limits"))
        .partition(|(_, value)| is_section(value));
    for (key, value) in values {
        line(&mut out, key, value);
    }
    sections(&mut out, document.name(), &tables);
    for document in &included {
        let table = document.table()?;
        let tables: Vec<_> =
            table.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref())).collect();
        sections(&mut out, document.name(), &tables);
    }
    limits(&mut out, &mut configuration.limits, &mut configuration.websocket);
    Ok(out)
}

/// Returns whether a value is written below a header.
fn is_section(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Table(_) => true,
        DeValue::Array(items) => {
            !items.is_empty()
                && items.iter().all(|item| matches!(item.get_ref(), DeValue::Table(_)))
        }
        _ => false,
    }
}

fn sections(out: &mut String, file: &str, tables: &[(&str, &DeValue<'_>)]) {
    if !tables.is_empty() {
        // Writing to a string never fails.
        let _ = write!(out, "\n# {file}\n");
    }
    for (key, value) in tables {
        match value {
            DeValue::Table(table) => section(out, &format!("[{}]", name(key)), table),
            DeValue::Array(items) => {
                for item in items.iter() {
                    if let DeValue::Table(table) = item.get_ref() {
                        section(out, &format!("[[{}]]", name(key)), table);
                    }
                }
            }
            _ => {}
        }
    }
}

fn section(out: &mut String, header: &str, table: &DeTable<'_>) {
    let _ = writeln!(out, "{header}");
    for (key, value) in table.iter() {
        line(out, key.get_ref(), value.get_ref());
    }
    out.push('\n');
}

fn line(out: &mut String, key: &str, value: &DeValue<'_>) {
    let _ = writeln!(out, "{} = {}", name(key), written(value));
}

/// A key, in quotes where it needs them.
fn name(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { quoted(key) }
}

/// A value in one line.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(table) => {
            let pair = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                format!("{} = {}", name(key), written(value.get_ref()))
            };
            let pairs: Vec<String> = table.iter().map(pair).collect();
            if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            letter => quoted.push(letter),
        }
    }
    // What looks like a variable was one's value.
    quoted.push('"');
    quoted.replace("${", "$${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_as_the_same() {
        let text = "a = [1, 0x1F, 0o17, 0b101, 1.5, true]\n\"b c\" = { \"d\\\"\" = \"\\u0007\\\\ \\n$${x}\", e = {} }\n\
                    date = 2024-01-02T03:04:05Z\n";
        let first = Document::of("a", text);
        let first = first.table().unwrap();
        let mut out = String::new();
        for (key, value) in first.iter() {
            line(&mut out, key.get_ref(), value.get_ref());
        }
        let second = Document::of("b", &out);
        let mut again = String::new();
        for (key, value) in second.table().unwrap().iter() {
            line(&mut again, key.get_ref(), value.get_ref());
        }
        assert_eq!(again, out);
        assert!(out.contains("a = [1, 0x1F, 0o17, 0b101, 1.5, true]\n"), "{out}");
        assert!(out.contains("\"d\\\"\" = \"\\u0007\\\\ \\u000A$${x}\""), "{out}");
    }
}
