//! The same search with AVX2: four splits are scored at a time.
//!
//! The method is chosen per predictor and node, by distinct codes and rows. Up to 17 codes, lanes are codes and their
//! sums stay in registers. Up to 24 rows, lanes are rows and every pair of rows is compared. Otherwise sums are kept by
//! code in memory, with a bitmap of the codes met if codes outnumber rows. Columns with missing numbers or 32-bit codes
//! use the portable code.
#![allow(
    unsafe_code,
    reason = "SIMD loads and unchecked look-ups, each with its reason"
)]

use std::arch::x86_64::{
    __m128i, __m256d, __m256i, _CMP_EQ_OQ, _CMP_GT_OQ, _CMP_ORD_Q, _MM_HINT_T0, _mm_cvtsi64_si128,
    _mm_loadu_si128, _mm_prefetch, _mm256_add_epi64, _mm256_add_pd, _mm256_and_pd,
    _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_blendv_pd,
    _mm256_castpd_si256, _mm256_castsi256_pd, _mm256_cmp_pd, _mm256_cmpgt_epi64,
    _mm256_cvtepu32_epi64, _mm256_div_pd, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_mul_pd,
    _mm256_or_pd, _mm256_or_si256, _mm256_permute4x64_epi64, _mm256_set_epi64x, _mm256_set1_epi64x,
    _mm256_set1_pd, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_slli_si256, _mm256_srl_epi64,
    _mm256_storeu_pd, _mm256_storeu_si256, _mm256_sub_pd,
};

use super::{Best, CodesRef, Draws, Scratch, View, scan_portable};

/// Whether this machine can run these kernels.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

/// Examines the predictors `drawn[slots]`. See [`super::scan`].
///
/// # Panics
/// If this machine has no AVX2, or rows and their targets do not match.
pub(super) fn scan(
    columns: &[View<'_>],
    drawn: &[u16],
    slots: std::ops::Range<usize>,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    best: &mut Best,
) {
    // Cached by the standard library: one load and a test.
    assert!(is_available(), "the level was chosen by detection");
    assert_eq!(draws.rows.len(), draws.packed.len(), "one target a row");
    // SAFETY: the instructions exist, as just asserted.
    unsafe { scan_avx2(columns, drawn, slots, draws, scratch, best) }
}

/// Lanes are rows up to here.
const FEW_ROWS: usize = 24;
/// Lanes are codes up to here: four registers of four sums, and the last code needs none.
const FEW_CODES: usize = 17;

/// In a table too large for the cache, codes are prefetched this many predictors ahead, in nodes of up to this many
/// rows. In larger nodes, neighbouring rows share cache lines.
const ASK_AHEAD: usize = 2;
const ASK_ROWS: usize = 256;

/// `MASKS[code][t]` is all ones where `code` goes left at a split after `t`.
static MASKS: [[u64; 16]; FEW_CODES] = {
    let mut masks = [[0; 16]; FEW_CODES];
    let mut code = 0;
    while code < FEW_CODES {
        let mut t = code;
        while t < 16 {
            masks[code][t] = u64::MAX;
            t += 1;
        }
        code += 1;
    }
    masks
};

/// A node's total, in every lane.
struct Wide {
    count: __m256d,
    sum: __m256d,
    centre: __m256d,
    mask: __m256i,
    shift: __m128i,
}

/// The best split of each lane over all predictors so far. Lanes are compared once, at the end.
struct Lanes {
    score: __m256d,
    id: __m256i,
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn scan_avx2(
    columns: &[View<'_>],
    drawn: &[u16],
    slots: std::ops::Range<usize>,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    best: &mut Best,
) {
    let total = &draws.total;
    let wide = Wide {
        count: _mm256_set1_pd(total.count),
        sum: _mm256_set1_pd(total.sum),
        centre: _mm256_set1_pd(total.centre),
        mask: _mm256_set1_epi64x((1_i64 << total.shift) - 1),
        shift: _mm_cvtsi64_si128(i64::from(total.shift)),
    };
    let mut lanes = Lanes {
        score: _mm256_set1_pd(Best::NONE.score),
        id: _mm256_set1_epi64x(i64::MAX),
    };
    let rows = draws.rows.len();
    let highest = draws.rows.iter().fold(0, |most, &row| most.max(row)) as usize;
    for slot in slots {
        let column = &columns[usize::from(drawn[slot])];
        if scratch.is_far
            && rows <= ASK_ROWS
            && let Some(&ahead) = drawn.get(slot + ASK_AHEAD)
            && let CodesRef::Short(codes) = columns[usize::from(ahead)].codes
        {
            for &row in draws.rows {
                _mm_prefetch::<_MM_HINT_T0>(codes.as_ptr().wrapping_add(row as usize).cast());
            }
        }
        let (CodesRef::Short(codes), None) = (column.codes, column.missing) else {
            scan_portable(column, slot, draws, scratch, best);
            continue;
        };
        let distinct = column.distinct;
        assert!(highest < codes.len(), "rows of the table");
        let id = _mm256_set1_epi64x(((slot as u64) << 32).cast_signed());
        let coded = Coded {
            codes,
            distinct,
            id,
        };
        let registers = (distinct + 2) / 4;
        let vectors = rows.div_ceil(4);
        // SAFETY: every row is below `codes.len()`, as just asserted, and every code below `distinct`, as `View::new`
        // checks.
        let is_split = unsafe {
            if distinct <= FEW_CODES && (registers <= vectors || rows > FEW_ROWS) {
                match registers {
                    0 | 1 => bins::<1>(codes, draws, id, &wide, &mut lanes),
                    2 => bins::<2>(codes, draws, id, &wide, &mut lanes),
                    3 => bins::<3>(codes, draws, id, &wide, &mut lanes),
                    _ => bins::<4>(codes, draws, id, &wide, &mut lanes),
                }
            } else if rows <= FEW_ROWS {
                match vectors {
                    0 | 1 => pairs::<1>(codes, draws, id, &wide, &mut lanes),
                    2 => pairs::<2>(codes, draws, id, &wide, &mut lanes),
                    3 => pairs::<3>(codes, draws, id, &wide, &mut lanes),
                    4 => pairs::<4>(codes, draws, id, &wide, &mut lanes),
                    5 => pairs::<5>(codes, draws, id, &wide, &mut lanes),
                    _ => pairs::<6>(codes, draws, id, &wide, &mut lanes),
                }
            } else if distinct <= rows {
                dense(coded, draws, scratch, &wide, &mut lanes)
            } else {
                sparse(coded, draws, scratch, &wide, &mut lanes)
            }
        };
        scratch.constant[slot] = !is_split;
    }
    let (mut scores, mut ids) = ([0.0; 4], [0_u64; 4]);
    // SAFETY: both arrays are four lanes long.
    unsafe {
        _mm256_storeu_pd(scores.as_mut_ptr(), lanes.score);
        _mm256_storeu_si256(ids.as_mut_ptr().cast(), lanes.id);
    }
    for (score, id) in scores.into_iter().zip(ids) {
        if score >= 0.0 {
            best.merge(score, id);
        }
    }
}

/// [`Total::score`](crate::fixed::Total::score) of four left sides.
#[inline]
#[target_feature(enable = "avx2")]
fn score(wide: &Wide, left: __m256i) -> __m256d {
    // A whole number below 2^52 put into the mantissa of 2^52, minus 2^52, is that number as a double.
    let two_52 = _mm256_set1_epi64x(0x4330_0000_0000_0000);
    let to_double = |whole| {
        let shifted = _mm256_castsi256_pd(_mm256_or_si256(whole, two_52));
        _mm256_sub_pd(shifted, _mm256_castsi256_pd(two_52))
    };
    let n_left = to_double(_mm256_and_si256(left, wide.mask));
    let raw = to_double(_mm256_srl_epi64(left, wide.shift));
    let sum_left = _mm256_sub_pd(raw, _mm256_mul_pd(n_left, wide.centre));
    let n_right = _mm256_sub_pd(wide.count, n_left);
    let sum_right = _mm256_sub_pd(wide.sum, sum_left);
    let left_part = _mm256_mul_pd(_mm256_mul_pd(sum_left, sum_left), n_right);
    let right_part = _mm256_mul_pd(_mm256_mul_pd(sum_right, sum_right), n_left);
    _mm256_div_pd(
        _mm256_add_pd(left_part, right_part),
        _mm256_mul_pd(n_left, n_right),
    )
}

/// Offers four splits, each later in its lane than all before. Returns the lanes that are valid splits.
#[inline]
#[target_feature(enable = "avx2")]
fn offer(lanes: &mut Lanes, score: __m256d, id: __m256i) -> i32 {
    let is_better = _mm256_cmp_pd::<_CMP_GT_OQ>(score, lanes.score);
    lanes.score = _mm256_blendv_pd(lanes.score, score, is_better);
    lanes.id = _mm256_blendv_epi8(lanes.id, id, _mm256_castpd_si256(is_better));
    _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_ORD_Q>(score, score))
}

/// Few codes: lanes are codes.
///
/// # Safety
/// Every row of the node is below `codes.len()`, and every code is at most `4 * R`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn bins<const R: usize>(
    codes: &[u16],
    draws: &Draws<'_>,
    id: __m256i,
    wide: &Wide,
    lanes: &mut Lanes,
) -> bool {
    let mut lefts = [_mm256_setzero_si256(); R];
    for (&row, &packed) in draws.rows.iter().zip(draws.packed) {
        // SAFETY: the caller's promise; R is at most 4, so a code is at most 16 and four lanes from `4 * k` exist.
        unsafe {
            let code = usize::from(*codes.get_unchecked(row as usize));
            let masks = MASKS.get_unchecked(code).as_ptr();
            let packed = _mm256_set1_epi64x(packed.cast_signed());
            for (k, left) in lefts.iter_mut().enumerate() {
                let mask = _mm256_loadu_si256(masks.add(4 * k).cast());
                *left = _mm256_add_epi64(*left, _mm256_and_si256(packed, mask));
            }
        }
    }
    let mut id = _mm256_or_si256(id, _mm256_set_epi64x(6, 4, 2, 0));
    let mut splits = 0;
    for left in lefts {
        splits |= offer(lanes, score(wide, left), id);
        id = _mm256_add_epi64(id, _mm256_set1_epi64x(8));
    }
    splits != 0
}

/// Few rows: lanes are rows, each summing the rows whose code is not above its own.
///
/// # Safety
/// Every row of the node is below `codes.len()`, and there are at most `4 * V` rows.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pairs<const V: usize>(
    codes: &[u16],
    draws: &Draws<'_>,
    id: __m256i,
    wide: &Wide,
    lanes: &mut Lanes,
) -> bool {
    // A lane without a row has every row on its left, which is not a split.
    let mut own = [i64::from(u16::MAX); FEW_ROWS];
    for (own, &row) in own.iter_mut().zip(draws.rows) {
        // SAFETY: the caller's promise.
        *own = i64::from(unsafe { *codes.get_unchecked(row as usize) });
    }
    let mut mine = [_mm256_setzero_si256(); V];
    for (k, mine) in mine.iter_mut().enumerate() {
        // SAFETY: V is at most 6, and there are 24 codes.
        *mine = unsafe { _mm256_loadu_si256(own.as_ptr().add(4 * k).cast()) };
    }
    let mut lefts = [_mm256_setzero_si256(); V];
    for (&code, &packed) in own.iter().zip(draws.packed) {
        let code = _mm256_set1_epi64x(code);
        let packed = _mm256_set1_epi64x(packed.cast_signed());
        for k in 0..V {
            let is_above = _mm256_cmpgt_epi64(code, mine[k]);
            lefts[k] = _mm256_add_epi64(lefts[k], _mm256_andnot_si256(is_above, packed));
        }
    }
    let mut splits = 0;
    for k in 0..V {
        let score = score(wide, lefts[k]);
        let id = _mm256_or_si256(id, _mm256_slli_epi64::<1>(mine[k]));
        // Rows come in any order, so an equal score may belong to a smaller code.
        let is_greater = _mm256_cmp_pd::<_CMP_GT_OQ>(score, lanes.score);
        let is_equal = _mm256_cmp_pd::<_CMP_EQ_OQ>(score, lanes.score);
        let is_earlier = _mm256_castsi256_pd(_mm256_cmpgt_epi64(lanes.id, id));
        let is_better = _mm256_or_pd(is_greater, _mm256_and_pd(is_equal, is_earlier));
        lanes.score = _mm256_blendv_pd(lanes.score, score, is_better);
        lanes.id = _mm256_blendv_epi8(lanes.id, id, _mm256_castpd_si256(is_better));
        splits |= _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_ORD_Q>(score, score));
    }
    splits != 0
}

/// Running sums of four values after `carry`.
#[inline]
#[target_feature(enable = "avx2")]
fn running(values: __m256i, carry: __m256i) -> __m256i {
    let pairs = _mm256_add_epi64(values, _mm256_slli_si256::<8>(values));
    let upper = _mm256_set_epi64x(-1, -1, 0, 0);
    let first_half = _mm256_and_si256(_mm256_permute4x64_epi64::<0b01_01_01_01>(pairs), upper);
    _mm256_add_epi64(_mm256_add_epi64(pairs, first_half), carry)
}

/// The codes of a column, how many there are, and the id of its first split.
#[derive(Clone, Copy)]
struct Coded<'a> {
    codes: &'a [u16],
    distinct: usize,
    id: __m256i,
}

/// At least as many rows as codes: sums of all codes in memory.
///
/// # Safety
/// Every row of the node is below `codes.len()`, and every code below `distinct`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn dense(
    column: Coded<'_>,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    wide: &Wide,
    lanes: &mut Lanes,
) -> bool {
    let sums = &mut scratch.sums[..column.distinct.next_multiple_of(4)];
    for (&row, &packed) in draws.rows.iter().zip(draws.packed) {
        // SAFETY: the caller's promise, and there are at least `distinct` sums.
        unsafe {
            let code = usize::from(*column.codes.get_unchecked(row as usize));
            *sums.get_unchecked_mut(code) += packed;
        }
    }
    let mut carry = _mm256_setzero_si256();
    let mut id = _mm256_or_si256(column.id, _mm256_set_epi64x(6, 4, 2, 0));
    let mut splits = 0;
    for four in sums.chunks_exact_mut(4) {
        // SAFETY: four sums are four lanes.
        let values = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
        four.fill(0);
        let left = running(values, carry);
        carry = _mm256_permute4x64_epi64::<0b11_11_11_11>(left);
        splits |= offer(lanes, score(wide, left), id);
        id = _mm256_add_epi64(id, _mm256_set1_epi64x(8));
    }
    splits != 0
}

/// More codes than rows: sums by code, a bitmap of the codes met, and the running sums of those.
///
/// # Safety
/// Every row of the node is below `codes.len()`, and every code below `distinct`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn sparse(
    Coded {
        codes,
        distinct,
        id,
    }: Coded<'_>,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    wide: &Wide,
    lanes: &mut Lanes,
) -> bool {
    let touched = &mut scratch.touched[..distinct.div_ceil(64)];
    scratch.walked += touched.len();
    let sums = &mut scratch.sums[..distinct];
    for (&row, &packed) in draws.rows.iter().zip(draws.packed) {
        // SAFETY: the caller's promise; there are `distinct` sums and a bit for each.
        unsafe {
            let code = usize::from(*codes.get_unchecked(row as usize));
            *sums.get_unchecked_mut(code) += packed;
            *touched.get_unchecked_mut(code / 64) |= 1 << (code % 64);
        }
    }
    let (lefts, ends) = (&mut scratch.lefts, &mut scratch.ends);
    assert!(lefts.len() >= distinct + 4 && ends.len() >= distinct + 4);
    let mut left = 0;
    let mut met = 0;
    for (place, word) in touched.iter_mut().enumerate() {
        let mut bits = std::mem::take(word);
        while bits != 0 {
            let code = place * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            // SAFETY: a bit stands for a code below `distinct`, and there are at most `distinct` of them.
            unsafe {
                left += std::mem::take(sums.get_unchecked_mut(code));
                *lefts.get_unchecked_mut(met) = left;
                *ends.get_unchecked_mut(met) = code as u32;
            }
            met += 1;
        }
    }
    // The rest of the last four has every row on its left, which is not a split.
    lefts[met..met + 4].fill(left);
    let mut splits = 0;
    for place in (0..met).step_by(4) {
        // SAFETY: there are at least four more than `met` entries, as asserted.
        let (left, end) = unsafe {
            (
                _mm256_loadu_si256(lefts.as_ptr().add(place).cast()),
                _mm_loadu_si128(ends.as_ptr().add(place).cast()),
            )
        };
        let code = _mm256_slli_epi64::<1>(_mm256_cvtepu32_epi64(end));
        splits |= offer(lanes, score(wide, left), _mm256_or_si256(id, code));
    }
    splits != 0
}
