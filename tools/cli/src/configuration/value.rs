//! Values of a configuration file: what they may be, and how they are written.

use std::time::Duration;

use toml::de::{DeInteger, DeValue};

/// The longest time: the cores count milliseconds in 32 bits.
const TIME_MAX: Duration = Duration::from_secs(720 * 3600);

/// Type that a key's value can be read as.
pub(crate) trait Value: Sized {
    /// Reads it; what is wrong with it completes "`key` …".
    fn of(value: &DeValue<'_>) -> Result<Self, String>;
}

/// Returns what a value is, where it should be something else.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn wrong<T>(value: &DeValue<'_>, give: &str) -> Result<T, String> {
    Err(format!("is {}: give {give}", kind(value)))
}

impl Value for bool {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        match value {
            DeValue::Boolean(value) => Ok(*value),
            _ => wrong(value, "true or false"),
        }
    }
}

impl Value for String {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        match value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => wrong(value, "a string"),
        }
    }
}

/// One text, or several in a list.
#[derive(Debug)]
pub(crate) struct Texts(pub(crate) Vec<String>);

impl Value for Texts {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        match value {
            DeValue::String(text) => Ok(Self(vec![text.clone().into_owned()])),
            DeValue::Array(list) => list
                .iter()
                .map(|item| String::of(item.get_ref()))
                .collect::<Result<_, _>>()
                .map(Self),
            _ => wrong(value, "a string, or a list of strings"),
        }
    }
}

impl Value for Duration {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        const GIVE: &str = "a time with a unit (us, ms, s, m or h), such as \"30s\"";
        let DeValue::String(text) = value else { return wrong(value, GIVE) };
        bolide_units::duration(text)
            .map_err(|_| format!("is \"{}\": give {GIVE}", text.escape_debug()))
    }
}

impl Value for f64 {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        let text = match value {
            DeValue::Float(float) => float.as_str(),
            DeValue::Integer(integer) => integer.as_str(),
            _ => return wrong(value, "a number without quotes"),
        };
        text.parse().map_err(|_| "is not a number".to_owned())
    }
}

impl Value for u16 {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        let mut number: Self = 0;
        number.read(value, &Range { least: 0, most: u64::from(Self::MAX), is_bytes: false })?;
        Ok(number)
    }
}

impl Value for u32 {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        let mut number: Self = 0;
        number.read(value, &Range { least: 0, most: u64::from(Self::MAX), is_bytes: false })?;
        Ok(number)
    }
}

/// Range of a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    /// The least; for a time in milliseconds.
    pub(crate) least: u64,
    /// The most.
    pub(crate) most: u64,
    /// True if a unit of bytes may follow.
    pub(crate) is_bytes: bool,
}

/// A limit in its place: it can be set from a file, and written into one.
pub(crate) trait Setting {
    /// Sets it; what is wrong completes "`key` …".
    fn read(&mut self, value: &DeValue<'_>, range: &Range) -> Result<(), String>;

    /// As a file writes it.
    fn written(&self) -> String;
}

const GIVE_BYTES: &str =
    "a number of bytes, such as 65536, \"64KiB\" (KiB, MiB, GiB) or \"8MB\" (kB, MB, GB)";

/// A number, of bytes perhaps: 65536 or "64KiB".
fn number(value: &DeValue<'_>, range: &Range) -> Result<u64, String> {
    let parsed = match value {
        DeValue::Integer(integer) => whole(integer),
        DeValue::String(text) if range.is_bytes => {
            let bytes = bolide_units::size(text);
            Some(bytes.map_err(|_| format!("is \"{}\": give {GIVE_BYTES}", text.escape_debug()))?)
        }
        _ if range.is_bytes => {
            return wrong(value, GIVE_BYTES);
        }
        _ => return wrong(value, "a number without quotes"),
    };
    let Range { least, most, .. } = *range;
    match parsed {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("is out of range: give a number from {least} to {most}")),
    }
}

fn whole(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

macro_rules! number_settings {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn read(&mut self, value: &DeValue<'_>, range: &Range) -> Result<(), String> {
                let most = range.most.min(u64::try_from(Self::MAX).unwrap_or(u64::MAX));
                let number = number(value, &Range { most, ..*range })?;
                *self = Self::try_from(number).unwrap_or(Self::MAX);
                Ok(())
            }

            fn written(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

number_settings!(u8, u16, u32, u64, usize);

/// A limit that can be off is always on in a server.
impl Setting for Option<u32> {
    fn read(&mut self, value: &DeValue<'_>, range: &Range) -> Result<(), String> {
        let mut number = 0;
        Setting::read(&mut number, value, range)?;
        *self = Some(number);
        Ok(())
    }

    fn written(&self) -> String {
        self.unwrap_or(u32::MAX).to_string()
    }
}

impl Setting for Duration {
    fn read(&mut self, value: &DeValue<'_>, range: &Range) -> Result<(), String> {
        let time = <Self as Value>::of(value)?;
        if time < Self::from_millis(range.least) {
            return Err("must be at least \"1ms\"".to_owned());
        }
        if time > TIME_MAX {
            return Err("must be at most \"720h\"".to_owned());
        }
        *self = time;
        Ok(())
    }

    fn written(&self) -> String {
        match self.subsec_nanos() {
            0 => format!("\"{}s\"", self.as_secs()),
            nanos if nanos % 1_000_000 == 0 => format!("\"{}ms\"", self.as_millis()),
            _ => format!("\"{}us\"", self.as_micros()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let range = Range { least: 0, most: u64::MAX, is_bytes: false };
        for time in [0, 90_000_000, 1_500_000, 1_500].map(Duration::from_micros) {
            let written = time.written();
            let mut again = Duration::from_secs(7);
            again.read(&DeValue::String(written.trim_matches('"').into()), &range).unwrap();
            assert_eq!(again, time);
        }
    }

    #[test]
    fn numbers_keep_to_their_range_and_type() {
        let of = |text: &'static str| DeValue::parse(text).unwrap().into_inner();
        let range = Range { least: 1, most: 1000, is_bytes: true };
        let mut small = 7_u8;
        small.read(&of("200"), &range).unwrap();
        assert_eq!(small, 200);
        for (text, why) in [
            ("0", "from 1 to 255"),
            ("256", "from 1 to 255"),
            ("\"1KiB\"", "from 1 to 255"),
            ("\"x\"", "is \"x\": give a number of bytes, such as 65536, \"64KiB\""),
            ("\"1TB\"", "is \"1TB\": give a number of bytes"),
            ("true", "a number of bytes"),
        ] {
            let said = small.read(&of(text), &range).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        let mut large = 0_u32;
        large.read(&of("\"64KiB\""), &Range { most: u64::MAX, ..range }).unwrap();
        assert_eq!(large, 65_536);
        large.read(&of("\"8MB\""), &Range { most: u64::MAX, ..range }).unwrap();
        assert_eq!(large, 8_000_000);
        let counts = Range { is_bytes: false, ..range };
        assert!(large.read(&of("\"5\""), &counts).unwrap_err().contains("without quotes"));
    }
}
