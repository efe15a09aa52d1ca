//! Random numbers, and what is another each time.

use super::*;
use crate::host::random;

pub(super) const FAMILY: &[Function] = &[
    row("random").on_host(random::random).none(|c| Ok(c.random_of_row())).total(),
    row("random_uniform")
        .on_host(random::random_uniform)
        .two(|c, seed, number, dtype| c.random("random_uniform", seed, number, &[], dtype)),
    row("random_normal")
        .on_host(random::random_normal)
        .two(|c, seed, number, dtype| c.random("random_normal", seed, number, &[], dtype)),
    row("random_poisson").on_host(random::random_poisson).three(|c, seed, number, mean, dtype| {
        c.random("random_poisson", seed, number, std::slice::from_ref(mean), dtype)
    }),
    row("random_integer").on_host(random::random_integer).several(2..=4, |c, call| {
        let [seed, number, ends @ ..] = call.args else { return Err(call.refused()) };
        c.random("random_integer", seed, number, ends, call.dtype)
    }),
    row("uuid").also(&["gen_random_uuid"]).total(),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[
    yes(
        "`random(seed, n)`",
        "`SELECT random(42, i) FROM t`",
        "a DOUBLE in [0, 1) that follows from the seed and the number alone (Philox-4x32-10): the \
            same bits on every device and on the CPU",
    ),
    yes(
        "`random_normal(seed, n)`, `random_integer(seed, n, low, high)`, `random_poisson(seed, n, \
            mean)`",
        "`SELECT random_integer(42, i, 1, 6) FROM t`",
        "mean 0 and deviation 1; both ends may come; means from 0 to 1,000,000. Normal numbers \
            may differ in their last digits between devices",
    ),
    yes(
        "`random()`",
        "`SELECT floor(random()) AS r FROM t WHERE random() < 2 ORDER BY random()`",
        "other numbers each time, and in a lambda for each element; conditions of outer joins",
    ),
    no("`uuid`", "`SELECT uuid() FROM t`", "other values each time"),
];
