//! From figures to places on a plot.

/// A range of figures, laid out over a range of places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    is_log: bool,
}

impl Scale {
    /// Equal differences are equal distances.
    pub(super) fn linear(from: f64, to: f64, start: f64, end: f64) -> Self {
        Self { from, to: to.max(from + f64::EPSILON), start, end, is_log: false }
    }

    /// Equal ratios are equal distances.
    pub(super) fn log(from: f64, to: f64, start: f64, end: f64) -> Self {
        let from = from.max(1e-9);
        Self { from: from.log10(), to: to.max(from * 1.001).log10(), start, end, is_log: true }
    }

    /// Returns whether equal ratios are equal distances.
    pub(super) fn is_log(&self) -> bool {
        self.is_log
    }

    /// The place of a figure.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.is_log { value.max(1e-9).log10() } else { value };
        let share = (value - self.from) / (self.to - self.from);
        self.start + share.clamp(-0.05, 1.05) * (self.end - self.start)
    }

    /// The place of a figure, or of the end of the range that is nearer to it; whether the figure is within the range.
    pub(super) fn within(&self, value: f64) -> (f64, bool) {
        let place = self.at(value);
        let (low, high) = (self.start.min(self.end), self.start.max(self.end));
        let nearest = place.clamp(low, high);
        (nearest, (place - nearest).abs() < 1e-6)
    }

    /// Round figures within the range.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.is_log {
            let first = self.from.floor() as i32;
            let last = self.to.ceil() as i32;
            let steps: &[f64] = match self.to - self.from {
                decades if decades < 0.7 => &[1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0],
                _ if last - first <= 3 => &[1.0, 2.0, 5.0],
                _ => &[1.0],
            };
            let all = (first..=last)
                .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
            return all
                .filter(|tick| {
                    let place = tick.log10();
                    place >= self.from - 1e-9 && place <= self.to + 1e-9
                })
                .collect();
        }
        let step = step((self.to - self.from) / 4.0);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|count| count as f64 * step).collect()
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-12).log10().floor());
    let found = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= least * 0.999);
    found.unwrap_or(10.0) * power
}

/// A tick as people read it: `0.5`, `20`, `250k`.
pub(super) fn tick_text(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let texts =
            |scale: Scale| -> Vec<String> { scale.ticks().into_iter().map(tick_text).collect() };
        assert_eq!(texts(Scale::linear(0.0, 8.3, 0.0, 1.0)), ["0", "5"]);
        assert_eq!(texts(Scale::linear(0.0, 4.1, 0.0, 1.0)), ["0", "2", "4"]);
        assert_eq!(
            texts(Scale::log(90.0, 6000.0, 0.0, 1.0)),
            ["100", "200", "500", "1k", "2k", "5k"]
        );
        assert_eq!(texts(Scale::log(1.0, 1e6, 0.0, 1.0)).len(), 7);
        assert_eq!(texts(Scale::log(0.7, 2.2, 0.0, 1.0)), ["0.8", "1", "1.2", "1.5", "2"]);
    }

    #[test]
    fn places_follow_the_figures() {
        let scale = Scale::log(1.0, 100.0, 0.0, 200.0);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        let scale = Scale::linear(0.0, 10.0, 50.0, 0.0);
        assert!((scale.at(5.0) - 25.0).abs() < 1e-9);
        assert!(scale.at(1e9) >= -3.0, "nothing leaves the picture by far");
        assert_eq!(scale.within(10.0), (0.0, true));
        assert_eq!(scale.within(11.0), (0.0, false));
    }
}
