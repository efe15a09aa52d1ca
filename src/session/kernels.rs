//! Kernels that users write, and frames of the columns that they make.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::Session;
use crate::column::Table;
use crate::error::{Error, ErrorKind, Permission, Result};
use crate::exec::{KernelInput, LaunchShape, UserKernel};
use crate::frame::{DataFrame, Series};
use crate::query::Core;

/// A kernel in CUDA C++ that a user wrote, compiled for a session's device: [`Session::kernel`]
/// makes it. Clones share it.
#[derive(Clone)]
pub struct RawKernel {
    core: Arc<Core>,
    kernel: Arc<UserKernel>,
}

impl std::fmt::Debug for RawKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parameters: Vec<&str> = self.kernel.parameters().collect();
        write!(f, "RawKernel({}({}))", self.kernel.name(), parameters.join(", "))
    }
}

/// Blocks of a grid, or threads of a block, along one, two or three axes: a number, a tuple or an
/// array of them.
///
/// ```
/// use warpframe::Dim3;
/// assert_eq!(Dim3::from(256), Dim3::from([256, 1, 1]));
/// assert_eq!(Dim3::from((16, 16)), Dim3::from([16u32, 16]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim3([i64; 3]);

macro_rules! dimensions {
    ($($t:ty),*) => {$(
        impl From<$t> for Dim3 {
            fn from(x: $t) -> Self {
                Dim3([i64::try_from(x).unwrap_or(i64::MAX), 1, 1])
            }
        }
        impl From<($t, $t)> for Dim3 {
            fn from((x, y): ($t, $t)) -> Self {
                Dim3::from([x, y, 1])
            }
        }
        impl From<($t, $t, $t)> for Dim3 {
            fn from((x, y, z): ($t, $t, $t)) -> Self {
                Dim3::from([x, y, z])
            }
        }
        impl From<[$t; 2]> for Dim3 {
            fn from([x, y]: [$t; 2]) -> Self {
                Dim3::from([x, y, 1])
            }
        }
        impl From<[$t; 3]> for Dim3 {
            fn from(sides: [$t; 3]) -> Self {
                Dim3(sides.map(|side| i64::try_from(side).unwrap_or(i64::MAX)))
            }
        }
    )*};
}
dimensions!(i32, u32, usize);

/// An argument of a [`RawKernel`]: a column, or a number, which [`From`] makes one of.
///
/// A number is converted to the type of the parameter, and refused where it does not fit: an `int`
/// takes `1000i64`, and not `0.5`.
#[derive(Debug, Clone)]
pub struct KernelArg(GivenArgument);

#[derive(Debug, Clone)]
enum GivenArgument {
    Read(Series),
    Write(Series),
    Fresh(DataType, usize),
    Integer(i128),
    Float(f64),
    Bool(bool),
}

impl KernelArg {
    /// A column that the kernel reads, through a parameter that is a pointer to `const` values.
    pub fn read(column: &Series) -> KernelArg {
        KernelArg(GivenArgument::Read(column.clone()))
    }

    /// A column that the kernel reads and writes. The launch returns what it is then; the values
    /// that frames have stay as they are: it is copied first, unless nobody else has its values.
    pub fn write(column: Series) -> KernelArg {
        KernelArg(GivenArgument::Write(column))
    }

    /// A new column of so many values, zeros at first, which the launch returns. It is named as the
    /// parameter.
    pub fn fresh(dtype: DataType, len: usize) -> KernelArg {
        KernelArg(GivenArgument::Fresh(dtype, len))
    }
}

impl From<&Series> for KernelArg {
    fn from(column: &Series) -> Self {
        KernelArg::read(column)
    }
}

macro_rules! numbers {
    ($($t:ty => $given:ident),* $(,)?) => {$(
        impl From<$t> for KernelArg {
            fn from(value: $t) -> Self {
                KernelArg(GivenArgument::$given(value as _))
            }
        }
    )*};
}
numbers! {
    i8 => Integer, i16 => Integer, i32 => Integer, i64 => Integer, isize => Integer,
    u8 => Integer, u16 => Integer, u32 => Integer, u64 => Integer, usize => Integer,
    f32 => Float, f64 => Float, bool => Bool,
}

impl Session {
    /// Compiles a kernel of a source in CUDA C++ for the session's device, or finds it compiled:
    /// the function `extern "C" __global__ void name(…)`. `docs/user-code.md` says what it may use.
    ///
    /// # Errors
    /// [`ErrorKind::Forbidden`] unless the session was made with
    /// [`SessionBuilder::user_code`](crate::SessionBuilder::user_code);
    /// [`ErrorKind::Unsupported`] where it has no device; [`ErrorKind::UserCode`] with the lines that do not compile; a source without such a
    /// function.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// use warpframe::KernelArg;
    ///
    /// let session = Session::builder().device(DeviceChoice::Sim).user_code(true).build()?;
    /// let source = r#"
    ///     extern "C" __global__ void saxpy(double a, const double* x, const double* y, double* z, int n) {
    ///         int i = blockIdx.x * blockDim.x + threadIdx.x;
    ///         if (i < n) z[i] = a * x[i] + y[i];
    ///     }"#;
    /// let kernel = session.kernel(source, "saxpy")?;
    /// let jets = frame!(session; "x" => [1.0, 2.0, 3.0], "y" => [0.5, 0.5, 0.5])?;
    /// let (x, y, n) = (jets.column("x")?, jets.column("y")?, jets.num_rows());
    /// let arguments = [2.0.into(), (&x).into(), (&y).into(), KernelArg::fresh(DataType::Float64, n), n.into()];
    /// // SAFETY: the kernel writes n values of z, and touches nothing else.
    /// let made = unsafe { kernel.launch(n.div_ceil(256), 256, 0, arguments) }?;
    /// assert_eq!(made[0].to_vec::<f64>()?, [2.5, 4.5, 6.5]);
    /// let frame = session.from_series([("x", &x), ("z", &made[0])])?;
    /// assert_eq!(frame.filter(col("z").gt(lit(3)))?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn kernel(&self, source: &str, name: &str) -> Result<RawKernel> {
        let what = || format!("the kernel {name}");
        if !self.user_code {
            let needs = Permission::UserCode;
            return Err(ErrorKind::Forbidden { what: what(), needs }.into());
        }
        let Some(device) = self.core.device() else {
            return Err(Error::unsupported(
                what(),
                "the session has no device: DeviceChoice::Sim runs kernels, too",
            ));
        };
        let kernel = self.core.as_statement(|| UserKernel::compiled(device, source, name))?;
        Ok(RawKernel { core: self.core.clone(), kernel: Arc::new(kernel) })
    }

    /// The frame of these columns, by names, where they lie: no values are copied. They are of this
    /// session's frames and kernels, or are brought to its device.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`] where columns differ in length or two have one name.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let (a, b) = (frame!(session; "x" => [1, 2])?, frame!(session; "x" => ["p", "q"])?);
    /// let both = session.from_series([("n", &a.column("x")?), ("s", &b.column("x")?)])?;
    /// assert_eq!(both.column("s")?.to_vec::<String>()?, ["p", "q"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn from_series<'a, N: Into<String>>(
        &self,
        columns: impl IntoIterator<Item = (N, &'a Series)>,
    ) -> Result<DataFrame> {
        let columns: Vec<(String, &Series)> =
            columns.into_iter().map(|(name, column)| (name.into(), column)).collect();
        let Some(device) = self.core.device() else {
            let arrays = columns.into_iter().map(|(name, column)| Ok((name, column.to_array()?)));
            return self.from_columns(arrays.collect::<Result<Vec<_>>>()?);
        };
        let refused = |message| Error::from(ErrorKind::Plan { message, location: None });
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        for (number, (name, column)) in columns.iter().enumerate() {
            if columns[..number].iter().any(|(other, _)| other == name) {
                return Err(refused(format!("two columns are named {name:?}")));
            }
            if column.len() != rows {
                let lengths = format!(
                    "column {:?} has {rows} values, column {name:?} {}",
                    columns[0].0,
                    column.len()
                );
                return Err(refused(format!("columns differ in length: {lengths}")));
            }
        }
        self.core.as_statement(|| {
            let fields = columns
                .iter()
                .map(|(name, column)| Field::new(name, column.data_type().clone(), true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let on_device = columns
                .iter()
                .map(|(_, column)| column.column_on(device))
                .collect::<Result<Vec<_>>>()?;
            Ok(DataFrame::on_device(&self.core, Table::with_rows(device, schema, on_device, rows)?))
        })
    }
}

impl RawKernel {
    /// The name of its function.
    pub fn name(&self) -> &str {
        self.kernel.name()
    }

    /// Launches it on the session's stream: behind all queries so far, and in front of those that
    /// come. On a GPU it runs beside the host; a grid of no blocks does nothing. Returns the
    /// columns that were written or are new, in the order of the arguments.
    ///
    /// # Safety
    /// Within a grid of this shape the kernel touches no memory but its columns, within their
    /// lengths, and its block's shared memory, of which `shared_bytes` are dynamic; it does not
    /// write what it reads through pointers to `const`, and it ends. A launch in the simulator
    /// checks bounds, and ends loops.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`] for arguments that are not what the parameters take: columns of other
    /// types, with nulls, of strings; numbers that do not fit. For a shape that no device runs.
    /// [`ErrorKind::OutOfDeviceMemory`]. In the simulator [`ErrorKind::Simulation`] with the
    /// argument and the index that are out of bounds, and [`ErrorKind::UserCode`] with the line of
    /// a loop that does not end. On a GPU such a kernel costs the process its device: a later call
    /// that waits says so, and names it.
    pub unsafe fn launch(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        shared_bytes: usize,
        arguments: impl IntoIterator<Item = KernelArg>,
    ) -> Result<Vec<Series>> {
        let shape =
            LaunchShape { grid: grid.into().0, block: block.into().0, shared: shared_bytes };
        self.core.as_statement(|| {
            let device = self
                .core
                .device()
                .ok_or_else(|| Error::internal("a kernel of a session without device"))?;
            let mut names: Vec<String> = self.kernel.parameters().map(String::from).collect();
            let mut inputs = vec![];
            for (at, KernelArg(given)) in arguments.into_iter().enumerate() {
                inputs.push(match given {
                    GivenArgument::Read(column) => KernelInput::Read(column.column_on(device)?),
                    GivenArgument::Write(column) => {
                        if let Some(name) = names.get_mut(at) {
                            *name = column.name().into();
                        }
                        KernelInput::Written(column.into_column_on(device)?)
                    }
                    GivenArgument::Fresh(dtype, len) => KernelInput::Fresh(dtype, len),
                    GivenArgument::Integer(value) => KernelInput::Integer(value),
                    GivenArgument::Float(value) => KernelInput::Float(value),
                    GivenArgument::Bool(value) => KernelInput::Bool(value),
                });
            }
            // SAFETY: the caller's promise.
            let written = unsafe { self.kernel.launch(&shape, inputs) }?;
            let series = |(at, column): (usize, _)| {
                Series::of_column(&self.core, device, &names[at], column)
            };
            written.into_iter().map(series).collect()
        })
    }
}
