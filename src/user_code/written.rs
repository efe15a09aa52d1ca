//! Functions of users as bytes, for another process: an Arrow stream (IPC) without rows. Its fields
//! are the arguments, then those of an aggregate's state, then the value; its metadata has the
//! rest.

use std::collections::HashMap;
use std::io::Cursor;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::aggregate::{AggregateFunction, BODIES};
use super::definition::Body;
use super::scalar::ScalarFunction;
use crate::error::{Error, ErrorKind, Result};

/// Keys of the metadata.
const NAME: &str = "name";
const BODY: &str = "body";
const VOLATILE: &str = "volatile";
const CALLED_ON_NULL: &str = "called on null";
const ORDERED: &str = "ordered";
/// How many fields are arguments.
const ARGUMENTS: &str = "arguments";

/// Names and types, as functions have them.
type NamedTypes = Vec<(String, DataType)>;

/// A function's parts, in the form that travels.
struct WrittenFunction {
    fields: NamedTypes,
    texts: HashMap<String, String>,
}

impl WrittenFunction {
    fn new(
        name: &str,
        inputs: &NamedTypes,
        state: &NamedTypes,
        output: &DataType,
    ) -> WrittenFunction {
        let value = (String::new(), output.clone());
        let fields = inputs.iter().chain(state).chain([&value]).cloned().collect();
        let texts = [(NAME, name.to_string()), (ARGUMENTS, inputs.len().to_string())];
        let texts = texts.map(|(key, text)| (key.to_string(), text)).into();
        WrittenFunction { fields, texts }
    }

    fn with(mut self, key: &str, text: &str) -> WrittenFunction {
        self.texts.insert(key.into(), text.into());
        self
    }

    fn flagged(self, key: &str, set: bool) -> WrittenFunction {
        if set { self.with(key, "") } else { self }
    }

    fn into_bytes(self) -> Result<Vec<u8>> {
        let fields = self.fields.into_iter().map(|(name, dtype)| Field::new(name, dtype, true));
        let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), self.texts);
        let mut writer = StreamWriter::try_new(vec![], &schema)?;
        writer.finish()?;
        Ok(writer.into_inner()?)
    }

    fn of_bytes(bytes: &[u8]) -> Result<WrittenFunction> {
        let schema = StreamReader::try_new(Cursor::new(bytes), None)?.schema();
        let fields = schema.fields().iter();
        let fields = fields.map(|field| (field.name().clone(), field.data_type().clone()));
        Ok(WrittenFunction { fields: fields.collect(), texts: schema.metadata().clone() })
    }

    fn text(&mut self, key: &str) -> Result<String> {
        self.texts.remove(key).ok_or_else(|| damaged(&format!("it has no {key}")))
    }

    fn flag(&self, key: &str) -> bool {
        self.texts.contains_key(key)
    }

    /// Arguments, the fields of a state, and the type of the value.
    fn types(&mut self) -> Result<(NamedTypes, NamedTypes, DataType)> {
        let arguments = self.text(ARGUMENTS)?.parse().ok();
        let mut inputs = std::mem::take(&mut self.fields);
        let value = inputs.pop().ok_or_else(|| damaged("it has no value"))?;
        let arguments = arguments.filter(|count: &usize| *count <= inputs.len());
        let arguments = arguments.ok_or_else(|| damaged("it has fewer arguments"))?;
        let state = inputs.split_off(arguments);
        Ok((inputs, state, value.1))
    }
}

fn damaged(what: &str) -> Error {
    let message = format!("a function cannot be read: {what}");
    ErrorKind::Plan { message, location: None }.into()
}

impl ScalarFunction {
    /// The function as bytes, without its closure.
    ///
    /// # Errors
    /// `Unsupported` of a closure alone; of Arrow.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let Some(body) = &self.body else {
            let what = format!("function {} in another process", self.name);
            return Err(Error::unsupported(what, "a closure cannot be sent"));
        };
        WrittenFunction::new(&self.name, &self.inputs, &vec![], &self.output)
            .with(BODY, &body.text)
            .flagged(VOLATILE, self.volatile)
            .flagged(CALLED_ON_NULL, self.called_on_null)
            .into_bytes()
    }

    /// The function that bytes are.
    ///
    /// # Errors
    /// Of bytes that are none.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<ScalarFunction> {
        let mut written = WrittenFunction::of_bytes(bytes)?;
        let (inputs, state, output) = written.types()?;
        if !state.is_empty() {
            return Err(damaged("it has a state"));
        }
        let (name, body) = (written.text(NAME)?, written.text(BODY)?);
        let mut function = ScalarFunction::new(name, inputs, output, body);
        function.volatile = written.flag(VOLATILE);
        function.called_on_null = written.flag(CALLED_ON_NULL);
        Ok(function)
    }
}

impl AggregateFunction {
    /// The aggregate as bytes.
    ///
    /// # Errors
    /// Of Arrow.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let written = WrittenFunction::new(&self.name, &self.inputs, &self.state, &self.output)
            .flagged(ORDERED, self.ordered);
        let bodies = BODIES.iter().zip(&self.bodies);
        let bodies = bodies.filter_map(|(key, body)| Some((key, body.as_ref()?)));
        bodies.fold(written, |written, (key, body)| written.with(key, &body.text)).into_bytes()
    }

    /// The aggregate that bytes are.
    ///
    /// # Errors
    /// Of bytes that are none.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<AggregateFunction> {
        let mut written = WrittenFunction::of_bytes(bytes)?;
        let (inputs, state, output) = written.types()?;
        let mut aggregate =
            AggregateFunction::new(written.text(NAME)?, inputs, output).state(state);
        aggregate.ordered = written.flag(ORDERED);
        for (at, key) in BODIES.into_iter().enumerate() {
            aggregate = aggregate.with(at, Body::new(written.text(key)?, None));
        }
        Ok(aggregate)
    }
}
