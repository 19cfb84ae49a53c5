//! Cutting a byte stream into lines.

/// Collects bytes and gives whole lines.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Adds bytes and gives the lines that are complete now, cleaned of control sequences.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            lines.push(clean(&line));
        }
        lines
    }

    /// What has come since the last newline, if anything: a program's last words need not end in one.
    pub fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then(|| clean(&rest))
    }
}

/// Text without colors, cursor movements and carriage returns: they would tear the lanes apart.
fn clean(line: &[u8]) -> String {
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
    fn lines_come_whole_however_the_bytes_arrive() {
        let mut lines = Lines::default();
        assert!(lines.push(b"SLOW  rdma_").is_empty());
        assert_eq!(lines.push(b"listen\r\nDATA\nrest"), ["SLOW  rdma_listen", "DATA"]);
        assert_eq!(lines.take_rest().as_deref(), Some("rest"));
        assert_eq!(lines.take_rest(), None);
    }

    #[test]
    fn colors_and_broken_utf8_do_not_pass() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"\x1b[1;31mERR\x1b[0m \xff\tx\n"), ["ERR \u{fffd}    x"]);
    }
}
