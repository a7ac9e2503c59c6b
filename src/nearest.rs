//! Finds the known name nearest to an unknown one, for every "did you mean" message.

/// Gives the known name closest to `unknown`, if one is close enough to be what was meant.
///
/// Close enough: at most a third of the letters differ, or one name begins with the other. Case, `-` and `_` do not
/// count, since people mix them up.
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(unknown);
    if wanted.is_empty() {
        return None;
    }
    known
        .into_iter()
        .filter_map(|name| {
            let candidate = plain(name);
            let distance = strsim::damerau_levenshtein(&wanted, &candidate);
            let longest = wanted.chars().count().max(candidate.chars().count());
            let is_prefix = wanted.len() >= 3
                && (candidate.starts_with(&wanted) || wanted.starts_with(&candidate));
            (3 * distance <= longest || is_prefix).then_some((distance, name))
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|letter| !matches!(letter, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_the_closest_name_or_none() {
        let keys = ["limits", "policy", "budget", "min_node_size"];
        assert_eq!(nearest("limit", keys), Some("limits"));
        assert_eq!(nearest("polcy", keys), Some("policy"));
        assert_eq!(nearest("min-node-size", keys), Some("min_node_size"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
    }
}
