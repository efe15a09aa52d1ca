//! What footers say in lists, structs and maps, with the types that DuckDB has.

use std::sync::Arc;

use datafusion::arrow::array::builder::ListBuilder;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int32Array, ListArray, MapArray, StringViewArray,
    StringViewBuilder, StructArray, new_empty_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::parquet::basic::ColumnOrder;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, FileMetaData};
use datafusion::parquet::geospatial::bounding_box::BoundingBox;

use crate::error::Result;

/// The notes on chunks, of which the parquet crate (59) reads none.
pub(super) fn no_notes(rows: usize) -> Result<ArrayRef> {
    let bytes = |name: &str, nullable: bool| Field::new(name, DataType::BinaryView, nullable);
    let entries = Fields::from(vec![bytes("key", false), bytes("value", true)]);
    let within = Arc::new(Field::new("entries", DataType::Struct(entries), false));
    let none = new_empty_array(within.data_type()).as_struct().clone();
    let lengths = OffsetBuffer::from_repeated_length(0, rows);
    let nulls = Some(NullBuffer::new_null(rows));
    Ok(Arc::new(MapArray::try_new(within, lengths, none, nulls, false)?))
}

/// The boxes that geometries lie in.
pub(super) fn geo_boxes<'c>(
    chunks: impl Iterator<Item = &'c ColumnChunkMetaData> + Clone,
) -> Result<ArrayRef> {
    type Side = fn(&BoundingBox) -> Option<f64>;
    const SIDES: [(&str, Side); 8] = [
        ("xmin", |of| Some(of.get_xmin())),
        ("xmax", |of| Some(of.get_xmax())),
        ("ymin", |of| Some(of.get_ymin())),
        ("ymax", |of| Some(of.get_ymax())),
        ("zmin", BoundingBox::get_zmin),
        ("zmax", BoundingBox::get_zmax),
        ("mmin", BoundingBox::get_mmin),
        ("mmax", BoundingBox::get_mmax),
    ];
    let boxes = chunks.map(|chunk| chunk.geo_statistics().and_then(|of| of.bounding_box()));
    let fields = SIDES.map(|(name, _)| Field::new(name, DataType::Float64, true));
    let side = |of: Side| boxes.clone().map(|found| found.and_then(of)).collect::<Float64Array>();
    let columns = SIDES.map(|(_, of)| Arc::new(side(of)) as ArrayRef);
    let nulls = NullBuffer::from_iter(boxes.clone().map(|found| found.is_some()));
    let fields = Fields::from_iter(fields);
    Ok(Arc::new(StructArray::try_new(fields, columns.to_vec(), Some(nulls))?))
}

/// The kinds of geometries.
pub(super) fn geo_types<'c>(chunks: impl Iterator<Item = &'c ColumnChunkMetaData>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    for chunk in chunks {
        let types = chunk.geo_statistics().and_then(|of| of.geospatial_types());
        types.into_iter().flatten().for_each(|code| lists.values().append_value(geo_type(*code)));
        lists.append(types.is_some());
    }
    Arc::new(lists.finish())
}

/// A kind of geometries by its code in well-known binary: that of its shape, and thousands for
/// further coordinates.
fn geo_type(code: i32) -> String {
    const SHAPES: [&str; 7] = [
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
    ];
    const FURTHER: [&str; 4] = ["", "_z", "_m", "_zm"];
    let part = |number: i32| usize::try_from(number).ok();
    let shape = part(code % 1000 - 1).and_then(|shape| SHAPES.get(shape));
    let further = part(code / 1000).and_then(|further| FURTHER.get(further));
    match (shape, further) {
        (Some(shape), Some(further)) => format!("{shape}{further}"),
        _ => format!("unknown({code})"),
    }
}

/// What bounds of columns are ordered by.
pub(super) fn column_orders<'f>(files: impl Iterator<Item = &'f FileMetaData>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    for file in files {
        let orders = file.column_orders();
        for order in orders.into_iter().flatten() {
            lists.values().append_option(match order {
                ColumnOrder::TYPE_DEFINED_ORDER(_) => {
                    Some("ColumnOrder(TYPE_ORDER=TypeDefinedOrder())")
                }
                _ => None,
            });
        }
        lists.append(orders.is_some());
    }
    Arc::new(lists.finish())
}

/// How many pages of which kind have which encoding.
pub(super) fn encoding_stats<'c>(
    chunks: impl Iterator<Item = &'c ColumnChunkMetaData> + Clone,
) -> Result<ArrayRef> {
    let lists = chunks.map(|chunk| chunk.page_encoding_stats());
    let pages = lists.clone().flatten().flatten();
    let kinds = pages.clone().map(|page| Some(format!("{:?}", page.page_type)));
    let encodings = pages.clone().map(|page| Some(format!("{:?}", page.encoding)));
    let counts: Int32Array = pages.map(|page| Some(page.count)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("page_type", Arc::new(kinds.collect::<StringViewArray>())),
        ("encoding", Arc::new(encodings.collect::<StringViewArray>())),
        ("count", Arc::new(counts)),
    ];
    let field = |(name, of): &(&str, ArrayRef)| Field::new(*name, of.data_type().clone(), true);
    let fields: Fields = columns.iter().map(field).collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let pages = StructArray::try_new(fields, columns, None)?;
    let item: FieldRef = Arc::new(Field::new_list_field(pages.data_type().clone(), true));
    let lengths = OffsetBuffer::from_lengths(lists.clone().map(|list| list.map_or(0, Vec::len)));
    let nulls = NullBuffer::from_iter(lists.map(|list| list.is_some()));
    Ok(Arc::new(ListArray::try_new(item, lengths, Arc::new(pages), Some(nulls))?))
}
