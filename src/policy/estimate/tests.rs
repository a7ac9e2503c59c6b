use super::*;
use crate::policy::Recommend;
use crate::round::LimitGrid;
use proptest::prelude::*;

const LIMITS: [f64; 4] = [0.5, 1.0, 1.5, 3.0];
const ARMS: usize = 3;

fn problem() -> Problem {
    Problem::new(
        ARMS,
        LimitGrid::new(LIMITS).unwrap(),
        Price::new("x / 10", "x / 10 if x <= 0.5 else 10 * x", 3.0).unwrap(),
    )
    .unwrap()
}

/// Everything that can come back from a pull, on and off the grid, early and late.
fn any_observation() -> impl Strategy<Value = Observation> {
    let limit = prop_oneof![prop::sample::select(LIMITS.to_vec()), 0.1..4.0f64];
    (0..ARMS, limit, 0.0..=1.0f64, 0.0..4.0f64, 0..4).prop_map(
        |(arm, limit, reward, consumption, kind)| {
            let pull = Pull::new(ArmId::from_index(arm), Limit::new(limit).unwrap());
            match kind {
                0 => Observation::censored(pull, limit).unwrap(),
                1 => Observation::censored(pull, consumption + 0.01).unwrap(),
                2 => Observation::failed(pull),
                _ => Observation::ended(pull, reward, consumption).unwrap(),
            }
        },
    )
}

/// The definitions, word for word: counts over the whole history for one pair.
fn by_definition(
    history: &[Observation],
    arm: usize,
    limit: f64,
    price: &Price,
) -> (u32, u32, f64) {
    let (mut count, mut exceeded, mut net) = (0, 0, 0.0);
    for seen in history.iter().filter(|seen| seen.pull().arm.index() == arm) {
        let reach = match seen.seen() {
            Seen::Censored { at } => at.get(),
            _ => seen.pull().limit.get(),
        };
        if reach < limit {
            continue;
        }
        count += 1;
        match seen.seen() {
            Seen::Rewarded {
                reward,
                consumption,
            } if consumption <= limit => net += reward - price.cost(consumption),
            _ => exceeded += 1,
        }
    }
    (count, exceeded, net)
}

proptest! {
    #[test]
    fn estimates_are_what_the_definitions_say(history in prop::collection::vec(any_observation(), 0..80)) {
        let problem = problem();
        let mut estimates = Estimates::new(&problem, Survival::Restricted);
        for (round, seen) in history.iter().enumerate() {
            estimates.observe(Round(round as u64 + 1), seen);
        }
        for arm in 0..ARMS {
            for (k, limit) in LIMITS.into_iter().enumerate() {
                let (count, exceeded, net) = by_definition(&history, arm, limit, &problem.price);
                let stat = &estimates.of_arm(arm)[k];
                prop_assert_eq!((stat.count, stat.exceeded), (count, exceeded));
                prop_assert!((stat.net - net).abs() < 1e-9);
                if count > 0 {
                    let penalty = problem.price.penalty(Limit::new(limit).unwrap());
                    let gain = net / f64::from(count) - penalty * f64::from(exceeded) / f64::from(count);
                    prop_assert!((estimates.gain(arm, k) - gain).abs() < 1e-9);
                }
            }
            let of_arm = history.iter().filter(|seen| seen.pull().arm.index() == arm).count();
            prop_assert_eq!(estimates.arm_count(arm).observed as usize, of_arm);
        }
        prop_assert_eq!(estimates.t(), history.len() as u64 + 1);
    }

    #[test]
    fn the_printed_recursion_gives_the_same_gains(history in prop::collection::vec(any_observation(), 1..80)) {
        // g-hat(t+1) = (N g-hat + (R - c(C)) 1{C <= tau}) / (N + 1) for tau <= tau_t, unchanged above.
        let problem = problem();
        let mut estimates = Estimates::new(&problem, Survival::Restricted);
        let mut gains = [[0.0; LIMITS.len()]; ARMS];
        let mut counts = [[0.0; LIMITS.len()]; ARMS];
        for (round, seen) in history.iter().enumerate() {
            let (arm, pulled) = estimates.observe(Round(round as u64 + 1), seen);
            for (k, limit) in LIMITS.into_iter().enumerate().filter(|&(_, limit)| limit <= pulled.reach) {
                let won = pulled.ended.filter(|ended| ended.consumption <= limit).map_or(0.0, |ended| ended.net);
                gains[arm][k] = (counts[arm][k] * gains[arm][k] + won) / (counts[arm][k] + 1.0);
                counts[arm][k] += 1.0;
            }
        }
        for (arm, gains) in gains.into_iter().enumerate() {
            for (stat, gain) in estimates.of_arm(arm).iter().zip(gains).filter(|(stat, _)| stat.count > 0) {
                prop_assert!((stat.net / f64::from(stat.count) - gain).abs() < 1e-9);
            }
        }
    }

    /// An answer looks only at arms that changed since the last one, and rounds, rules and new arms come in any order.
    #[test]
    fn an_answer_does_not_depend_on_when_it_was_asked_before(
        history in prop::collection::vec((any_observation(), 0..4), 1..60), kaplan_meier: bool,
    ) {
        let survival = if kaplan_meier { Survival::KaplanMeier } else { Survival::Restricted };
        let fresh = || Estimates::new(&Problem { arms: 1, ..problem() }, survival);
        let mut asked = fresh();
        for (round, (seen, ask)) in history.iter().enumerate() {
            asked.add_arms((seen.pull().arm.index() + 1).saturating_sub(asked.arms()));
            asked.observe(Round(round as u64 + 1), seen);
            let rule = match ask {
                0 | 1 => Recommend::Safe,
                2 => Recommend::Best,
                _ => continue,
            };
            let mut anew = fresh();
            anew.add_arms(asked.arms() - 1);
            for (round, (seen, _)) in history[..=round].iter().enumerate() {
                anew.observe(Round(round as u64 + 1), seen);
            }
            prop_assert_eq!(asked.answer(None, rule), anew.answer(None, rule));
        }
    }

    #[test]
    fn pulls_under_way_count_until_they_land(
        history in prop::collection::vec((any_observation(), any::<bool>()), 0..40),
    ) {
        let problem = problem();
        let mut estimates = Estimates::new(&problem, Survival::Restricted);
        for (round, (seen, _)) in history.iter().enumerate() {
            estimates.launched(Round(round as u64 + 1), seen.pull());
        }
        prop_assert_eq!(estimates.t(), history.len() as u64 + 1);
        for (round, (seen, has_landed)) in history.iter().enumerate().rev() {
            if *has_landed {
                estimates.observe(Round(round as u64 + 1), seen);
            }
        }
        prop_assert_eq!(estimates.t(), history.len() as u64 + 1);
        for arm in 0..ARMS {
            for (k, limit) in LIMITS.into_iter().enumerate() {
                let under_way = history.iter().filter(|(seen, has_landed)| {
                    !has_landed && seen.pull().arm.index() == arm && limit <= seen.pull().limit.get()
                });
                prop_assert_eq!(estimates.of_arm(arm)[k].pending as usize, under_way.count());
            }
        }
    }
}
