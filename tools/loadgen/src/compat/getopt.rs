//! Command lines as GNU `getopt_long` reads them: short options in clusters, long ones by any prefix
//! that only one has, values joined or apart, other words anywhere.

/// An option of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Its letter, if it has one.
    pub(super) short: Option<char>,
    /// Its name; for one with a letter only, the name that it goes by here.
    pub(super) long: &'static str,
    pub(super) takes_value: bool,
}

/// Options that were read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    /// Options by their long names, in order.
    pub(super) options: Vec<(&'static str, String)>,
    /// Words that are no options.
    pub(super) rest: Vec<String>,
}

/// Reads a command line, without the program's name.
pub(super) fn read(known: &[Known], words: &[String]) -> Result<Read, String> {
    let mut read = Read::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            read.rest.extend(words.by_ref().cloned());
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, joined) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let option = find_long(known, name)?;
            let value = match (option.takes_value, joined) {
                (true, Some(value)) => value,
                (true, None) => words.next().cloned().ok_or_else(|| needs(&option))?,
                (false, Some(_)) => return Err(format!("--{} takes no value", option.long)),
                (false, None) => String::new(),
            };
            read.options.push((option.long, value));
        } else if let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            read_cluster(known, cluster, &mut words, &mut read)?;
        } else {
            read.rest.push(word.clone());
        }
    }
    Ok(read)
}

fn read_cluster<'a>(
    known: &[Known],
    cluster: &str,
    words: &mut impl Iterator<Item = &'a String>,
    read: &mut Read,
) -> Result<(), String> {
    for (place, letter) in cluster.char_indices() {
        let option = known
            .iter()
            .find(|option| option.short == Some(letter))
            .ok_or_else(|| format!("there is no option -{letter}"))?;
        if !option.takes_value {
            read.options.push((option.long, String::new()));
            continue;
        }
        let joined = &cluster[place + letter.len_utf8()..];
        let value = if joined.is_empty() {
            words.next().cloned().ok_or_else(|| needs(option))?
        } else {
            joined.to_owned()
        };
        read.options.push((option.long, value));
        return Ok(());
    }
    Ok(())
}

fn find_long(known: &[Known], name: &str) -> Result<Known, String> {
    if let Some(exact) = known.iter().find(|option| option.long == name) {
        return Ok(*exact);
    }
    let matching: Vec<&Known> =
        known.iter().filter(|option| option.long.starts_with(name) && !name.is_empty()).collect();
    match matching[..] {
        [one] => Ok(*one),
        [] => Err(format!("there is no option --{name}")),
        [first, second, ..] => {
            Err(format!("--{name} may be --{} or --{}", first.long, second.long))
        }
    }
}

fn needs(option: &Known) -> String {
    match option.short {
        Some(letter) => format!("-{letter} needs a value"),
        None => format!("--{} needs a value", option.long),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: &[Known] = &[
        Known { short: Some('n'), long: "requests", takes_value: true },
        Known { short: Some('v'), long: "verbose", takes_value: false },
        Known { short: None, long: "rate", takes_value: true },
        Known { short: None, long: "rate-period", takes_value: true },
    ];

    fn words(line: &str) -> Vec<String> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn options_are_read_in_all_their_forms() {
        let line = "-n5 -vn 6 a --requests=7 --req 8 --rate 9 --rate-p=1 - -- -v";
        let got = read(KNOWN, &words(line)).unwrap();
        let options: Vec<_> =
            got.options.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let right = [
            ("requests", "5"),
            ("verbose", ""),
            ("requests", "6"),
            ("requests", "7"),
            ("requests", "8"),
            ("rate", "9"),
            ("rate-period", "1"),
        ];
        assert_eq!(options, right);
        assert_eq!(got.rest, ["a", "-", "-v"]);
    }

    #[test]
    fn wrong_options_are_named() {
        for (line, said) in [
            ("-x", "no option -x"),
            ("--bogus", "no option --bogus"),
            ("--ra 5", "--rate or --rate-period"),
            ("-n", "-n needs a value"),
            ("--rate", "--rate needs a value"),
            ("--verbose=1", "takes no value"),
        ] {
            assert!(read(KNOWN, &words(line)).unwrap_err().contains(said), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_words_break_it(words in proptest::collection::vec("-{0,2}[nvä=]{0,4}|.{0,5}", 0..6)) {
            let _ = read(KNOWN, &words);
        }
    }
}
