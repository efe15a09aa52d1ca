//! Rows that change their device between stages: by a hash of keys, to where the cuts of keys have
//! them, or whole.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Expr;

use super::super::exchange::{CutParts, HashParts};
use super::super::facts::seed_of;
use super::super::stored::{StoredBlock, StoredRows, downloaded};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::exec::Engine;
use crate::plan::InputRole;
use warpframe_device::timeline::{Part, span};
use warpframe_device::{Device, interrupt};

/// Bytes of the stack of a device's thread: as that of a query's.
const STACK: usize = 64 << 20;
/// The hash between devices is none by which a device divides its rows further.
const ROUND: u64 = 1 << 32;

/// Moves rows between devices.
pub(super) struct Exchange<'a> {
    devices: &'a [&'a Engine],
    bytes: AtomicU64,
}

impl<'a> Exchange<'a> {
    pub(super) fn of(devices: &'a [&'a Engine]) -> Exchange<'a> {
        Exchange { devices, bytes: AtomicU64::new(0) }
    }

    /// Bytes that went from one device to another.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Rows of tasks where those of the next stage want them.
    ///
    /// # Errors
    /// Of the devices.
    pub(super) fn moved(
        &self,
        rows: Vec<StoredRows>,
        role: &InputRole,
        tasks: usize,
    ) -> Result<Vec<StoredRows>> {
        let _span = span(Part::Exchange, || format!("{role:?}"));
        let schema = rows.first().map(|rows| rows.schema.clone());
        let schema = schema.ok_or_else(|| Error::internal("a stage has no task"))?;
        let rows = &rows;
        // Each device parts its own rows, and sends what others want.
        let sent_by = |from: usize, engine: &Engine| {
            let mut to: Vec<Vec<StoredBlock>> = vec![vec![]; tasks];
            for block in &rows[from].blocks {
                let parted = match tasks {
                    1 => None,
                    _ => self.parted(&engine.device, block, (&schema, role, tasks))?,
                };
                if let Some((table, begins)) = parted {
                    for (task, bounds) in begins.windows(2).enumerate() {
                        let part = table.slice(bounds[0], bounds[1] - bounds[0]);
                        if part.rows > 0 {
                            to[task].push(self.sent(StoredBlock::Device(part), from, task)?);
                        }
                    }
                    continue;
                }
                // The first task gets all, or each of them, or rows stay where they are.
                let of_all = match role {
                    InputRole::First | InputRole::ByKeys(_) | InputRole::ByCuts(_) => 0..1,
                    InputRole::Whole | InputRole::InOrder(_) => 0..tasks,
                    InputRole::Part => from..from + 1,
                };
                for task in of_all {
                    to[task].push(self.sent(block.clone(), from, task)?);
                }
            }
            Ok(to)
        };
        let sent: Vec<Vec<Vec<StoredBlock>>> = match tasks {
            // Nothing is parted, and copies take no thread's time.
            1 => {
                let engines = self.devices.iter().take(rows.len()).enumerate();
                engines.map(|(from, engine)| sent_by(from, engine)).collect::<Result<_>>()?
            }
            _ => on_devices(self.devices, rows.len(), sent_by)?,
        };
        let mut moved: Vec<StoredRows> = self
            .devices
            .iter()
            .take(tasks)
            .map(|engine| StoredRows::new(&engine.device, &schema))
            .collect();
        for of_device in sent {
            for (rows, blocks) in moved.iter_mut().zip(of_device) {
                rows.blocks.extend(blocks);
            }
        }
        // Side by side, too: each device has its own link.
        if tasks > 1 {
            let loaded = on_devices(self.devices, tasks, |task, _| on_device(&moved[task]))?;
            for (rows, blocks) in moved.iter_mut().zip(loaded) {
                rows.blocks = blocks;
            }
        }
        Ok(moved)
    }

    /// Rows of a task for another one, or for itself: straight to the other device, or on the host.
    fn sent(&self, block: StoredBlock, from: usize, to: usize) -> Result<StoredBlock> {
        if from == to {
            return Ok(block);
        }
        let device = |number: usize| {
            let engine = self.devices.get(number);
            engine.map(|engine| &engine.device).ok_or_else(|| Error::internal("no such device"))
        };
        let (own, other) = (device(from)?, device(to)?);
        own.count_sent(block.bytes(), other);
        self.bytes.fetch_add(block.bytes(), Relaxed);
        match &block {
            StoredBlock::Device(table) => match table.on_peer(other)? {
                Some(table) => Ok(StoredBlock::Device(table)),
                None => downloaded(table),
            },
            StoredBlock::Host(..) => Ok(block),
        }
    }

    /// A device's rows part by part, and where each begins; `None` where they are not parted.
    fn parted(
        &self,
        device: &Device,
        block: &StoredBlock,
        (schema, role, tasks): (&DFSchemaRef, &InputRole, usize),
    ) -> Result<Option<(Table, Vec<usize>)>> {
        let whole = || {
            let blocks = vec![block.clone()];
            StoredRows { blocks, ..StoredRows::new(device, schema) }.load()
        };
        let names = schema.columns();
        Ok(match role {
            InputRole::ByKeys(columns) => {
                let keys = columns.iter().map(|at| Expr::Column(names[*at].clone())).collect();
                // All devices have one seed.
                let seed = seed_of(&self.devices[0].device);
                let by = HashParts { keys, parts: tasks as u32, round: ROUND, seed };
                Some(by.part(device, schema, &whole()?)?)
            }
            InputRole::ByCuts(of) => {
                let key = Expr::Column(names[of.column].clone());
                let by = CutParts { key, cuts: of.cuts.clone() };
                Some(by.part(device, schema, &whole()?)?)
            }
            _ => None,
        })
    }
}

/// The rows as one table on their device, or on the host where it has no room for them.
fn on_device(rows: &StoredRows) -> Result<Vec<StoredBlock>> {
    match rows.load() {
        Ok(table) => Ok(vec![StoredBlock::Device(table)]),
        Err(error) if error.is_out_of_device_memory() => {
            let blocks = rows.blocks.iter().map(StoredBlock::to_host);
            Ok(blocks.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        }
        Err(error) => Err(error),
    }
}

/// Does something on so many of the devices side by side, each on a thread of its own, in the
/// statement of this one.
pub(super) fn on_devices<T: Send>(
    devices: &[&Engine],
    tasks: usize,
    work: impl Fn(usize, &Engine) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (statement, work) = (interrupt::current(), &work);
    std::thread::scope(|scope| {
        let thread = |(number, engine)| {
            let engine: &Engine = engine;
            let statement = statement.clone();
            let thread = std::thread::Builder::new().name(format!("warpframe-device-{number}"));
            thread.stack_size(STACK).spawn_scoped(scope, move || {
                let _entered = statement.as_ref().map(|statement| statement.enter());
                work(number, engine)
            })
        };
        let threads: Vec<_> = devices.iter().copied().take(tasks).enumerate().map(thread).collect();
        let join = |thread: std::io::Result<ScopedJoinHandle<'_, Result<T>>>| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(Error::internal(format!("the system gives no thread: {error}"))),
        };
        // All of them end before the first error is told.
        let ended: Vec<Result<T>> = threads.into_iter().map(join).collect();
        ended.into_iter().collect()
    })
}
