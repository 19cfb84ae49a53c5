//! The ladder as a picture: client left, server right, one arrow per packet, in SVG.
//!
//! Its text can be selected and searched, it follows the reader's choice of light or dark, and a screen reader gets the
//! packets in words.

use crate::show::row::{Row, Sort};
use std::fmt::Write;

/// Pixels from the left: of the line that is the client, of the one that is the server, and of what is said about packets.
const CLIENT: usize = 122;
const SERVER: usize = 452;
const WORDS: usize = 470;
/// Pixels: the picture's width, the height above the first packet, and that of each packet.
const WIDTH: usize = 960;
const HEAD: usize = 56;
const ROW: usize = 42;

/// Colors by class: for light, then for dark.
pub(crate) const STYLE: &str = "\
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328}
.title{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
.quiet,.title{fill:#59636e}.side{font-weight:bold}.back{fill:#ffffff}.life{stroke:#d1d9e0;stroke-width:2}
.arrow{stroke-width:1.6;fill:none}.connection{stroke:#0e7490}.send{stroke:#1a7f37}.write{stroke:#0969da}
.read{stroke:#8250df}.notable{stroke:#9a6700}.acknowledge{stroke:#818b98}.trouble{stroke:#cf222e}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet,.title{fill:#9198a1}.back{fill:#0d1117}
.life{stroke:#3d444d}.connection{stroke:#39c5cf}.send{stroke:#3fb950}.write{stroke:#4493f8}.read{stroke:#ab7df8}
.notable{stroke:#d29922}.acknowledge{stroke:#9198a1}.trouble{stroke:#f85149}}";

/// Draws the rows of a capture. The machines named at the top are those of its first packet.
pub fn draw(rows: &[Row]) -> String {
    let height = HEAD + rows.len() * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">The packets between client and server</title>\n\
         <desc id=\"desc\">{}</desc>\n<style>\n{STYLE}\n</style>\n\
         <rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
        escape(&describe(rows))
    );
    if let Some(row) = rows.first() {
        heading(&mut svg, row);
    }
    for x in [CLIENT, SERVER] {
        add(&mut svg, format_args!("<path class=\"life\" d=\"M{x} 32V{}\"/>", height - 8));
    }
    for (place, row) in rows.iter().enumerate() {
        packet(&mut svg, HEAD + place * ROW, row);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The packets in words, for somebody who cannot see the picture.
pub fn describe(rows: &[Row]) -> String {
    let arrows = rows.iter().map(|row| {
        let (from, to) = if row.from_client { ("client", "server") } else { ("server", "client") };
        format!("{} {from} to {to}: {}", row.frame, row.label)
    });
    let plural = if rows.len() == 1 { "" } else { "s" };
    format!("{} packet{plural}. {}.", rows.len(), arrows.collect::<Vec<_>>().join("; "))
}

pub(crate) fn add(svg: &mut String, element: std::fmt::Arguments) {
    // Writing to a String cannot fail.
    let _ = writeln!(svg, "{element}");
}

pub(crate) fn text(svg: &mut String, x: usize, y: usize, attributes: &str, words: &str) {
    if words.is_empty() {
        return;
    }
    add(svg, format_args!("<text x=\"{x}\" y=\"{y}\" {attributes}>{}</text>", escape(words)));
}

fn heading(svg: &mut String, row: &Row) {
    const MIDDLE: &str = "class=\"side\" text-anchor=\"middle\"";
    text(svg, 42, 20, "class=\"quiet\" text-anchor=\"end\"", "frame");
    text(svg, CLIENT, 20, MIDDLE, &format!("client {}", row.client));
    text(svg, SERVER, 20, MIDDLE, &format!("server {}", row.server));
}

fn packet(svg: &mut String, y: usize, row: &Row) {
    text(svg, 30, y + 4, "text-anchor=\"end\"", &row.frame.to_string());
    if let Some(ms) = row.ms {
        text(svg, CLIENT - 12, y + 4, "class=\"quiet\" text-anchor=\"end\"", &format!("{ms:.1} ms"));
    }
    text(svg, (CLIENT + SERVER) / 2, y - 6, "text-anchor=\"middle\"", &row.label);
    let (from, to, back) = match row.from_client {
        true => (CLIENT + 3, SERVER - 3, SERVER - 11),
        false => (SERVER - 3, CLIENT + 3, CLIENT + 11),
    };
    let (class, up, down) = (if row.lost() { "trouble" } else { class(row.sort) }, y - 5, y + 5);
    let head = match row.lost() {
        true => format!("M{to} {up}L{back} {down}M{to} {down}L{back} {up}"),
        false => format!("M{back} {up}L{to} {y}L{back} {down}"),
    };
    add(svg, format_args!("<path class=\"arrow {class}\" d=\"M{from} {y}H{to}{head}\"/>"));
    let words: Vec<&str> = row.words().chain(row.lab()).collect();
    let step = row.step().unwrap_or_default();
    // One line is in the middle, two are above each other.
    let (first, second) = if words.is_empty() || step.is_empty() { (y + 4, y + 4) } else { (y - 4, y + 12) };
    text(svg, WORDS, first, "", &words.join("  "));
    text(svg, WORDS, second, "class=\"title\"", step);
}

pub(crate) fn class(sort: Sort) -> &'static str {
    match sort {
        Sort::Connection => "connection",
        Sort::Send => "send",
        Sort::Write => "write",
        Sort::Read => "read",
        Sort::Notable => "notable",
        Sort::Acknowledge => "acknowledge",
        Sort::Trouble => "trouble",
    }
}

/// Text as XML takes it, which allows no control characters; spaces stay as many as they are.
pub(crate) fn escape(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace("  ", " \u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(comment: Option<&str>) -> Row {
        Row {
            frame: 10,
            ms: Some(1.25),
            client: [10, 47, 91, 2].into(),
            server: [10, 47, 91, 1].into(),
            from_client: true,
            label: "RDMA Write Only".into(),
            sort: Sort::Write,
            psn: Some("psn +1".into()),
            details: vec!["len 60".into()],
            comment: comment.map(String::from),
        }
    }

    #[test]
    fn the_picture_says_what_the_row_says() {
        let svg = draw(&[row(Some("Step 8: A & B write [client: ibv_post_send]"))]);
        for part in ["client 10.47.91.2", "server 10.47.91.1", ">10<", "1.2 ms", "psn +1 \u{a0}len 60", "arrow write"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(svg.contains(">Step 8: A &amp; B write<"));
        assert!(svg.contains("1 packet. 10 client to server: RDMA Write Only."));
    }

    #[test]
    fn the_arrow_points_to_the_receiver() {
        let answer = Row { from_client: false, ..row(None) };
        assert!(draw(&[row(None)]).contains("M125 56H449"));
        assert!(draw(&[answer]).contains("M449 56H125"));
    }

    #[test]
    fn a_foreign_comment_is_no_step() {
        assert_eq!(row(Some("my own comment")).step(), None);
        assert_eq!(row(None).step(), None);
        assert!(!draw(&[]).contains("arrow "));
    }
}
