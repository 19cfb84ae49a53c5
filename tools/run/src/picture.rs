//! What all pictures in SVG have: words for who cannot see them, colors for light and dark, text that can be selected.

use crate::look::printable;

/// Colors by class: for light, then for dark.
const STYLE: &str = "\
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328}
.title{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
.quiet,.title{fill:#59636e}.side{font-weight:bold}.back{fill:#ffffff}.life{stroke:#d1d9e0;stroke-width:2}
.arrow{stroke-width:1.6;fill:none}.connection{stroke:#0e7490}.send{stroke:#1a7f37}.write{stroke:#0969da}
.read{stroke:#8250df}.notable{stroke:#9a6700}.acknowledge{stroke:#818b98}.trouble{stroke:#cf222e}
tspan{font-weight:bold}.slow{fill:#8a1f8f}.fast{fill:#0e7490}.data{fill:#1a7f37}.info{fill:#0969da}.err{fill:#cf222e}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet,.title{fill:#9198a1}.back{fill:#0d1117}
.life{stroke:#3d444d}.connection{stroke:#39c5cf}.send{stroke:#3fb950}.write{stroke:#4493f8}.read{stroke:#ab7df8}
.notable{stroke:#d29922}.acknowledge{stroke:#9198a1}.trouble{stroke:#f85149}
.slow{fill:#e29bf0}.fast{fill:#39c5cf}.data{fill:#3fb950}.info{fill:#4493f8}.err{fill:#f85149}}";

/// The beginning of a picture of this width and height in pixels: what it is, and shows, in words. `style` comes behind the style that
/// all have.
pub(crate) fn begin((width, height): (usize, usize), title: &str, words: &str, style: &str) -> String {
    let (title, words) = (escape(title), escape(words));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">{title}</title>\n\
         <desc id=\"desc\">{words}</desc>\n<style>\n{STYLE}\n{style}</style>\n\
         <rect class=\"back\" width=\"{width}\" height=\"{height}\"/>\n"
    )
}

pub(crate) fn text(svg: &mut String, x: usize, y: usize, attributes: &str, words: &str) {
    if !words.is_empty() {
        *svg += &format!("<text x=\"{x}\" y=\"{y}\" {attributes}>{}</text>\n", escape(words));
    }
}

/// Text as XML takes it, which allows no control characters; spaces stay as many as they are.
pub(crate) fn escape(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace("  ", " \u{a0}")
}
