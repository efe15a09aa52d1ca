//! What the lanes of a warp say to each other: shuffles, votes, reductions, and calls that go
//! wrong.

use super::*;

#[test]
fn a_shuffle_that_misses_a_lane_is_reported() {
    let ended = "if (threadIdx.x == 5) return;
        p.out[threadIdx.x] = __shfl_sync(FULL_WARP, 1, 0);";
    for seed in SEEDS {
        let text = report(run(seed, ended, grid(1, 32), 32));
        assert!(
            text.contains("__shfl_sync(0xffffffff), body:2")
                || text.contains("thread 5 of block 0 ended"),
            "{text}"
        );
    }
    let elsewhere = "if (threadIdx.x == 5) __syncthreads();
        else p.out[threadIdx.x] = __shfl_sync(FULL_WARP, 1, 0);";
    let text = report(run(0, elsewhere, grid(1, 32), 32));
    assert!(text.contains("deadlock in block 0: all 32 live threads of 32 wait"), "{text}");
    assert!(text.contains("lanes 0x00000020 wait at __syncthreads, body:1"), "{text}");
    assert!(text.contains("lanes 0xffffffdf wait in __shfl_sync(0xffffffff), body:2"), "{text}");
}

#[test]
fn collectives_that_disagree_are_reported() {
    let mixed = "if (lane() < 16) p.out[0] = __ballot_sync(FULL_WARP, 1); else p.out[0] = __any_sync(FULL_WARP, 1);";
    let text = report(run(0, mixed, grid(1, 32), 32));
    assert!(text.contains("another operation: __any_sync(0xffffffff)"), "{text}");
    let outside = "p.out[0] = __ballot_sync(0x0000ffffu, 1);";
    assert!(
        report(run(0, outside, grid(1, 32), 32))
            .contains("lane 16) of block 0 is not in its own mask")
    );
    let masks = "p.out[0] = __ballot_sync(lane() < 16 ? 0x0001ffffu : 0xffff8000u, 1);";
    let text = report(run(0, masks, grid(1, 32), 32));
    assert!(text.contains("deadlock") && text.contains("__ballot_sync(0x0001ffff)"), "{text}");
}

#[test]
fn shuffles_move_values_within_their_width() {
    let body = "u32 t = threadIdx.x;
        p.out[t] = __shfl_sync(FULL_WARP, t, 5) + 100ull * __shfl_up_sync(FULL_WARP, t, 3)
            + 10000ull * __shfl_down_sync(FULL_WARP, t, 30) + 1000000ull * __shfl_xor_sync(FULL_WARP, t, 9)
            + 100000000ull * __shfl_sync(FULL_WARP, t, 3, 8) + 10000000000ull * __shfl_up_sync(FULL_WARP, t, 1, 4)
            + 1000000000000ull * __shfl_down_sync(FULL_WARP, t, 1, 4);";
    for seed in SEEDS {
        let out = run(seed, body, grid(1, 32), 32).unwrap();
        for (t, &value) in out.iter().enumerate() {
            let digits = [
                5,
                if t < 3 { t } else { t - 3 },
                if t + 30 > 31 { t } else { t + 30 },
                t ^ 9,
                t / 8 * 8 + 3,
                if t % 4 == 0 { t } else { t - 1 },
                if t % 4 == 3 { t } else { t + 1 },
            ];
            let expected = digits.iter().rev().fold(0u64, |sum, &d| sum * 100 + d as u64);
            assert_eq!(value, expected, "lane {t}, seed {seed}");
        }
    }
}

#[test]
fn shuffles_of_every_width_keep_the_bits() {
    let body = "u64 t = threadIdx.x;
        u128 wide = make_u128(~t, t);
        u128 got = shuffle(FULL_WARP, wide, 7);
        bool right = got == make_u128(~7ull, 7);
        right &= shuffle_xor(FULL_WARP, (u8)(200 + t), 1) == (u8)(200 + (t ^ 1));
        right &= shuffle_down(FULL_WARP, (i16)-t, 1) == (i16)(t == 31 ? -31 : -(i16)t - 1);
        right &= shuffle_up(FULL_WARP, (f32)t + 0.5f, 1) == (t == 0 ? 0.5f : (f32)t - 0.5f);
        right &= shuffle(FULL_WARP, (f64)t + 0.25, 9) == 9.25;
        p.out[t] = right;";
    assert_eq!(run(0, body, grid(1, 32), 32).unwrap(), vec![1; 32]);
}

#[test]
fn votes_matches_and_reductions_agree_with_arithmetic() {
    let body = "u32 t = threadIdx.x;
        i32 s = (i32)t - 16;
        bool right = __ballot_sync(FULL_WARP, t % 3 == 0) == 0x49249249u;
        right &= __any_sync(FULL_WARP, t == 31) && !__any_sync(FULL_WARP, 0);
        right &= __all_sync(FULL_WARP, t < 32) && !__all_sync(FULL_WARP, t < 31);
        right &= __match_any_sync(FULL_WARP, (u64)(t % 4) << 40) == 0x11111111u << t % 4;
        right &= __reduce_add_sync(FULL_WARP, t) == 496 && __reduce_add_sync(FULL_WARP, s) == -16;
        right &= __reduce_min_sync(FULL_WARP, s) == -16 && __reduce_max_sync(FULL_WARP, s) == 15;
        right &= __reduce_min_sync(FULL_WARP, (u32)s) == 0 && __reduce_max_sync(FULL_WARP, (u32)s) == U32_MAX;
        right &= __reduce_or_sync(FULL_WARP, 1u << t) == FULL_WARP && __reduce_and_sync(FULL_WARP, t | 64) == 64;
        p.out[t] = right;";
    for seed in SEEDS {
        assert_eq!(run(seed, body, grid(1, 32), 32).unwrap(), vec![1; 32], "seed {seed}");
    }
}

#[test]
fn partial_masks_meet_within_their_branch() {
    let body = "u32 t = lane(), mask = t % 2 ? 0xaaaaaaaau : 0x55555555u;
        u64 sum;
        if (t % 2) sum = __reduce_add_sync(mask, t) + __shfl_sync(mask, t, 3);
        else sum = __reduce_add_sync(mask, t) * __shfl_sync(mask, t, 4);
        __syncwarp(mask);
        p.out[t] = sum;";
    for seed in SEEDS {
        let out = run(seed, body, grid(1, 32), 32).unwrap();
        let expected: Vec<u64> =
            (0..32).map(|t| if t % 2 == 1 { 256 + 3 } else { 240 * 4 }).collect();
        assert_eq!(out, expected, "seed {seed}");
    }
}
