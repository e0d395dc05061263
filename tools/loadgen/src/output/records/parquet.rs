//! Records as Apache Parquet: columns, in groups of rows.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use bolide_probe::progress::Record;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::failure_name;

/// Rows of a group: so many are kept in memory, 5 MB.
const GROUP_ROWS: usize = 100_000;

const SCHEMA: &str = "message record {
    required binary phase (UTF8);
    required int64 at_ns;
    required int64 latency_ns;
    required int32 request;
    required int32 status;
    required int64 bytes;
    optional binary failure (UTF8);
}";

/// A file of records that is being written.
pub(super) struct Table<W: Write + Send = File> {
    writer: SerializedFileWriter<W>,
    /// The group that isn't full, with the names of the rows' phases.
    phases: Vec<ByteArray>,
    records: Vec<Record>,
}

impl<W: Write + Send> Table<W> {
    /// Begins a file.
    pub(super) fn new(file: W) -> io::Result<Self> {
        let begin = || {
            let schema = Arc::new(parse_message_type(SCHEMA)?);
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
            SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
        };
        let writer = begin().map_err(told)?;
        Ok(Self { writer, phases: Vec::new(), records: Vec::new() })
    }

    /// Takes records of a phase.
    pub(super) fn push(&mut self, phase: &str, records: &[Record]) -> io::Result<()> {
        let phase = ByteArray::from(phase.as_bytes().to_vec());
        for record in records {
            self.phases.push(phase.clone());
            self.records.push(*record);
            if self.records.len() == GROUP_ROWS {
                self.end_group().map_err(told)?;
            }
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.end_group().and_then(|()| self.writer.finish().map(drop)).map_err(told)
    }

    fn end_group(&mut self) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let (phases, records) =
            (std::mem::take(&mut self.phases), std::mem::take(&mut self.records));
        let long = |figure: fn(&Record) -> u64| -> Vec<i64> {
            let long = |record| i64::try_from(figure(record)).unwrap_or(i64::MAX);
            records.iter().map(long).collect()
        };
        let failures: Vec<Option<String>> =
            records.iter().map(|record| record.failure.map(failure_name)).collect();
        let is_there: Vec<i16> = failures.iter().map(|name| i16::from(name.is_some())).collect();
        let names: Vec<ByteArray> =
            failures.into_iter().flatten().map(|name| ByteArray::from(name.into_bytes())).collect();
        let requests: Vec<i32> = records
            .iter()
            .map(|record| i32::try_from(record.request).unwrap_or(i32::MAX))
            .collect();
        let statuses: Vec<i32> = records.iter().map(|record| record.status.into()).collect();
        // In the order of the schema.
        let mut group = self.writer.next_row_group()?;
        column::<ByteArrayType, W>(&mut group, &phases, None)?;
        column::<Int64Type, W>(&mut group, &long(|record| record.at_ns), None)?;
        column::<Int64Type, W>(&mut group, &long(|record| record.latency_ns), None)?;
        column::<Int32Type, W>(&mut group, &requests, None)?;
        column::<Int32Type, W>(&mut group, &statuses, None)?;
        column::<Int64Type, W>(&mut group, &long(|record| record.bytes), None)?;
        column::<ByteArrayType, W>(&mut group, &names, Some(&is_there))?;
        group.close().map(drop)
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    are_there: Option<&[i16]>,
) -> Result<()> {
    let next = group.next_column()?;
    let mut column = next.ok_or_else(|| ParquetError::General("no such column".to_owned()))?;
    column.typed::<T>().write_batch(values, are_there, None)?;
    column.close()
}

/// Returns what the library says, as an error of a file.
fn told(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => io::Error::other(error),
        error => io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use bolide_probe::report::Failure;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn records_come_back_in_groups() {
        let path = std::env::temp_dir().join(format!("bolide-{}.parquet", std::process::id()));
        let mut table = Table::new(File::create(&path).unwrap()).unwrap();
        let record =
            Record { at_ns: 5, latency_ns: 4, request: 1, status: 200, bytes: 7, failure: None };
        let lost = Record { status: 0, failure: Some(Failure::Timeout), ..record };
        table.push("first", &vec![record; GROUP_ROWS]).unwrap();
        table.push("second", &[record, lost]).unwrap();
        table.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
        let metadata = reader.metadata();
        assert_eq!((metadata.num_row_groups(), metadata.file_metadata().num_rows()), (2, 100_002));
        let rows: Vec<_> =
            reader.get_row_iter(None).unwrap().skip(GROUP_ROWS).map(Result::unwrap).collect();
        assert_eq!(rows[0].get_string(0).unwrap(), "second");
        let figures: Vec<i64> = [1, 2, 5].map(|at| rows[0].get_long(at).unwrap()).to_vec();
        assert_eq!(figures, [5, 4, 7]);
        assert_eq!((rows[0].get_int(3).unwrap(), rows[0].get_int(4).unwrap()), (1, 200));
        assert!(rows[0].get_string(6).is_err(), "none");
        assert_eq!(rows[1].get_string(6).unwrap(), "timeout");
    }

    /// A file system that is full.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_error_of_the_file_is_told() {
        let error = Table::new(Full).and_then(|mut table| table.finish()).unwrap_err();
        assert!(error.to_string().contains("no storage space"), "{error}");
    }
}
