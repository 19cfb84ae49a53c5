//! Cutting a byte stream into lines.

/// What has no end after this many bytes is cut.
const LONGEST: usize = 64 << 10;

/// Collects bytes and gives whole lines.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Adds bytes and gives the lines that are complete now, as they came.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.rest.extend_from_slice(bytes);
        let end = match self.rest.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => newline + 1,
            None if self.rest.len() > LONGEST => self.rest.len(),
            None => return Vec::new(),
        };
        let whole: Vec<u8> = self.rest.drain(..end).collect();
        whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    /// What has come since the last newline, if anything: a program's last words need not end in one.
    pub fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then(|| clean(&rest))
    }
}

/// Text without colors, cursor movements and carriage returns: they would tear the lanes apart.
pub fn clean(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut cleaned = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            // An escape sequence such as `ESC [ 31 m` ends with its first letter.
            '\x1b' => {
                characters.by_ref().find(|c| c.is_ascii_alphabetic());
            }
            '\t' => cleaned.push_str("    "),
            c if c.is_control() => {}
            c => cleaned.push(c),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_clean_however_the_bytes_arrive() {
        let mut lines = Lines::default();
        assert!(lines.push(b"SLOW  rdma_").is_empty());
        let whole = lines.push(b"listen\r\n\x1b[1;31mERR\x1b[0m \xff\tx\nrest");
        assert_eq!(
            whole.iter().map(|line| clean(line)).collect::<Vec<_>>(),
            ["SLOW  rdma_listen", "ERR \u{fffd}    x"]
        );
        assert_eq!(lines.take_rest().as_deref(), Some("rest"));
        assert_eq!(lines.push(&vec![b'x'; LONGEST + 1]).len(), 1, "what has no end is cut");
        assert_eq!(lines.take_rest(), None);
    }
}
