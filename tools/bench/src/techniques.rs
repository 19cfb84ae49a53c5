//! The techniques of lesson 10: what each brings, beside the plain way.

use crate::figure::{spread, Figure};
use crate::tools::{field, numbers, optimized, root, take_turns, Contender, Effort};
use anyhow::Result;
use plotters::prelude::*;

/// The one way whose program tells what it does: what the log costs.
const LOGGED: &str = "depth 1, and a log line for each step";

/// What, its options, how many requests, and the plain way that it stands beside.
const WAYS: [(&str, &str, usize, &str); 16] = [
    ("depth 1", "", 500, ""),
    ("depth 2", "--depth 2", 500, "depth 1"),
    ("depth 4", "--depth 4", 500, "depth 1"),
    ("depth 8", "--depth 8", 500, "depth 1"),
    ("depth 16", "--depth 16", 1000, "depth 1"),
    ("depth 64", "--depth 64", 1000, "depth 1"),
    ("depth 16, batches of 16", "--depth 16 --batch 16", 1000, "depth 16"),
    ("depth 16, one in 16 signaled", "--depth 16 --signal-every 16", 1000, "depth 16"),
    ("depth 16, both", "--depth 16 --batch 16 --signal-every 16", 1000, "depth 16"),
    ("depth 16, inline", "--depth 16 --inline", 1000, "depth 16"),
    ("depth 1, asleep", "--wait sleep", 500, "depth 1"),
    ("depth 1, hybrid", "--wait hybrid", 500, "depth 1"),
    ("depth 1, memory registered for each", "--mrs each", 500, "depth 1"),
    (LOGGED, "", 100, "depth 1"),
    ("SEND, depth 16, 64 receives with credits", "--op send --depth 16 --receives 64 --credits", 1000, "depth 16"),
    ("SEND, depth 16, 4 receives without credits", "--op send --depth 16 --receives 4", 12, "depth 16"),
];

pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let lesson = optimized("lesson-10", effort)?;
    let contender = |(what, options, count, _): &(&str, &str, usize, &str)| {
        let log = if *what == LOGGED { "info" } else { "off" };
        let client = format!("env RUST_LOG={log} {lesson} client -a server --count {} {options}", effort.count(*count));
        Contender { name: (*what).into(), server: None, client }
    };
    let contenders: Vec<Contender> = WAYS.iter().map(contender).collect();
    let server = |rounds| format!("env RUST_LOG=off {lesson} server -n {}", WAYS.len() * rounds);
    let said = take_turns("bench-techniques", server, &contenders, effort)?;
    let rate = |what: &str| numbers(&said, what, |text| field(text, "requests_per_s"));
    let figure = |(what, .., plain): &(&str, &str, usize, &str)| {
        let figure = Figure::new(what, "requests/s", rate(what)?);
        Ok(if plain.is_empty() { figure } else { figure.beside(plain, rate(plain)?) })
    };
    let figures = WAYS.iter().map(figure).collect::<Result<Vec<_>>>()?;
    if !effort.smoke {
        let median =
            |what: &str, name: &str| -> Result<f64> { Ok(spread(&numbers(&said, what, |text| field(text, name))?).0) };
        let points = |name: &str| -> Result<Vec<(f64, f64)>> {
            [1, 2, 4, 8, 16, 64]
                .iter()
                .map(|depth| Ok((f64::from(*depth), median(&format!("depth {depth}"), name)?)))
                .collect()
        };
        let svg =
            plot(&points("requests_per_s")?, &points("median_us")?).map_err(|error| anyhow::anyhow!("{error}"))?;
        std::fs::write(root()?.join("docs/images/10_depth.svg"), svg)?;
    }
    Ok(figures)
}

/// Throughput and latency over the depth, each as a multiple of what it is at depth 1.
fn plot(rates: &[(f64, f64)], latencies: &[(f64, f64)]) -> Result<String, Box<dyn std::error::Error>> {
    let multiple = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let one = points.first().map_or(1.0, |(_, value)| *value);
        points.iter().map(|(depth, value)| (*depth, value / one)).collect()
    };
    let lines = [("throughput", multiple(rates), BLUE), ("median latency", multiple(latencies), RED)];
    let most = lines.iter().flat_map(|(_, points, _)| points).fold(1.0, |most: f64, (_, value)| most.max(*value));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (640, 320)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d((1.0..64.0).log_scale().base(2.0), (0.5..most * 1.2).log_scale().base(2.0))?;
        let whole = |number: &f64| format!("{number:.0}");
        let mesh = &mut chart.configure_mesh();
        mesh.x_desc("requests under way")
            .y_desc("times depth 1")
            .x_label_formatter(&whole)
            .disable_x_mesh()
            .max_light_lines(0)
            .draw()?;
        for (name, points, color) in lines {
            let line = LineSeries::new(points, color.stroke_width(2)).point_size(3);
            let legend = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color);
            chart.draw_series(line)?.label(name).legend(legend);
        }
        chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).draw()?;
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_lines_are_drawn() {
        let svg = super::plot(&[(1.0, 10.0), (16.0, 40.0)], &[(1.0, 5.0), (16.0, 50.0)]).unwrap_or_default();
        assert!(svg.matches("<polyline").count() >= 2 && svg.contains("throughput"), "{svg}");
    }
}
