//! How many groups a sample of the rows shows, and how many there are then.

use datafusion::logical_expr::Expr;

use super::attempt::Tried;
use super::expected::{Expected, sampled_from};
use super::target::Request;
use super::{Attempt, FloatSums, Manner, in_key_order};
use crate::codegen::control::Retry;
use crate::codegen::flow::{Flow, FlowSource};
use crate::codegen::materialize::materialize;
use crate::codegen::outputs::Codes;
use crate::error::Result;
use warpframe_device::Device;

/// Up to so many times as many rows a guess takes the place of a sample: to wait for it would take
/// longer than to see that the guess is wrong.
const GUESSED_UP_TO: u64 = 6;
/// Groups of a sample from which on half of it is looked at, too.
const HALVED_FROM: u64 = 256;
/// An estimate for groups of which few have most rows counts from so many times the one for equally
/// frequent groups.
const BEYOND: f64 = 1.5;
/// Where few groups have most rows, a sample so many times larger tells how many others there are;
/// of at most such a part of all rows.
const SKEWED_SAMPLE: u64 = 16;
/// What there may be, by a guess or a sample.
pub(super) fn learn(
    device: &Device,
    flow: &Flow,
    groups: &[Expr],
    collisions: u64,
) -> Result<Expected> {
    match flow.source.rows() <= GUESSED_UP_TO * sampled_from(device) {
        true => Ok(Expected::few(flow)),
        false => sample(device, flow, groups, collisions),
    }
}

/// Counts the groups of the first rows, and concludes how many there are.
fn sample(device: &Device, flow: &Flow, groups: &[Expr], collisions: u64) -> Result<Expected> {
    let expected = Expected::without_sample(flow);
    let rows = flow.source.rows();
    let mut sample = sampled_from(device) / 4;
    loop {
        let Some(found) = count(device, flow, sample, groups, collisions)? else {
            return Ok(expected);
        };
        if in_key_order(flow, groups) {
            // Rows of a group stand together: so many more rows have so many more groups.
            return Ok(expected.sampled((found as f64 / sample as f64 * rows as f64) as u64));
        }
        let half = match found > HALVED_FROM {
            true => count(device, flow, sample / 2, groups, collisions)?,
            false => None,
        };
        let uniform = groups_behind(found, sample);
        let larger = sample * SKEWED_SAMPLE;
        if larger <= rows / SKEWED_SAMPLE && half.is_some_and(|half| is_skewed(half, found, sample))
        {
            sample = larger;
            continue;
        }
        let skewed = half.map_or(0, |half| groups_beyond(half, found));
        // The second estimate is the less certain one, and says too much sooner than too little.
        let groups =
            if skewed as f64 > BEYOND * uniform as f64 { skewed } else { uniform }.min(rows);
        return Ok(expected.sampled(groups));
    }
}

/// How many groups the first rows of the flow's source have.
fn count(
    device: &Device,
    flow: &Flow,
    rows: u64,
    groups: &[Expr],
    collisions: u64,
) -> Result<Option<u64>> {
    let Some(source) = flow.source.first(rows) else { return Ok(None) };
    let flow = &Flow { source, ..flow.clone() };
    let expected = Expected::without_sample(flow);
    let manner = Manner { floats: FloatSums::Fixed, collisions, row_slots: false };
    let Tried::Attempt(Attempt::Done(partial), retry) =
        Request { device, flow, groups, calls: &[], manner, expected: &expected }.attempt()?
    else {
        return Ok(None);
    };
    if retry.is_some_and(|retry| retry.has(Retry::TABLE_FULL)) {
        return Ok(None);
    }
    let none = std::sync::Arc::new(datafusion::common::DFSchema::empty());
    let slots = Flow::new(FlowSource::Groups(std::sync::Arc::new(partial.slots)), none);
    Ok(Some(materialize(device, "aggregate", &slots, Codes::Keep, |_, _| Ok(vec![]))?.0))
}

/// Whether half of a sample, and all of it, show numbers of groups that do not come of equally
/// frequent ones: those would all have been seen, and yet there are more and more.
fn is_skewed(half: u64, seen: u64, sample: u64) -> bool {
    seen < sample / 4 && seen as f64 > 1.05 * half as f64 && groups_behind(half, sample / 2) < seen
}

/// How many groups there are where a few of them have most rows and the others are equally
/// frequent, if half of a sample shows `half` of them and all of it `seen`: each half meets
/// half/groups of the other's (Petersen's estimate of a population from what is caught twice), and
/// somewhat more: twice the standard deviation. 0 where next to none is met twice, which says
/// nothing.
fn groups_beyond(half: u64, seen: u64) -> u64 {
    let twice = (2 * half).saturating_sub(seen) as f64;
    let least = twice - 2.0 * twice.sqrt();
    if least < 1.0 { 0 } else { (1.1 * half as f64 * half as f64 / least) as u64 }
}

/// How many equally frequent groups show `seen` of them in `sample` rows: the solution of seen =
/// g·(1 − e^(−sample/g)), and somewhat more.
fn groups_behind(seen: u64, sample: u64) -> u64 {
    let (seen, sample) = (seen as f64, sample as f64);
    let shows = |groups: f64| groups * (1.0 - (-sample / groups).exp());
    // Nearly all distinct: a sample says no more than that there are many.
    let (mut low, mut high) = (seen, sample * 1e5);
    for _ in 0..64 {
        let middle = (low * high).sqrt();
        if shows(middle) < seen { low = middle } else { high = middle }
    }
    (high * 1.1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Different groups that `rows` rows show on average, of which `hot` are of one group and the
    /// others of `groups`.
    fn shown(groups: f64, hot: f64, rows: f64) -> u64 {
        (groups * (1.0 - (-rows * (1.0 - hot) / groups).exp()) + if hot > 0.0 { 1.0 } else { 0.0 })
            as u64
    }

    #[test]
    fn groups_are_estimated_whether_or_not_one_has_most_rows() {
        for groups in [500.0, 1e4, 1e5, 1e6, 4e6] {
            for hot in [0.0, 0.5, 0.9, 0.99] {
                let sampled = |sample: u64| {
                    let (half, seen) = (
                        shown(groups, hot, sample as f64 / 2.0),
                        shown(groups, hot, sample as f64),
                    );
                    (half, seen, sample)
                };
                let (half, seen, sample) = match sampled(65_536) {
                    (half, seen, sample) if is_skewed(half, seen, sample) => {
                        sampled(sample * SKEWED_SAMPLE)
                    }
                    small => small,
                };
                let (uniform, beyond) =
                    (groups_behind(seen, sample) as f64, groups_beyond(half, seen) as f64);
                let found = if beyond > BEYOND * uniform { beyond } else { uniform };
                assert!(found > 0.95 * groups, "{groups} groups, {hot} hot: {found}");
                assert!(found < 5.0 * groups, "{groups} groups, {hot} hot: {found}");
                assert!(hot > 0.5 || found < 1.5 * groups, "{groups} groups, {hot} hot: {found}");
            }
        }
        // Equally frequent groups ask for no second sample.
        assert!(
            ![500.0, 1e4, 1e5, 1e6]
                .map(|g| is_skewed(shown(g, 0.0, 32_768.0), shown(g, 0.0, 65_536.0), 65_536))
                .contains(&true)
        );
        assert_eq!((groups_beyond(100, 200), groups_beyond(100, 100)), (0, 137));
    }
}
