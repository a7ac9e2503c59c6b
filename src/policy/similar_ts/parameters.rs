//! The parameters in a scenario.

use serde::Serialize;

use crate::policy::{Options, PolicyParameters};

/// Its parameters: each ingredient can be switched off.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches")]
pub struct Parameters {
    /// Whether similar arms are asked.
    pub similar: bool,
    /// Whether anything is believed of an arm before its first run; if not, priors are flat.
    pub population: bool,
    /// Whether limits climb.
    pub climb: bool,
    /// Whether it chooses instances, where it may.
    pub instances: bool,
    /// How many runs a prior counts for in a hazard; as many as is likely if not given.
    pub strength: Option<f64>,
    /// Curves are drawn as if everything had been seen this many times: with very many arms, some draw of an arm that is
    /// hardly known is always the largest.
    pub sure: f64,
    /// The share of the consumption that goes to runs at the largest limit, once that can be afforded and if there are
    /// instances.
    ///
    /// The best pair often has a short limit, and if you want the best arm *at the largest limit*, you would wait for
    /// ever. Without instances (the paper's problems) the pair is all that is asked for.
    pub full: f64,
    /// How the answer is picked.
    pub recommend: SimilarRecommend,
}

/// How the answer is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimilarRecommend {
    /// The largest gain believed, similar arms included.
    Posterior,
    /// The rule of all other policies.
    Safe,
    /// The largest gain estimated.
    Best,
}

impl PolicyParameters for Parameters {
    fn read(options: &mut Options) -> Self {
        let answers = [
            ("posterior", SimilarRecommend::Posterior),
            ("safe", SimilarRecommend::Safe),
            ("best", SimilarRecommend::Best),
        ];
        let strength = options.number("strength", f64::NAN, "a number above 0", |number| {
            number.is_finite() && number > 0.0
        });
        Self {
            similar: options.flag("similar", true),
            population: options.flag("population", true),
            climb: options.flag("climb", true),
            instances: options.flag("instances", true),
            strength: Some(strength).filter(|strength| !strength.is_nan()),
            sure: options.positive("sure", 2.0),
            full: options.number("full", 0.5, "a number from 0 to 1", |share| {
                (0.0..=1.0).contains(&share)
            }),
            recommend: options.word("recommend", &answers),
        }
    }

    fn chooses_instances(&self) -> bool {
        self.instances
    }
}
