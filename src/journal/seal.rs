//! The seal of a line: its number and checksum, without which no line is read.

use serde::Serialize;

use super::Damage;

/// `,"crc":"01234567"}` at the end of every line.
const SEAL: &str = r#","crc":""#;
const SEAL_LENGTH: usize = SEAL.len() + 8 + 2;

/// Appends the record to `lines` as line number `n`, newline included.
pub(super) fn write_line<R: Serialize>(record: &R, n: u64, lines: &mut Vec<u8>) {
    let start = lines.len();
    serde_json::to_writer(&mut *lines, record)
        .expect("records are structs with text keys and finite numbers, written to memory");
    seal(n, start, lines);
    lines.push(b'\n');
}

/// Seals the object that begins at `start` as line number `n`.
pub(super) fn seal(n: u64, start: usize, lines: &mut Vec<u8>) {
    let closing = lines.pop();
    debug_assert_eq!(closing, Some(b'}'), "a record is an object");
    lines.extend_from_slice(br#","n":"#);
    lines.extend_from_slice(n.to_string().as_bytes());
    let crc = crc32fast::hash(&lines[start..]);
    lines.extend_from_slice(SEAL.as_bytes());
    lines.extend(
        (0..8)
            .rev()
            .map(|nibble| b"0123456789abcdef"[(crc >> (4 * nibble) & 15) as usize]),
    );
    lines.extend_from_slice(b"\"}");
}

/// Checks that a line (without its newline) is unchanged and has number `n`.
pub(super) fn verify(line: &[u8], n: u64) -> Result<(), Damage> {
    let crc = sealed_crc(line).ok_or(Damage::Unsealed)?;
    let body = &line[..line.len() - SEAL_LENGTH];
    if crc32fast::hash(body) != crc {
        return Err(Damage::Changed);
    }
    // The number is right before the seal. Reading it there saves every record a field for it.
    let digits = body
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (rest, digits) = body.split_at(body.len() - digits);
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse::<u64>().ok());
    match number {
        Some(number) if rest.ends_with(br#","n":"#) && number == n => Ok(()),
        Some(number) if rest.ends_with(br#","n":"#) => Err(Damage::Misplaced { number }),
        _ => Err(Damage::Unreadable),
    }
}

fn sealed_crc(line: &[u8]) -> Option<u32> {
    let seal = line
        .len()
        .checked_sub(SEAL_LENGTH)
        .map(|start| &line[start..])?;
    let digits = seal.strip_prefix(SEAL.as_bytes())?.strip_suffix(b"\"}")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The version that a first line claims, whatever else is on it: a newer journal may be sealed differently.
pub(super) fn claimed_version(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(br#"{"journal":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u64) -> Vec<u8> {
        let mut lines = vec![];
        write_line(
            &serde_json::json!({"pull": 7, "limit": 12.5}),
            n,
            &mut lines,
        );
        assert_eq!(lines.pop(), Some(b'\n'));
        lines
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let written = line(14);
        for place in 0..written.len() {
            for flip in [1, 0x20, 0x80] {
                let mut changed = written.clone();
                changed[place] ^= flip;
                // The one change without effect: the case of the CRC's own letters.
                if changed.eq_ignore_ascii_case(&written) && place >= written.len() - 10 {
                    continue;
                }
                assert!(verify(&changed, 14).is_err(), "byte {place}");
            }
        }
    }

    #[test]
    fn a_line_in_the_wrong_place_is_noticed() {
        assert_eq!(verify(&line(14), 15), Err(Damage::Misplaced { number: 14 }));
        assert_eq!(verify(b"", 1), Err(Damage::Unsealed));
        assert_eq!(verify(b"{}", 1), Err(Damage::Unsealed));
    }
}
