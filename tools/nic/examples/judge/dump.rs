//! Bytes that had to be, and those that came, under each other, with a mark at the first that differs.

/// Bytes in a line.
const WIDTH: usize = 16;

/// The first place where they differ, which may be behind the end of one.
pub fn difference(wanted: &[u8], yours: &[u8]) -> Option<usize> {
    let same = wanted.iter().zip(yours).take_while(|(wanted, yours)| wanted == yours).count();
    (wanted != yours).then_some(same)
}

/// The lines up to the one that differs. The fields of the byte are told by who knows them.
pub fn differing(whose: &str, wanted: &[u8], yours: &[u8], at: usize, field: &str) -> String {
    let mut text = String::new();
    for start in (0..=at).step_by(WIDTH) {
        for (whose, bytes) in [(whose, wanted), ("yours", yours)] {
            let line = bytes.get(start..bytes.len().min(start + WIDTH)).unwrap_or_default();
            text += &format!("  {whose:9} {start:04x}  {}\n", hex(line));
        }
    }
    let byte = |bytes: &[u8]| bytes.get(at).map_or("nothing".to_owned(), |byte| format!("{byte:02x}"));
    text += &format!("{:18}{}^^\n", "", " ".repeat(at % WIDTH * 3));
    text + &format!("  Byte {at}{field}: {whose} has {}, yours {}.", byte(wanted), byte(yours))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
