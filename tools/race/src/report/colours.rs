//! Colours of contenders: the same in every report, as far as those of one page differ.

/// How many the style has.
const COUNT: usize = 12;

/// Usual colours of contenders. What is built on another one and isn't here has its colour: `nginx-http3` that of `nginx`.
const USUAL: [&str; COUNT] = [
    "bolide",
    "nginx",
    "h2o",
    "nghttp2c",
    "caddy",
    "haproxy",
    "axum",
    "hyper",
    "go",
    "tonic",
    "node",
    "axum-on-bolide",
];

fn usual(name: &str) -> Option<usize> {
    let of = |name: &str| USUAL.iter().position(|usual| *usual == name);
    of(name).or_else(|| of(name.split_once('-')?.0))
}

/// The class that gives a contender its colour on a page that has these. Those who would have the same one, or have none, get
/// the first that is free, in this order.
pub(super) fn colour(names: &[String], name: &str) -> String {
    let mut taken: Vec<(&str, usize)> = Vec::new();
    let is_free = |taken: &[(&str, usize)], colour| taken.iter().all(|(_, one)| *one != colour);
    for name in names {
        if let Some(colour) = usual(name).filter(|colour| is_free(&taken, *colour)) {
            taken.push((name, colour));
        }
    }
    let without = |taken: &[(&str, usize)], name: &str| taken.iter().all(|(one, _)| *one != name);
    for (index, name) in names.iter().enumerate() {
        if without(&taken, name) {
            let free = (0..COUNT).find(|colour| is_free(&taken, *colour));
            taken.push((name, free.unwrap_or(index % COUNT)));
        }
    }
    let found = taken.iter().find(|(one, _)| *one == name).map(|(_, colour)| *colour);
    format!("c{}", found.or_else(|| usual(name)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colours(names: &[&str]) -> Vec<String> {
        let all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.iter().map(|name| colour(&all, name)).collect()
    }

    #[test]
    fn a_contender_has_its_colour_on_every_page() {
        assert_eq!(colours(&["bolide", "nginx", "h2o"]), ["c0", "c1", "c2"]);
        assert_eq!(colours(&["h2o", "tonic-on-bolide", "bolide"]), ["c2", "c9", "c0"]);
        assert_eq!(colours(&["nginx-http3", "go"]), ["c1", "c8"]);
    }

    #[test]
    fn those_of_one_page_differ() {
        let names =
            ["bolide", "bolide-logged", "mine", "nginx", "nginx-logged", "axum", "axum-on-bolide"];
        let mut all = colours(&names);
        assert_eq!((&*all[0], &*all[3], &*all[6]), ("c0", "c1", "c11"));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), names.len());
    }
}
