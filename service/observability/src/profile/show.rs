//! A profile as a table, as a bar and as JSON.

use std::fmt::Write;

use super::snapshot::ProfileSnapshot;

/// How wide the bar of a whole request is, in characters.
const BAR_COLUMNS: usize = 78;

/// How wide the bar of the largest stage is in the table, in characters.
const SHARE_COLUMNS: f64 = 40.0;

impl ProfileSnapshot {
    /// A table of the stages, and a bar in which each has its share.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "CPU time by stage: {} turns with {} requests were measured",
            self.turns, self.requests
        );
        // Writing to a string never fails.
        if self.one_in > 0 {
            let _ = write!(text, ", one turn in {}", self.one_in);
        }
        // Those whose stages miss the thread's own clock by more (the event loop's meter has the bound).
        let _ =
            writeln!(text, "; {} dropped, in which they are off by more than 3 %", self.dropped);
        if self.turns == 0 {
            return text;
        }
        let most = self.stages.iter().map(|stage| self.share(stage)).fold(0.0, f64::max);
        let _ = writeln!(text, "  {:<10}{:>12}{:>9}", "stage", "us/request", "share");
        for stage in &self.stages {
            let (share, us) = (self.share(stage), self.per_request_us(stage));
            let bar = "#".repeat((share / most.max(1e-9) * SHARE_COLUMNS).round() as usize);
            let line =
                format!("  {:<10}{us:>12.3}{:>7.1} %  {bar}", stage.stage.name(), share * 100.0);
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ = writeln!(text, "  {:<10}{:>12.3}", "sum", self.of_request_us(self.spent()));
        let _ = writeln!(text, "  {}", self.bar());
        let _ = writeln!(
            text,
            "  By the threads' own clocks: {:.3} us a request. The stages, and {:.3} us for reading the \
             clock, are {:.1} % of it.",
            self.of_request_us(self.cpu),
            self.of_request_us(self.reading),
            self.accounted() * 100.0
        );
        text
    }

    /// One line in which each stage is as wide as its share; its name stands in it as far as it fits.
    fn bar(&self) -> String {
        let mut bar = String::from("|");
        let (mut passed, mut drawn) = (0.0, 0);
        for stage in &self.stages {
            passed += self.share(stage);
            let until = (passed * BAR_COLUMNS as f64).round() as usize;
            // The last column is the border; what has no room for a letter stands in the next one.
            let room = until.saturating_sub(drawn + 1);
            if room == 0 {
                continue;
            }
            let name = stage.stage.name();
            let named = &name[..name.len().min(room)];
            let _ = write!(bar, "{named:-<room$}|");
            drawn = until;
        }
        bar
    }

    /// The same as one JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = format!(
            "{{\"one_in\":{},\"turns\":{},\"dropped_turns\":{},\"requests\":{},\"cpu_ns\":{},\
             \"reading_ns\":{},\"accounted\":{:.4},\"stages\":[",
            self.one_in,
            self.turns,
            self.dropped,
            self.requests,
            self.cpu.as_nanos(),
            self.reading.as_nanos(),
            self.accounted()
        );
        for (number, stage) in self.stages.iter().enumerate() {
            let _ = write!(
                text,
                "{}{{\"stage\":\"{}\",\"ns\":{},\"us_per_request\":{:.4},\"share\":{:.4}}}",
                if number == 0 { "" } else { "," },
                stage.stage.name(),
                stage.spent.as_nanos(),
                self.per_request_us(stage),
                self.share(stage)
            );
        }
        text + "]}"
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn snapshot() -> ProfileSnapshot {
        let mut snapshot = ProfileSnapshot {
            one_in: 64,
            turns: 10,
            dropped: 1,
            requests: 100,
            cpu: Duration::from_micros(520),
            reading: Duration::from_micros(15),
            ..ProfileSnapshot::default()
        };
        for (stage, us) in snapshot.stages.iter_mut().zip([100, 0, 50, 5, 20, 75, 0, 200, 50]) {
            stage.spent = Duration::from_micros(us);
        }
        snapshot
    }

    #[test]
    fn the_table() {
        let expected = "\
CPU time by stage: 10 turns with 100 requests were measured, one turn in 64; 1 dropped, in which they are off by more than 3 %
  stage       us/request    share
  receive          1.000   20.0 %  ####################
  tls-open         0.000    0.0 %
  parse            0.500   10.0 %  ##########
  route            0.050    1.0 %  #
  handler          0.200    4.0 %  ####
  encode           0.750   15.0 %  ###############
  tls-seal         0.000    0.0 %
  send             2.000   40.0 %  ########################################
  loop             0.500   10.0 %  ##########
  sum              5.000
  |receive--------|parse-|han|encode-----|send--------------------------|loop---|
  By the threads' own clocks: 5.200 us a request. The stages, and 0.150 us for reading the clock, are 99.0 % of it.
";
        assert_eq!(snapshot().table(), expected);
        let nothing = ProfileSnapshot::default().table();
        assert_eq!(nothing.lines().count(), 1, "{nothing}");
    }

    #[test]
    fn json_has_every_stage_and_what_they_are_held_against() {
        let json = snapshot().json();
        assert!(
            json.starts_with("{\"one_in\":64,\"turns\":10,\"dropped_turns\":1,\"requests\":100,")
        );
        assert!(json.contains("\"accounted\":0.9904"), "{json}");
        let send = "{\"stage\":\"send\",\"ns\":200000,\"us_per_request\":2.0000,\"share\":0.4000}";
        assert!(json.contains(send), "{json}");
        assert_eq!(json.matches("\"stage\":").count(), 9);
    }
}
