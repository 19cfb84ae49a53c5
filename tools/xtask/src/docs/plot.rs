//! The loss of a training, round by round, as the server of a recorded run told it.

use super::sources::Sources;
use anyhow::{ensure, Context, Result};
use plotters::prelude::*;

/// The picture, and what it shows in words.
///
/// # Errors
/// The run tells of no rounds.
pub fn loss(sources: &Sources, name: &str) -> Result<(String, String)> {
    let lines = sources.lines(&format!("captures/{name}.pcapng"), "server")?;
    let losses: Vec<(f64, f64)> = lines.iter().filter_map(|line| round(&line.text)).collect();
    ensure!(losses.len() > 1, "{name} has no rounds to draw");
    let svg = draw(&losses).map_err(|error| anyhow::anyhow!("{error}")).context("cannot draw the loss")?;
    let words: Vec<String> = losses.iter().map(|(round, loss)| format!("{round}: {loss}")).collect();
    Ok((svg, format!("The loss over the rounds, on a logarithmic scale: {}", words.join(", "))))
}

/// `round 3: loss 0.191443 from workers 1 2 3 …`
fn round(text: &str) -> Option<(f64, f64)> {
    let (round, rest) = text.strip_prefix("round ")?.split_once(": loss ")?;
    Some((round.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
}

fn draw(losses: &[(f64, f64)]) -> Result<String, Box<dyn std::error::Error + '_>> {
    let mut svg = String::new();
    let (most, least) =
        losses.iter().fold((0.0, f64::MAX), |(most, least), (_, loss)| (loss.max(most), loss.min(least)));
    let last = losses.last().map_or(1.0, |(round, _)| *round);
    {
        let area = SVGBackend::with_string(&mut svg, (640, 300)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(1.0..last, (least / 2.0..most * 2.0).log_scale())?;
        let whole = |round: &f64| format!("{round:.0}");
        let mesh = &mut chart.configure_mesh();
        mesh.x_desc("round").y_desc("loss").x_labels(losses.len()).x_label_formatter(&whole).disable_x_mesh().draw()?;
        chart.draw_series(LineSeries::new(losses.iter().copied(), BLUE.stroke_width(2)).point_size(3))?;
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_read_and_drawn() {
        assert_eq!(round("round 3: loss 0.25 from workers 1 2"), Some((3.0, 0.25)));
        assert_eq!((round("round 3: worker 1 is late, 0.5 s"), round("weights: [1]")), (None, None));
        let svg = draw(&[(1.0, 4.0), (2.0, 0.5), (3.0, 0.01)]).unwrap();
        assert!(svg.contains("<polyline") && svg.matches("<circle").count() == 3, "{svg}");
    }
}
