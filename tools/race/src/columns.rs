//! Rows of a table as JSON by columns: the name of each figure is there once, and `jq .cpu_us` gives all of them.
//!
//! `[{"a": 1, "b": {"c": 2}}, null, {"a": 3}]` is `{"count": 3, "a": [1, null, 3], "b": {"c": [2, null, null]}}`. A figure that is
//! `null` and one that a row does not have are the same, so types whose fields may be missing have a default for them; a
//! part, or a row, that has no figure is missing as a whole.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// How many rows there are.
const COUNT: &str = "count";

/// Writes rows.
pub(crate) fn serialize<T: Serialize, S: Serializer>(
    rows: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let rows: Result<Vec<Value>, _> = rows.iter().map(serde_json::to_value).collect();
    let rows = rows.map_err(S::Error::custom)?;
    let mut columns = columns(&rows.iter().collect::<Vec<_>>());
    columns.insert(COUNT.to_owned(), rows.len().into());
    columns.serialize(serializer)
}

/// Reads what [`serialize`] has written.
pub(crate) fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let mut columns = Map::deserialize(deserializer)?;
    let count = columns.remove(COUNT).and_then(|count| count.as_u64());
    let count = count.ok_or_else(|| D::Error::missing_field(COUNT))?;
    let rows = (0..count as usize).map(|index| row(&columns, index));
    rows.map(|row| serde_json::from_value(row).map_err(D::Error::custom)).collect()
}

fn columns(rows: &[&Value]) -> Map<String, Value> {
    let mut columns = Map::new();
    let names = rows.iter().filter_map(|row| row.as_object()).flat_map(Map::keys);
    for name in names {
        if !columns.contains_key(name) {
            let column: Vec<&Value> =
                rows.iter().map(|row| row.get(name).unwrap_or(&Value::Null)).collect();
            let has_parts = column.iter().any(|value| value.is_object());
            let column = if has_parts {
                Value::Object(self::columns(&column))
            } else {
                column.into_iter().cloned().collect()
            };
            columns.insert(name.clone(), column);
        }
    }
    columns
}

fn row(columns: &Map<String, Value>, index: usize) -> Value {
    let figure = |column: &Value| match column {
        Value::Object(parts) => row(parts, index),
        column => column.get(index).cloned().unwrap_or_default(),
    };
    let figures = columns.iter().map(|(name, column)| (name.clone(), figure(column)));
    let figures: Map<String, Value> = figures.filter(|(_, figure)| !figure.is_null()).collect();
    if figures.is_empty() { Value::Null } else { Value::Object(figures) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    struct Figures {
        rate: f64,
        is_full: bool,
        #[serde(default)]
        latencies: BTreeMap<String, f64>,
        distance: Option<[f64; 2]>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Table {
        #[serde(with = "super")]
        rows: Vec<Option<Figures>>,
    }

    fn figures(rate: f64) -> Figures {
        Figures { rate, ..Figures::default() }
    }

    #[test]
    fn rows_come_back() {
        let latencies = BTreeMap::from([("50".to_owned(), 1.5), ("max".to_owned(), 9.0)]);
        let full = Figures { latencies, distance: Some([1.0, 2.0]), ..figures(1.0) };
        let all = [
            vec![],
            vec![None, None],
            vec![Some(full.clone()), None, Some(figures(3.0))],
            vec![Some(figures(4.0)), Some(figures(0.0))],
        ];
        for rows in all {
            let table = Table { rows };
            let text = serde_json::to_string(&table).unwrap();
            assert_eq!(serde_json::from_str::<Table>(&text).unwrap(), table, "{text}");
        }
        let table = Table { rows: vec![Some(full), None] };
        let text = serde_json::to_string(&table).unwrap();
        assert!(
            text.contains(r#""rate":[1.0,null]"#) && text.contains(r#""max":[9.0,null]"#),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in [r#"{"rows":[]}"#, r#"{"rows":{}}"#, r#"{"rows":{"count":1,"rate":["a"]}}"#] {
            assert!(serde_json::from_str::<Table>(text).is_err(), "{text}");
        }
    }
}
