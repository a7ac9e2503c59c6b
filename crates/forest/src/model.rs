//! A fitted forest with the names it needs to predict from other tables, and its file format.
//!
//! The file: the bytes `captime-forest\n`, then, all little-endian, the version (`u32`), the length of the rest
//! (`u64`), its CRC-32 (`u32`), and the rest: target, classes, predictors with their levels and ranks, trees. Strings
//! and lists are preceded by their length (`u32`). A leaf is the byte 0 and its value (`f64`). A split is the byte 1 (2
//! if missing values go left), the index of its left child (`u32`; the right child follows it), its predictor (`u16`)
//! and its threshold (`f64`).
//!
//! A file is checked completely before anything is predicted from it: whatever is wrong with it, reading it gives an
//! error.

use super::dataset::{
    Dataset, DatasetError, MAX_CLASSES, MAX_PREDICTORS, NewRows, Predictor, Task,
};
use super::forest::Forest;
use super::tree::{Node, Tree};

const MAGIC: &[u8] = b"captime-forest\n";
/// Raised with every change to the format.
const VERSION: u32 = 1;

/// A forest that can be saved, loaded, and used on other tables by the names of their columns.
///
/// ```
/// use captime_forest::{Dataset, FitOutcome, Model, Params, ReadOptions, Stop, fit_until};
///
/// let csv = "size,zone,price\n50,a,100\n60,b,120\n70,a,140\n80,b,170\n90,a,180\n100,b,210\n";
/// let data = Dataset::parse(csv.as_bytes(), &ReadOptions::predict("price"))?;
/// let rows: Vec<u32> = (0..data.rows() as u32).collect();
/// let FitOutcome::Done { forest, .. } = fit_until(&data, &rows, &Params::default(), &Stop::new(), None)? else {
///     unreachable!("nothing stops it")
/// };
/// let file = Model::new(&data, forest).to_bytes();
///
/// let model = Model::from_bytes(&file)?;
/// let new = model.read_rows(b"zone,size\na,55\nb,95\n")?;
/// let prices = model.predict(&new);
/// assert!(prices[0] < prices[1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    target: String,
    classes: Vec<String>,
    predictors: Vec<Predictor>,
    forest: Forest,
}

/// Why a file is not a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It does not begin like a model.
    #[error("this is not a model file")]
    NotAModel,
    /// It was written in another format.
    #[error("the model file has version {version}, this program reads version {VERSION}")]
    Version {
        /// The version of the file.
        version: u32,
    },
    /// It is shorter or longer than it claims.
    #[error("the model file is damaged: {found} bytes of content instead of {expected}")]
    Length {
        /// Actual bytes.
        found: u64,
        /// Expected bytes.
        expected: u64,
    },
    /// Its content changed after it was written.
    #[error("the model file is damaged: its checksum does not match")]
    Checksum,
    /// Its content is not a forest, although the checksum matches.
    #[error("the model file is invalid: {what}")]
    Invalid {
        /// What is wrong.
        what: &'static str,
    },
}

impl ModelError {
    /// What the user can change to get past this.
    pub fn hint(&self) -> Option<String> {
        Some(
            match self {
                Self::NotAModel => "give a file written by `captime forest --save`",
                Self::Version { .. } => "write the model again with this version of captime",
                _ => "copy the file again, or fit and save the model again",
            }
            .into(),
        )
    }
}

impl Model {
    /// A forest and the table it was fitted on.
    pub fn new(data: &Dataset, forest: Forest) -> Self {
        let predictors = data.columns().iter().map(|column| Predictor {
            name: column.name().to_owned(),
            levels: column.levels().map(<[String]>::to_vec),
        });
        Self {
            target: data.target().name().to_owned(),
            classes: data.target().classes().to_vec(),
            predictors: predictors.collect(),
            forest,
        }
    }

    /// The column it predicts.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Whether it predicts numbers or classes.
    pub fn task(&self) -> Task {
        self.forest.task()
    }

    /// The classes by index. Empty for numbers.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The columns it predicts from.
    pub fn predictors(&self) -> &[Predictor] {
        &self.predictors
    }

    /// Reads rows to predict from a CSV in memory. Columns are found by name, in any order, and others are ignored.
    pub fn read_rows(&self, text: &[u8]) -> Result<NewRows, DatasetError> {
        NewRows::parse(text, &self.predictors)
    }

    /// Predicts rows: numbers, or indices of classes.
    pub fn predict(&self, rows: &NewRows) -> Vec<f64> {
        self.forest
            .predict_values(&rows.values, self.predictors.len())
    }

    /// The share of trees that vote for each class, row by row. Empty for numbers.
    pub fn probabilities(&self, rows: &NewRows) -> Vec<f64> {
        let predictors = self.predictors.len();
        self.forest
            .probabilities_of_values(&rows.values, predictors)
    }

    /// The content of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_text(&mut body, &self.target);
        put_texts(&mut body, &self.classes);
        put_count(&mut body, self.predictors.len());
        for (place, predictor) in self.predictors.iter().enumerate() {
            put_text(&mut body, &predictor.name);
            body.push(u8::from(predictor.levels.is_some()));
            put_texts(&mut body, predictor.levels.as_deref().unwrap_or_default());
            let ranks = self.forest.ranks.get(place).and_then(Option::as_deref);
            let ranks = ranks.unwrap_or_default();
            put_count(&mut body, ranks.len());
            body.extend(ranks.iter().flat_map(|rank| rank.to_le_bytes()));
        }
        put_count(&mut body, self.forest.trees.len());
        for tree in &self.forest.trees {
            put_count(&mut body, tree.nodes.len());
            for (node, value) in tree.nodes.iter().zip(&tree.values) {
                if node.is_leaf() {
                    body.push(0);
                } else {
                    body.push(1 + u8::from(node.is_missing_left));
                    body.extend(node.left.to_le_bytes());
                    body.extend(node.predictor.to_le_bytes());
                }
                body.extend(value.to_le_bytes());
            }
        }
        let mut file = MAGIC.to_vec();
        file.extend(VERSION.to_le_bytes());
        file.extend((body.len() as u64).to_le_bytes());
        file.extend(crc32fast::hash(&body).to_le_bytes());
        file.extend(body);
        file
    }

    /// Reads the content of a file.
    pub fn from_bytes(file: &[u8]) -> Result<Self, ModelError> {
        let start = file.strip_prefix(MAGIC).ok_or(ModelError::NotAModel)?;
        let mut start = Input(start);
        let version = u32::from_le_bytes(start.array()?);
        if version != VERSION {
            return Err(ModelError::Version { version });
        }
        let expected = u64::from_le_bytes(start.array()?);
        let checksum = u32::from_le_bytes(start.array()?);
        let found = start.0.len() as u64;
        if found != expected {
            return Err(ModelError::Length { found, expected });
        }
        if crc32fast::hash(start.0) != checksum {
            return Err(ModelError::Checksum);
        }
        Self::from_body(start)
    }

    fn from_body(mut body: Input<'_>) -> Result<Self, ModelError> {
        let target = body.text()?;
        let classes = body.texts()?;
        if classes.len() > MAX_CLASSES || classes.len() == 1 {
            return Err(invalid("its classes"));
        }
        let count = body.count()?;
        if count == 0 || count > MAX_PREDICTORS {
            return Err(invalid("its number of columns"));
        }
        let (mut predictors, mut ranks) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let name = body.text()?;
            let has_levels = body.byte()? == 1;
            let levels = body.texts()?;
            let order = body.ranks(levels.len())?;
            ranks.push((!order.is_empty()).then_some(order));
            let levels = has_levels.then_some(levels);
            predictors.push(Predictor { name, levels });
        }
        let count = body.count()?;
        if count == 0 {
            return Err(invalid("it has no trees"));
        }
        let trees = (0..count)
            .map(|_| body.tree(predictors.len(), classes.len()))
            .collect::<Result<Vec<_>, _>>()?;
        if !body.0.is_empty() {
            return Err(invalid("something follows the last tree"));
        }
        Ok(Self {
            forest: Forest::loaded(trees, classes.len(), ranks),
            target,
            classes,
            predictors,
        })
    }
}

fn invalid(what: &'static str) -> ModelError {
    ModelError::Invalid { what }
}

fn put_count(to: &mut Vec<u8>, count: usize) {
    to.extend((count as u32).to_le_bytes());
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    put_count(to, text.len());
    to.extend(text.as_bytes());
}

fn put_texts(to: &mut Vec<u8>, texts: &[String]) {
    put_count(to, texts.len());
    for text in texts {
        put_text(to, text);
    }
}

/// The remaining input. A list is never longer than the bytes that follow, so no count can make it use much memory.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], ModelError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(invalid("it is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| invalid("it is cut off"))
    }

    fn byte(&mut self) -> Result<u8, ModelError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn count(&mut self) -> Result<usize, ModelError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn text(&mut self) -> Result<String, ModelError> {
        let length = self.count()?;
        let text = self.take(length)?.to_vec();
        String::from_utf8(text).map_err(|_| invalid("a name is not UTF-8"))
    }

    fn texts(&mut self) -> Result<Vec<String>, ModelError> {
        let count = self.count()?;
        (0..count).map(|_| self.text()).collect()
    }

    /// The ranks of the levels of a factor: none, or one for each.
    fn ranks(&mut self, levels: usize) -> Result<Vec<u32>, ModelError> {
        let count = self.count()?;
        if count != 0 && count != levels {
            return Err(invalid("the order of some levels"));
        }
        let ranks = (0..count).map(|_| Ok(u32::from_le_bytes(self.array()?)));
        ranks.collect()
    }

    fn tree(&mut self, predictors: usize, classes: usize) -> Result<Tree, ModelError> {
        let count = self.count()?;
        if count == 0 {
            return Err(invalid("a tree without nodes"));
        }
        let (mut nodes, mut values) = (Vec::new(), Vec::new());
        for at in 0..count {
            let kind = self.byte()?;
            if kind == 0 {
                nodes.push(Node::leaf(at as u32));
                let value = f64::from_le_bytes(self.array()?);
                let is_class = value >= 0.0 && value.fract() == 0.0 && value < classes as f64;
                if !value.is_finite() || (classes > 0 && !is_class) {
                    return Err(invalid("the value of a leaf"));
                }
                values.push(value);
                continue;
            }
            let left = u32::from_le_bytes(self.array()?);
            let predictor = u16::from_le_bytes(self.array()?);
            let threshold = f64::from_le_bytes(self.array()?);
            // Children follow their parents, so that every path ends.
            let is_child = left as usize > at && (left as usize) < count - 1;
            if kind > 2 || !is_child || usize::from(predictor) >= predictors || threshold.is_nan() {
                return Err(invalid("a split"));
            }
            nodes.push(Node {
                left,
                // Codes belong to the table it was fitted on. Here rows are sent down by their values.
                split: 0,
                predictor,
                is_missing_left: kind == 2,
            });
            values.push(threshold);
        }
        Ok(Tree {
            nodes: nodes.into(),
            values: values.into(),
            importance: Box::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{FitOutcome, LevelOrder, Params, ReadOptions, Stop, fit_until};

    fn table(order: LevelOrder, predict: &str) -> (String, Dataset) {
        let mut csv = String::from("size,zone,kind,price\n");
        for row in 0_u32..60 {
            let size = if row % 7 == 3 {
                "NA".into()
            } else {
                (row * 13 % 50).to_string()
            };
            let zone = ["north", "south", "", "east"][(row % 4) as usize];
            let kind = ["a", "b", "c"][(row * 5 % 3) as usize];
            let price = row * 13 % 50 + row % 4 * 20;
            csv.extend([format!("{size},{zone},{kind},{price}\n")]);
        }
        let options = ReadOptions {
            order,
            ..ReadOptions::predict(predict)
        };
        let data = Dataset::parse(csv.as_bytes(), &options).unwrap();
        (csv, data)
    }

    fn model(data: &Dataset) -> (Forest, Model) {
        let rows: Vec<u32> = (0..data.rows() as u32).collect();
        let params = Params {
            trees: 15,
            ..Params::default()
        };
        let fit = fit_until(data, &rows, &params, &Stop::new(), None).unwrap();
        let FitOutcome::Done { forest, .. } = fit else {
            panic!("nothing stops it");
        };
        (forest.clone(), Model::new(data, forest))
    }

    #[test]
    fn a_loaded_model_predicts_what_the_forest_did() {
        for order in [LevelOrder::Alphabetical, LevelOrder::ByResponse] {
            for predict in ["price", "kind"] {
                let (csv, data) = table(order, predict);
                let (forest, model) = model(&data);
                let loaded = Model::from_bytes(&model.to_bytes()).unwrap();
                assert_eq!(loaded.target(), predict);
                assert_eq!(loaded.classes(), data.target().classes());
                let new = loaded.read_rows(csv.as_bytes()).unwrap();
                assert_eq!((new.rows, &new.unknown[..]), (60, &[][..]));
                let rows: Vec<u32> = (0..60).collect();
                assert_eq!(loaded.predict(&new), forest.predict(&data, &rows));
                let shares = loaded.probabilities(&new);
                assert_eq!(shares, forest.probabilities(&data, &rows));
                assert_eq!(shares.len(), 60 * data.target().classes().len());
                for row in shares.chunks(3) {
                    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn columns_are_found_by_name_and_unknown_levels_counted() {
        let (_, data) = table(LevelOrder::Alphabetical, "price");
        let (_, model) = model(&data);
        let plain = model
            .read_rows(b"size,zone,kind\n7,east,a\n9,,b\n")
            .unwrap();
        let other = model
            .read_rows(b"id,kind,size,zone\n1,a,7,east\n2,b,9,mars\n")
            .unwrap();
        assert_eq!(plain.values, other.values);
        assert_eq!(other.unknown, [("zone".to_owned(), 1)]);
        let said = |text: &str| model.read_rows(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            said("size,zone\n7,east\n"),
            "line 1: there is no column `kind` to predict from"
        );
        assert_eq!(
            said("size,zone,kind\nbig,east,a\n"),
            "line 2, column 1: `size` is `big`, which is not a number"
        );
        assert!(said("size,zone,kind\n1,east\n").starts_with("line 2, column 3: 2 fields"));
    }

    #[test]
    fn damage_of_any_byte_and_a_cut_anywhere_are_noticed() {
        let (_, data) = table(LevelOrder::ByResponse, "kind");
        let file = model(&data).1.to_bytes();
        for place in 0..file.len() {
            assert!(Model::from_bytes(&file[..place]).is_err(), "cut at {place}");
            let mut damaged = file.clone();
            damaged[place] ^= 0x10;
            assert!(Model::from_bytes(&damaged).is_err(), "byte {place}");
        }
        let mut newer = file.clone();
        newer[MAGIC.len()] = 2;
        assert_eq!(
            Model::from_bytes(&newer),
            Err(ModelError::Version { version: 2 })
        );
        assert_eq!(Model::from_bytes(b"PK\x03\x04"), Err(ModelError::NotAModel));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        // What a checksum cannot notice: a forged file.
        #[test]
        fn content_with_a_matching_checksum_never_panics(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let (csv, data) = table(LevelOrder::ByResponse, "kind");
            let mut file = model(&data).1.to_bytes();
            let start = MAGIC.len() + 16;
            for (place, byte) in changes {
                let place = start + place.index(file.len() - start);
                file[place] = byte;
            }
            let checksum = crc32fast::hash(&file[start..]).to_le_bytes();
            file[start - 4..start].copy_from_slice(&checksum);
            if let Ok(model) = Model::from_bytes(&file)
                && let Ok(rows) = model.read_rows(csv.as_bytes())
            {
                prop_assert_eq!(model.predict(&rows).len(), rows.rows);
                prop_assert_eq!(model.probabilities(&rows).len(), rows.rows * model.classes().len());
            }
        }
    }
}
