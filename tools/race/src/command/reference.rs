//! Whom the others are compared with.

use bolide_probe::nearest::suggestion;

use crate::contender::FLOOR;

/// Reference unless another one is named.
pub(super) const DEFAULT: &str = "bolide";

/// The name that was asked for, or the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) name: String,
    /// It was named on the command line: another one won't do.
    pub(super) is_firm: bool,
}

impl Wish {
    /// Returns what the command line says; `known` are all contenders of the race.
    ///
    /// # Errors
    ///
    /// When there is no contender of this name.
    pub(super) fn new(named: Option<&str>, known: &[&str]) -> Result<Self, String> {
        let Some(name) = named else {
            return Ok(Self { name: DEFAULT.to_owned(), is_firm: false });
        };
        if !known.contains(&name) {
            return Err(format!("--reference: no contender `{name}`; {}", suggestion(name, known)));
        }
        Ok(Self { name: name.to_owned(), is_firm: true })
    }

    /// Returns who is the reference of a race that `playing` take part in, in their order.
    ///
    /// # Errors
    ///
    /// When the one that was named does not.
    pub(super) fn settle(&self, playing: &[&str]) -> Result<String, String> {
        if playing.is_empty() || playing.contains(&self.name.as_str()) {
            return Ok(self.name.clone());
        }
        if self.is_firm {
            let there = playing.join(", ");
            return Err(format!(
                "--reference: `{}` takes no part in these workloads; {there} can be the reference",
                self.name
            ));
        }
        // The floor reads nothing of what is asked: others can't be held against it.
        let first = playing.iter().find(|name| **name != FLOOR).unwrap_or(&playing[0]);
        Ok((*first).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRPC: [&str; 2] = ["tonic", "tonic-on-bolide"];

    fn wish(name: Option<&str>) -> Wish {
        Wish::new(name, &["floor", "bolide", "tonic", "tonic-on-bolide"]).unwrap()
    }

    #[test]
    fn bolide_is_the_reference_where_it_plays() {
        assert_eq!(wish(None).settle(&["floor", "h2o", "bolide"]), Ok("bolide".to_owned()));
    }

    #[test]
    fn where_bolide_has_no_part_the_first_that_plays_is_the_reference() {
        assert_eq!(wish(None).settle(&GRPC), Ok("tonic".to_owned()));
        assert_eq!(wish(None).settle(&["floor", "hyper"]), Ok("hyper".to_owned()));
        assert_eq!(wish(None).settle(&["floor"]), Ok("floor".to_owned()));
    }

    #[test]
    fn a_reference_that_was_named_is_kept_or_refused() {
        let named = wish(Some("tonic-on-bolide"));
        assert_eq!(named.settle(&GRPC), Ok("tonic-on-bolide".to_owned()));
        let refused = wish(Some("bolide")).settle(&GRPC).unwrap_err();
        assert!(
            refused.contains("`bolide` takes no part") && refused.contains("tonic, tonic-on-"),
            "{refused}"
        );
        let unknown = Wish::new(Some("tonik"), &GRPC).unwrap_err();
        assert!(unknown.contains("did you mean `tonic`?"), "{unknown}");
    }
}
