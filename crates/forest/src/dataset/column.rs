//! One predictor: its values, and for every row the rank of its value.

/// Rows between two checks of whether to continue.
pub(super) const STRETCH: usize = 4096;

/// The rank of each row's value among the column's different values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codes {
    /// At most 65,536 different values: the usual case, and half the memory traffic.
    Short(Vec<u16>),
    /// More.
    Long(Vec<u32>),
}

impl Codes {
    /// Codes in the narrowest form that holds `distinct` different ones.
    pub(crate) fn of(codes: Vec<u32>, distinct: usize) -> Self {
        if distinct <= 1 << 16 {
            Self::Short(codes.into_iter().map(|code| code as u16).collect())
        } else {
            Self::Long(codes)
        }
    }

    /// The same codes with `ranks[code]` in place of `code`. `mind` may end it.
    pub(crate) fn replaced<E>(
        &self,
        ranks: &[u32],
        mind: &mut impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Self, E> {
        // There are as many ranks as codes, so they are as wide.
        Ok(match self {
            Self::Short(codes) => {
                let mut all = Vec::with_capacity(codes.len());
                for stretch in codes.chunks(STRETCH) {
                    mind(stretch.len())?;
                    all.extend(stretch.iter().map(|&code| ranks[usize::from(code)] as u16));
                }
                Self::Short(all)
            }
            Self::Long(codes) => {
                let mut all = Vec::with_capacity(codes.len());
                for stretch in codes.chunks(STRETCH) {
                    mind(stretch.len())?;
                    all.extend(stretch.iter().map(|&code| ranks[code as usize]));
                }
                Self::Long(all)
            }
        })
    }

    /// The code of one row.
    pub fn get(&self, row: usize) -> u32 {
        match self {
            Self::Short(codes) => u32::from(codes[row]),
            Self::Long(codes) => codes[row],
        }
    }
}

/// One predictor, coded.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub(super) name: String,
    pub(super) codes: Codes,
    /// The different values, ascending. For a factor: 0, 1, 2, ... in the order of its levels.
    pub(super) values: Vec<f64>,
    /// Whether cells of a numeric column are missing. Their code is one past the last value.
    pub(super) has_missing: bool,
    /// The levels of a factor, in order. Missing cells have their own level.
    pub(super) levels: Option<Vec<String>>,
    /// Whether the order of the levels was given explicitly, so that no other may replace it.
    pub(super) has_given_order: bool,
}

impl Column {
    /// Codes a column of numbers. NaN means missing.
    pub(super) fn of_numbers(name: String, cells: &[f64]) -> Self {
        // Adding zero turns -0 into 0: one value, not two.
        let mut values: Vec<f64> = cells
            .iter()
            .filter(|cell| !cell.is_nan())
            .map(|cell| cell + 0.0)
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        values.shrink_to_fit();
        let missing = values.len() as u32;
        let codes: Vec<u32> = cells
            .iter()
            .map(|cell| {
                if cell.is_nan() {
                    missing
                } else {
                    values.partition_point(|value| value < cell) as u32
                }
            })
            .collect();
        let has_missing = codes.contains(&missing);
        let distinct = values.len() + usize::from(has_missing);
        Self {
            name,
            codes: Codes::of(codes, distinct),
            values,
            has_missing,
            levels: None,
            has_given_order: false,
        }
    }

    /// A factor whose cells are already codes into `levels`.
    pub(super) fn of_levels(name: String, codes: Vec<u32>, levels: Vec<String>) -> Self {
        Self {
            name,
            codes: Codes::of(codes, levels.len()),
            values: (0..levels.len()).map(|level| level as f64).collect(),
            has_missing: false,
            levels: Some(levels),
            has_given_order: false,
        }
    }

    /// Its name in the header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// For every row the rank of its value.
    pub fn codes(&self) -> &Codes {
        &self.codes
    }

    /// The different values, ascending.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The levels of a factor, in order. `None` for numbers.
    pub fn levels(&self) -> Option<&[String]> {
        self.levels.as_deref()
    }

    /// How many codes there are, including the one for missing numbers.
    pub fn distinct(&self) -> usize {
        self.values.len() + usize::from(self.has_missing)
    }

    /// The code of a missing number, if cells are missing.
    pub fn missing(&self) -> Option<u32> {
        self.has_missing.then_some(self.values.len() as u32)
    }

    /// The value of a row: the number, the index of the level, or NaN if it is missing.
    pub fn value(&self, row: usize) -> f64 {
        self.values
            .get(self.codes.get(row) as usize)
            .copied()
            .unwrap_or(f64::NAN)
    }
}
