//! `curve.parquet`: the columns of `curve.csv` with their types and every digit; null where a value is withheld.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;

use super::points::{Column, Values};

/// The columns as a Parquet file with one row group.
///
/// # Errors
/// Two columns of one name, or a writer that fails.
pub fn table(columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("points").with_fields(fields).build()?;
    // The writer's name stands in the file: without its version, which would change the bytes.
    let properties = WriterProperties::builder().set_created_by("knee".to_owned()).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    for column in columns {
        match &column.values {
            Values::Simulated(values) | Values::Given(values) => {
                write::<DoubleType>(&mut rows, values.iter().copied())?;
            }
            Values::Whole(values) => write::<Int64Type>(&mut rows, values.iter().copied())?,
            Values::Flag(values) => write::<BoolType>(&mut rows, values.iter().copied())?,
            Values::Text(values) => {
                let bytes = values.iter().map(|text| text.as_deref().map(ByteArray::from));
                write::<ByteArrayType>(&mut rows, bytes)?;
            }
        }
    }
    rows.close()?;
    writer.into_inner()
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match &column.values {
        Values::Simulated(_) | Values::Given(_) => (Physical::DOUBLE, None),
        Values::Whole(_) => (Physical::INT64, None),
        Values::Flag(_) => (Physical::BOOLEAN, None),
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// Writes the next column: the values that are there, and for each row whether one is.
fn write<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    let Some(mut column) = rows.next_column()? else {
        return Err(ParquetError::General("a column more than the schema has".to_owned()));
    };
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}
