//! Kernels of users over columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use crate::column::{Column, Repr};
use crate::error::Result;
use crate::user_code::{CClass, ColumnUse, KernelText, ParameterKind, wrong};
use warpframe_device::{Buffer, Device, Kernel, UserArgument, UserGrid};

const OPERATOR: &str = "a user's kernel";

/// A user's kernel, compiled.
#[derive(Debug)]
pub(crate) struct UserKernel {
    device: Device,
    text: KernelText,
    kernel: Kernel,
}

/// What is given to a [`UserKernel`].
#[derive(Debug)]
pub(crate) enum KernelInput {
    Read(Column),
    /// Written in place where nobody else has its values, else a copy.
    Written(Column),
    /// Of zeros at first.
    Fresh(DataType, usize),
    Integer(i128),
    Float(f64),
    Bool(bool),
}

/// How a kernel is launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchShape {
    pub(crate) grid: [i64; 3],
    pub(crate) block: [i64; 3],
    pub(crate) shared: usize,
}

impl UserKernel {
    /// Compiles the kernel of a name, or finds it compiled.
    ///
    /// # Errors
    /// [`crate::ErrorKind::UserCode`] with the lines that do not compile; a source without it.
    pub(crate) fn compiled(device: &Device, source: &str, name: &str) -> Result<UserKernel> {
        let text = KernelText::of(device, source, name)?;
        let (unit, entry) = text.compiled();
        let kernel =
            device.kernel(&unit, &entry).map_err(|error| text.in_users_words(error.into()))?;
        Ok(UserKernel { device: device.clone(), text, kernel })
    }

    pub(crate) fn name(&self) -> &str {
        self.text.name()
    }

    /// Names of the parameters.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.text.parameters().iter().map(|parameter| parameter.name.as_str())
    }

    /// Runs it behind the queries so far. Returns the columns that were written, each with the
    /// number of its argument.
    ///
    /// # Safety
    /// The kernel touches no memory but its arguments, within their lengths, and its own shared
    /// memory.
    ///
    /// # Errors
    /// Arguments that are not what the parameters take; a shape that no device runs; those of the
    /// device.
    pub(crate) unsafe fn launch(
        &self,
        shape: &LaunchShape,
        inputs: Vec<KernelInput>,
    ) -> Result<Vec<(usize, Column)>> {
        let (name, parameters) = (self.text.name(), self.text.parameters().len());
        if inputs.len() != parameters {
            return Err(wrong(
                name,
                format!("takes {parameters} arguments, was given {}", inputs.len()),
            ));
        }
        let grid = self.checked(shape)?;
        self.make_room(&inputs)?;
        let (mut arguments, mut read, mut written) = (vec![], vec![], vec![]);
        for (at, input) in inputs.into_iter().enumerate() {
            match input {
                KernelInput::Read(column) => {
                    self.check(at, &column, ColumnUse::Read)?;
                    arguments.push(memory(&column));
                    read.push(column);
                }
                KernelInput::Written(column) => {
                    self.check(at, &column, ColumnUse::Written)?;
                    let column = self.owned(column)?;
                    arguments.push(memory(&column));
                    written.push((at, column));
                }
                KernelInput::Fresh(dtype, len) => {
                    self.text.check_column(at, &dtype, ColumnUse::Written)?;
                    let width = Repr::of(&dtype).map_or(0, Repr::width);
                    let bytes = len.checked_mul(width).ok_or_else(|| {
                        self.text.wrong_argument(
                            at,
                            format!("{len} values of {dtype} are more than memory can hold"),
                        )
                    })?;
                    let data = self.device.alloc_zeroed(OPERATOR, bytes)?;
                    let column = Column::plain(dtype, len, Arc::new(data), None);
                    arguments.push(memory(&column));
                    written.push((at, column));
                }
                number => arguments.push(self.number(at, &number)?),
            }
        }
        if let Some(grid) = grid {
            // SAFETY: types were compared with the parameters, as far as these tell theirs;
            // addresses lead to the columns in `read` and `written`, which live until the kernel
            // was submitted, and whose memory goes back only behind it. What else it touches is the
            // caller's promise.
            unsafe { self.device.launch_user(&self.kernel, &grid, &arguments) }
                .map_err(|error| self.text.in_users_words(error.into()))?;
        }
        drop(read);
        Ok(written)
    }

    /// Lets what nobody uses go where the new columns want the room.
    fn make_room(&self, inputs: &[KernelInput]) -> Result<()> {
        let bytes = |input: &KernelInput| match input {
            KernelInput::Written(column) => column.len.saturating_mul(column.width()),
            KernelInput::Fresh(dtype, len) => {
                len.saturating_mul(Repr::of(dtype).map_or(0, Repr::width))
            }
            _ => 0,
        };
        let wanted = inputs.iter().map(bytes).fold(0, usize::saturating_add) as u64;
        // More than there can be is refused where it is allocated.
        if wanted <= self.device.memory_limit() {
            self.device.make_room(wanted)?;
        }
        Ok(())
    }

    /// The shape, if there is a block in it.
    fn checked(&self, shape: &LaunchShape) -> Result<Option<UserGrid>> {
        let LaunchShape { grid, block, shared } = *shape;
        let refused = |why: String| wrong(self.text.name(), why);
        let [x, y, z] = block;
        let most = i64::from(Device::MOST_THREADS);
        let threads = x.saturating_mul(y).saturating_mul(z);
        if block.iter().any(|side| *side < 1) || threads > most || z > 64 {
            return Err(refused(format!(
                "a block of {x} x {y} x {z} threads; 1 to {most} are possible, 64 along z"
            )));
        }
        let [x, y, z] = grid;
        if grid.iter().any(|side| *side < 0) || x > i64::from(i32::MAX) || y > 65_535 || z > 65_535
        {
            let most = i32::MAX;
            return Err(refused(format!(
                "a grid of {x} x {y} x {z} blocks; up to {most} x 65535 x 65535 are possible"
            )));
        }
        let most = self.device.properties().shared_per_block;
        let Some(shared) = u32::try_from(shared).ok().filter(|shared| *shared <= most) else {
            return Err(refused(format!(
                "{shared} bytes of shared memory; a block of this device has {most} at most"
            )));
        };
        let sides = |sides: [i64; 3]| sides.map(|side| side as u32);
        let is_empty = grid.contains(&0);
        Ok((!is_empty).then(|| UserGrid { blocks: sides(grid), threads: sides(block), shared }))
    }

    /// Refuses a column that does not lie as a kernel expects it.
    fn check(&self, at: usize, column: &Column, used: ColumnUse) -> Result<()> {
        if !column.is_plain() {
            return Err(self
                .text
                .wrong_argument(at, "a column of strings: kernels take numbers".into()));
        }
        self.text.check_column(at, &column.dtype, used)?;
        if column.has_nulls()? {
            let why =
                "its column has nulls: fill_null or drop_nulls says what is to become of them";
            return Err(self.text.wrong_argument(at, why.into()));
        }
        Ok(())
    }

    /// The column with values that nobody else has, and nothing known of them.
    fn owned(&self, column: Column) -> Result<Column> {
        let (dtype, len) = (column.dtype.clone(), column.len);
        let (from, bytes) = (column.offset * column.width(), len * column.width());
        let mut data = column.data;
        let is_whole = from == 0 && data.len() == bytes && data.device().same(&self.device);
        if !is_whole || !data.is_own() || Arc::get_mut(&mut data).is_none() {
            let copy: Buffer = self.device.alloc(OPERATOR, bytes)?;
            copy.copy_from(0, &data, from, bytes)?;
            data = Arc::new(copy);
        }
        Ok(Column::plain(dtype, len, data, None))
    }

    /// A number as the parameter has it.
    fn number(&self, at: usize, input: &KernelInput) -> Result<UserArgument> {
        let parameter = &self.text.parameters()[at];
        let of = |why: String| self.text.wrong_argument(at, why);
        if parameter.kind != ParameterKind::Value {
            return Err(of("the parameter is a pointer: it takes a column".into()));
        }
        let Some(ctype) = parameter.ctype.filter(|ctype| ctype.bytes <= 8) else {
            let known = "integers of up to 64 bits, float, double and bool";
            return Err(of(format!(
                "numbers are given to {known}, not to a parameter of type {}",
                parameter.written
            )));
        };
        let size = ctype.bytes;
        let does_not_fit = |value: String| of(format!("{value} is no `{}`", parameter.written));
        let word = match (ctype.class, input) {
            (CClass::Bool, KernelInput::Bool(value)) => u64::from(*value),
            (CClass::Float, KernelInput::Float(value)) if size == 4 => {
                u64::from((*value as f32).to_bits())
            }
            (CClass::Float, KernelInput::Float(value)) => value.to_bits(),
            (CClass::Float, KernelInput::Integer(value)) => {
                let float = if size == 4 { f64::from(*value as f32) } else { *value as f64 };
                if float as i128 != *value {
                    return Err(does_not_fit(value.to_string()));
                }
                if size == 4 { u64::from((float as f32).to_bits()) } else { float.to_bits() }
            }
            (CClass::Signed | CClass::Unsigned, KernelInput::Integer(value)) => {
                let bits = 8 * u32::from(size);
                let (least, most) = match ctype.class {
                    CClass::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                    _ => (0, (1i128 << bits) - 1),
                };
                if *value < least || *value > most {
                    return Err(does_not_fit(value.to_string()));
                }
                *value as u64
            }
            (_, KernelInput::Integer(value)) => return Err(does_not_fit(value.to_string())),
            (_, KernelInput::Float(value)) => return Err(does_not_fit(format!("{value:?}"))),
            (_, KernelInput::Bool(value)) => return Err(does_not_fit(value.to_string())),
            _ => return Err(of("it is no number".into())),
        };
        Ok(UserArgument::Number { word, size })
    }
}

/// The values of a column.
fn memory(column: &Column) -> UserArgument {
    let width = column.width();
    let address = column.data.slice(column.offset * width).address();
    UserArgument::Memory { address, bytes: (column.len * width) as u64 }
}
