//! Time zones: what clocks show at an instant, and when they do (`kernels/zone.cuh`). A zone is the
//! table of its offsets, made of the database that Arrow reads zones from.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Offset, TimeZone};
use datafusion::arrow::array::timezone::Tz;
use parking_lot::Mutex;

use super::calendar::{is_utc, outside_calendar, per_second};
use super::fit::OnError;
use super::literal::baked_i64;
use super::*;
use crate::codegen::device_function::KernelHeader;

/// What asks for an instant: it says which of two is meant, and what becomes of what 64 bits do not
/// hold.
#[derive(Debug, Clone)]
pub(super) enum InstantFor {
    /// A cast means the last.
    Cast(OnError),
    /// What is moved from an instant, of which this is the C++ expression, means the one with its
    /// offset, or the last.
    MovedFrom(String),
}

impl Compiler<'_> {
    /// What clocks show at a timestamp, as a timestamp without a zone.
    pub(super) fn local_time(&mut self, value: Value) -> Result<Value> {
        let DataType::Timestamp(unit, zone) = value.dtype.clone() else { return Ok(value) };
        let dtype = DataType::Timestamp(unit, None);
        let (low, high) = value.bounds();
        let Some(zone) = zone.filter(|zone| !is_utc(zone)) else {
            return Ok(Value { dtype, range: Some((low, high)), ..value });
        };
        let (zone, ticks) = (self.zone(&zone)?, per_second(&unit));
        let (local, fits) =
            self.by_zone(&format!("zone_local({zone}, (i64){}, {ticks}ll", value.code));
        self.fail_if(&value.valid, &format!("!{fits}"), Failure::Beyond);
        let (far, limits) = (i128::from(ticks) * FAR, type_bounds(&dtype));
        let range = ((low - far).max(limits.0), (high + far).min(limits.1));
        Ok(Value::new(dtype, Repr::I64, local, value.valid).with_range(Some(range)))
    }

    /// When clocks of the target's zone show a timestamp without one; where they skip it, as before
    /// they change.
    pub(super) fn instant(
        &mut self,
        local: Value,
        target: &DataType,
        asked: InstantFor,
    ) -> Result<Value> {
        let DataType::Timestamp(unit, Some(zone)) = target else {
            return Err(not_yet(format!("a cast to {target}")));
        };
        let (zone, ticks) = (self.zone(zone)?, per_second(unit));
        // Beyond the calendar no clock shows anything.
        let outside = outside_calendar(&self.floor_days(&local, *unit));
        let code = match &outside {
            Some(outside) => format!("({outside} ? 0ll : (i64){})", local.code),
            None => format!("(i64){}", local.code),
        };
        let ahead = match &asked {
            // No clock is that far ahead.
            InstantFor::Cast(_) => baked_i64(i64::MAX),
            InstantFor::MovedFrom(from) => {
                let call = format!("zone_ahead({zone}, (i64){from}, {ticks}ll)");
                self.out.let_("i64", call)
            }
        };
        let call = format!("zone_instant({zone}, {code}, {ticks}ll, {ahead}");
        let (instant, shown) = self.by_zone(&call);
        let fits = outside.map_or(shown.clone(), |outside| format!("({shown} && !{outside})"));
        let valid = match asked {
            InstantFor::Cast(on_error) => self.outcome(&local.valid, &format!("!{fits}"), on_error),
            InstantFor::MovedFrom(_) => {
                self.fail_if(&local.valid, &format!("!{fits}"), Failure::Overflow);
                local.valid
            }
        };
        Ok(Value::new(target.clone(), Repr::I64, instant, valid))
    }

    /// When clocks show what `local` was cut down to, of an instant `from`.
    pub(super) fn truncated_instant(&mut self, from: &Value, local: Value) -> Result<Value> {
        let dtype = from.dtype.clone();
        let DataType::Timestamp(unit, Some(zone)) = &dtype else {
            return Ok(Value { dtype, ..local });
        };
        if is_utc(zone) {
            return Ok(Value { dtype, ..local });
        }
        let (zone, ticks) = (self.zone(zone)?, per_second(unit));
        let call =
            format!("zone_truncated({zone}, (i64){}, (i64){}, {ticks}ll", from.code, local.code);
        let (instant, fits) = self.by_zone(&call);
        self.fail_if(&local.valid, &format!("!{fits}"), Failure::Overflow);
        Ok(Value::new(dtype, Repr::I64, instant, local.valid))
    }

    /// Names of what a function of zones yields, and of whether it does; the call lacks its last
    /// argument.
    fn by_zone(&mut self, call: &str) -> (String, String) {
        let name = self.out.fresh();
        self.out.unset("i64", &name);
        let fits = self.out.let_("bool", format_args!("{call}, &{name})"));
        (name, fits)
    }

    /// A zone as the first two arguments of these functions.
    fn zone(&mut self, name: &str) -> Result<String> {
        let table = offsets(name).ok_or_else(|| not_yet(format!("the time zone {name}")))?;
        self.out.needs(KernelHeader::Zone);
        let entries = self.inputs.parameter((table.len() / ENTRY) as u64);
        Ok(format!("(const i64*)({}), (u32){entries}", self.inputs.constant(&table)))
    }
}

/// Seconds that no local time is ahead of UTC, or behind.
const FAR: i128 = 2 * 86_400;
/// Bytes of an entry of a zone's table.
const ENTRY: usize = 16;
/// The years 1800 and 2200: the database knows of no change before or after.
const KNOWN: (i64, i64) = (-5_364_662_400, 7_258_118_400);

/// The table of a zone, as `kernels/zone.cuh` draws it; `None` where there is no such zone.
fn offsets(zone: &str) -> Option<Arc<[u8]>> {
    static TABLES: LazyLock<Mutex<HashMap<String, Arc<[u8]>>>> = LazyLock::new(Mutex::default);
    let lock = || TABLES.lock();
    if let Some(known) = lock().get(zone) {
        return Some(known.clone());
    }
    let table: Arc<[u8]> =
        table(&zone.parse().ok()?).into_iter().flatten().flat_map(i64::to_le_bytes).collect();
    lock().insert(zone.to_string(), table.clone());
    Some(table)
}

/// From which second on local time is how many seconds ahead. Clocks do not change twice within a
/// day.
fn table(zone: &Tz) -> Vec<[i64; 2]> {
    const DAY: i64 = 86_400;
    let ahead = |second: i64| {
        let utc = DateTime::from_timestamp(second, 0).unwrap_or_default().naive_utc();
        i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
    };
    let mut entries = vec![[i64::MIN, ahead(KNOWN.0)]];
    let mut present = entries[0][1];
    for day in (KNOWN.0 / DAY)..(KNOWN.1 / DAY) {
        let (mut before, mut after) = (day * DAY, (day + 1) * DAY);
        let next = ahead(after);
        if next == present {
            continue;
        }
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if ahead(middle) == present {
                before = middle;
            } else {
                after = middle;
            }
        }
        entries.push([after, next]);
        present = next;
    }
    entries
}

#[test]
fn tables_say_when_clocks_change() {
    let new_york = table(&"America/New_York".parse().unwrap());
    assert_eq!(new_york[0], [i64::MIN, -17_762]);
    assert_eq!(new_york[1], [-2_717_650_800, -18_000]);
    // 2024-03-10 07:00 and 2024-11-03 06:00.
    for entry in [[1_710_054_000, -14_400], [1_730_613_600, -18_000]] {
        assert!(new_york.contains(&entry), "{entry:?}");
    }
    assert_eq!(table(&"+05:30".parse().unwrap()), [[i64::MIN, 19_800]]);
    assert!(offsets("Nowhere/Atall").is_none());
}
