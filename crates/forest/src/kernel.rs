//! Finds the best split of a node: the safe, portable code, which is the reference for the SIMD kernels.
//!
//! All kernels give the same split, bit for bit: sums are exact integers (`fixed.rs`), scores are computed by the same
//! operations in the same order, and ties go to the smaller (draw position, code).

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::dataset::{Codes, Column};
use super::fixed::Total;
use super::params::Simd;

/// One predictor as a fit sees it.
///
/// The AVX2 kernels read without bounds checks what [`View::new`] has checked, so no field can be changed from outside.
pub(super) struct View<'a> {
    codes: CodesRef<'a>,
    /// Every code is below this.
    distinct: usize,
    /// The code of missing numbers.
    missing: Option<u32>,
}

/// The codes of one predictor.
#[derive(Clone, Copy)]
enum CodesRef<'a> {
    Short(&'a [u16]),
    Long(&'a [u32]),
}

impl<'a> View<'a> {
    /// A view of these codes.
    ///
    /// # Panics
    /// If a code is not below `distinct`. Data sets guarantee it, and kernels rely on it.
    pub(super) fn new(codes: &'a Codes, distinct: usize, missing: Option<u32>) -> Self {
        let (codes, highest) = match codes {
            Codes::Short(codes) => (
                CodesRef::Short(codes),
                codes.iter().max().map_or(0, |&code| usize::from(code)),
            ),
            Codes::Long(codes) => (
                CodesRef::Long(codes),
                codes.iter().max().map_or(0, |&code| code as usize),
            ),
        };
        assert!(highest < distinct.max(1), "codes are ranks");
        Self {
            codes,
            distinct: distinct.max(1),
            missing,
        }
    }

    pub(super) fn of(column: &'a Column) -> Self {
        Self::new(column.codes(), column.distinct(), column.missing())
    }

    /// Every code is below this.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// The code of missing numbers.
    #[inline]
    pub(super) fn missing(&self) -> Option<u32> {
        self.missing
    }

    fn bytes(&self) -> usize {
        match self.codes {
            CodesRef::Short(codes) => size_of_val(codes),
            CodesRef::Long(codes) => size_of_val(codes),
        }
    }

    #[inline]
    pub(super) fn code(&self, row: u32) -> u32 {
        match self.codes {
            CodesRef::Short(codes) => u32::from(codes[row as usize]),
            CodesRef::Long(codes) => codes[row as usize],
        }
    }
}

/// A code, 16 or 32 bits wide.
trait Code: Copy {
    fn index(self) -> usize;
}

impl Code for u16 {
    #[inline]
    fn index(self) -> usize {
        usize::from(self)
    }
}

impl Code for u32 {
    #[inline]
    fn index(self) -> usize {
        self as usize
    }
}

/// The draws in a node: its distinct rows, and for each its packed target times the number of its draws.
pub(super) struct Draws<'a> {
    rows: &'a [u32],
    packed: &'a [u64],
    total: Total,
}

impl<'a> Draws<'a> {
    /// The draws of a node: one packed target per row, and their total.
    pub(super) fn new(rows: &'a [u32], packed: &'a [u64], total: Total) -> Self {
        Self {
            rows,
            packed,
            total,
        }
    }
}

/// The best split so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Best {
    /// Negative while there is none.
    pub(super) score: f64,
    /// Draw position, code and direction of the missing, so that the smaller one wins a tie.
    pub(super) id: u64,
}

impl Best {
    pub(super) const NONE: Self = Self {
        score: -1.0,
        id: u64::MAX,
    };

    /// The id of a split, whose order decides ties.
    #[inline]
    pub(super) fn id(slot: usize, code: usize, is_missing_left: bool) -> u64 {
        ((slot as u64) << 32) | ((code as u64) << 1) | u64::from(is_missing_left)
    }

    pub(super) fn slot(self) -> usize {
        (self.id >> 32) as usize
    }

    /// Codes up to this one go left.
    pub(super) fn code(self) -> u32 {
        (self.id as u32) >> 1
    }

    pub(super) fn is_missing_left(self) -> bool {
        self.id & 1 == 1
    }

    /// Replaces it with a later split if that is better.
    #[inline]
    pub(super) fn offer(&mut self, score: f64, id: u64) {
        if score > self.score {
            *self = Self { score, id };
        }
    }

    /// Replaces it with any split if that is better, or as good and earlier.
    pub(super) fn merge(&mut self, score: f64, id: u64) {
        if score > self.score || (score == self.score && id < self.id) {
            *self = Self { score, id };
        }
    }
}

/// What one thread needs to find splits, reused from node to node.
pub(super) struct Scratch {
    /// Packed sums by code. All zero between uses. A few more than there are codes, for kernels that read in fours.
    sums: Vec<u64>,
    /// One bit per code that was met; all zero between uses.
    touched: Vec<u64>,
    /// Packed sums of the left side, and the codes they end with.
    lefts: Vec<u64>,
    ends: Vec<u32>,
    /// For each draw position, whether the predictor is constant in this node.
    constant: Vec<bool>,
    /// Words of `touched` that were scanned, which takes time however few codes were met.
    walked: usize,
    /// Whether the table is too large for the cache, so that prefetching codes pays off.
    is_far: bool,
}

/// A table up to this size is in the cache after the first tree.
const NEAR_BYTES: usize = 1 << 20;

impl Scratch {
    pub(super) fn new(columns: &[View<'_>], mtry: usize) -> Self {
        let most_distinct = columns.iter().map(|column| column.distinct).max();
        let most_distinct = most_distinct.unwrap_or(1);
        let bytes = columns.iter().map(View::bytes).sum::<usize>();
        Self {
            is_far: bytes > NEAR_BYTES,
            walked: 0,
            sums: vec![0; most_distinct + 8],
            touched: vec![0; most_distinct / 64 + 1],
            lefts: vec![0; most_distinct + 8],
            ends: vec![0; most_distinct + 8],
            constant: vec![false; mtry],
        }
    }

    /// For each draw position, whether the predictor is constant in the node scanned last.
    pub(super) fn constant(&self) -> &[bool] {
        &self.constant
    }

    /// Records whether the predictor at a draw position is constant.
    pub(super) fn set_constant(&mut self, slot: usize, is_constant: bool) {
        self.constant[slot] = is_constant;
    }

    /// Words scanned since the last call.
    pub(super) fn take_walked(&mut self) -> usize {
        std::mem::take(&mut self.walked)
    }
}

/// Which kernels to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Level {
    pub(super) fn choose(simd: Simd) -> Self {
        #[cfg(target_arch = "x86_64")]
        if simd == Simd::Detect && avx2::is_available() {
            return Self::Avx2;
        }
        let _ = simd;
        Self::Portable
    }
}

/// Examines the predictors `drawn[slots]` for a better split than `best`, and records which are constant in the node.
pub(super) fn scan(
    level: Level,
    columns: &[View<'_>],
    drawn: &[u16],
    slots: std::ops::Range<usize>,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    best: &mut Best,
) {
    match level {
        Level::Portable => {
            for slot in slots {
                scan_portable(
                    &columns[usize::from(drawn[slot])],
                    slot,
                    draws,
                    scratch,
                    best,
                );
            }
        }
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => {
            avx2::scan(columns, drawn, slots, draws, scratch, best);
        }
    }
}

/// Up to this many rows are sorted. More are counted.
const FEW_ROWS: usize = 24;

/// Examines one predictor.
fn scan_portable(
    column: &View<'_>,
    slot: usize,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    best: &mut Best,
) {
    let is_split = match (column.codes, column.missing) {
        (CodesRef::Short(codes), None) => plain(codes, column.distinct, slot, draws, scratch, best),
        (CodesRef::Long(codes), None) => plain(codes, column.distinct, slot, draws, scratch, best),
        (CodesRef::Short(codes), Some(missing)) => {
            sparse::<_, true>(codes, missing as usize, slot, draws, scratch, best)
        }
        (CodesRef::Long(codes), Some(missing)) => {
            sparse::<_, true>(codes, missing as usize, slot, draws, scratch, best)
        }
    };
    scratch.constant[slot] = !is_split;
}

/// Returns whether there was a split to score.
#[inline]
fn plain<C: Code>(
    codes: &[C],
    distinct: usize,
    slot: usize,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    best: &mut Best,
) -> bool {
    let rows = draws.rows.len();
    if distinct <= 2 * rows {
        dense(codes, distinct, slot, draws, scratch, best)
    } else if rows <= FEW_ROWS {
        sorted(codes, slot, draws, best)
    } else {
        sparse::<_, false>(codes, distinct, slot, draws, scratch, best)
    }
}

/// Many rows for each code: sums of all codes, including empty ones. An empty code repeats the previous score, which is
/// not greater. Before the first and after the last code the score is NaN, which is not greater either.
#[inline]
fn dense<C: Code>(
    codes: &[C],
    distinct: usize,
    slot: usize,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    best: &mut Best,
) -> bool {
    let sums = &mut scratch.sums[..distinct];
    for (&row, &packed) in draws.rows.iter().zip(draws.packed) {
        sums[codes[row as usize].index()] += packed;
    }
    let mut left = 0;
    let mut is_split = false;
    for (code, sum) in sums.iter_mut().enumerate() {
        let here = std::mem::take(sum);
        if here == 0 {
            continue;
        }
        left += here;
        let score = draws.total.score(left);
        is_split |= !score.is_nan();
        best.offer(score, Best::id(slot, code, false));
    }
    is_split
}

/// Few rows: sort them.
#[inline]
fn sorted<C: Code>(codes: &[C], slot: usize, draws: &Draws<'_>, best: &mut Best) -> bool {
    let rows = draws.rows.len();
    let mut keys = [0_u32; FEW_ROWS];
    let keys = &mut keys[..rows];
    for (place, &row) in draws.rows.iter().enumerate() {
        // A code has at most 20 bits and an index 5.
        let key = ((codes[row as usize].index() as u32) << 5) | place as u32;
        let mut hole = place;
        while hole > 0 && keys[hole - 1] > key {
            keys[hole] = keys[hole - 1];
            hole -= 1;
        }
        keys[hole] = key;
    }
    let mut left = 0;
    let mut is_split = false;
    for pair in keys.windows(2) {
        left += draws.packed[(pair[0] & 31) as usize];
        let code = pair[0] >> 5;
        if code != pair[1] >> 5 {
            is_split = true;
            best.offer(
                draws.total.score(left),
                Best::id(slot, code as usize, false),
            );
        }
    }
    is_split
}

/// More codes than rows: sums by code, and a bitmap of the codes that were met.
///
/// With `MISSING`, the code `distinct` means missing numbers. At every split they are tried on the right, then on the
/// left. Missing against present is a split too. In a node without missing numbers this is the plain search.
#[inline]
fn sparse<C: Code, const MISSING: bool>(
    codes: &[C],
    distinct: usize,
    slot: usize,
    draws: &Draws<'_>,
    scratch: &mut Scratch,
    best: &mut Best,
) -> bool {
    let mut lost = 0;
    for (&row, &packed) in draws.rows.iter().zip(draws.packed) {
        let code = codes[row as usize].index();
        if MISSING && code == distinct {
            lost += packed;
        } else {
            scratch.sums[code] += packed;
            scratch.touched[code / 64] |= 1 << (code % 64);
        }
    }
    let mut left = 0;
    let mut is_split = false;
    let touched = &mut scratch.touched[..distinct.div_ceil(64)];
    scratch.walked += touched.len();
    for (place, word) in touched.iter_mut().enumerate() {
        let mut bits = std::mem::take(word);
        while bits != 0 {
            let code = place * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            left += std::mem::take(&mut scratch.sums[code]);
            let score = draws.total.score(left);
            is_split |= !score.is_nan();
            best.offer(score, Best::id(slot, code, false));
            if MISSING && lost != 0 {
                best.offer(draws.total.score(left + lost), Best::id(slot, code, true));
            }
        }
    }
    is_split
}
