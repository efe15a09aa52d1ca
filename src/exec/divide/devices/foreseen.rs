//! What several devices would do of a plan, before it runs.

use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;

use super::cuts::chosen;
use super::{CutTable, OnOne, OpenTable, dealt_out, in_order, stages_of};
use crate::error::{Error, Result};
use crate::exec::Engine;
use crate::io::OfSession;
use crate::plan::{ByteCount, DevicePlan, OnDevices, PlanTable};

/// What a plan's stages would be, or why one device runs it; `None` of a session with one device.
///
/// # Errors
/// Of the plan; of its files.
pub(in crate::exec::divide) fn foreseen(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<OnDevices>> {
    let devices: Vec<&Engine> = engine.devices().collect();
    if devices.len() < 2 {
        return Ok(None);
    }
    let (logical, tables) = match dealt_out(state, engine, plan, tables)? {
        Ok(dealt) => dealt,
        Err(why) => {
            return Ok(Some(OnDevices::One { devices: devices.len(), why: why.text() }));
        }
    };
    let mut open = vec![];
    for table in &tables {
        let provider = source_as_provider(table)?;
        let known = match OfSession::of(provider.as_ref()) {
            Some(OfSession::Source(source)) => source.known()?,
            _ => None,
        };
        open.push(known.map(|snapshot| OpenTable { provider, snapshot }));
    }
    let logical = in_order(engine, &logical, &tables)?;
    let cut = chosen(&logical, &open, &engine.cuts, devices.len());
    let stage = Box::new(stages_of(state, &devices, &logical, (&tables, &cut))?);
    let lie = tables.iter().zip(&cut).map(|(table, cut)| lie_of(&devices, table, cut));
    let lie = lie.collect::<Result<_>>()?;
    Ok(Some(OnDevices::Several { devices: devices.len(), stage, lie }))
}

/// Where a table's rows lie.
fn lie_of(devices: &[&Engine], table: &PlanTable, cut: &Option<CutTable>) -> Result<String> {
    let provider = source_as_provider(table)?;
    if let Some(OfSession::Device(kept)) = OfSession::of(provider.as_ref()) {
        let of = devices.iter().position(|engine| engine.device.same(kept.table.device()));
        let of = of.ok_or_else(|| Error::internal("a kept table lies on no device"))?;
        return Ok(match kept.table.is_on_device() {
            true => format!("kept on device {of}"),
            false => format!("kept, and moved to the host by device {of}"),
        });
    }
    Ok(match cut {
        Some(cut) => {
            let schema = table.schema();
            let cuts: Vec<String> = cut.cuts.cuts.iter().map(i128::to_string).collect();
            format!("cut by {} at {}", schema.field(cut.cuts.column).name(), cuts.join(", "))
        }
        None => "dealt out by bytes".into(),
    })
}

impl OnOne {
    /// In words.
    fn text(&self) -> String {
        match self {
            OnOne::Foreign => "it reads a table of another provider".into(),
            OnOne::Small { bytes, least } => format!(
                "the columns that it reads take {}; from {} for each device on all of them share it",
                ByteCount(*bytes),
                ByteCount(*least)
            ),
            OnOne::Volatile => "a function in it yields something else each time".into(),
        }
    }
}
