//! `--print-job`: a load as a Kubernetes Indexed Job, with the Service that gives part 1 its name.

use std::env;
use std::fmt::Write as _;

use super::ssh::without_own_options;
use crate::options::Arguments;

/// The name of the Job, of the Service and of the Secret.
const NAME: &str = "bolide-load";

/// The YAML, if it is asked for.
pub(crate) fn printed(arguments: &Arguments) -> Result<Option<String>, String> {
    let asked = &arguments.parts;
    let Some(hosts) = asked.hosts.filter(|_| asked.print_job) else { return Ok(None) };
    if !(1..=1000).contains(&hosts) {
        return Err(format!("--hosts {hosts}: must be from 1 to 1000"));
    }
    let image = asked.image.as_deref().unwrap_or("bolide");
    let words = without_own_options(env::args_os().skip(1))?;
    Ok(Some(yaml(hosts, image, &words)))
}

/// A text as YAML: what JSON quotes, YAML reads.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

fn yaml(hosts: u64, image: &str, words: &[String]) -> String {
    let mut text = format!(
        "\
# The parts need a secret in common, once:
#   kubectl create secret generic {NAME} --from-literal=secret=\"$(openssl rand -hex 32)\"
apiVersion: v1
kind: Service
metadata:
  name: {NAME}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    batch.kubernetes.io/job-name: {NAME}
  ports:
    - name: rendezvous
      port: 7117
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {NAME}
spec:
  completionMode: Indexed
  completions: {hosts}
  parallelism: {hosts}
  backoffLimit: 0
  template:
    spec:
      subdomain: {NAME}
      restartPolicy: Never
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              batch.kubernetes.io/job-name: {NAME}
      containers:
        - name: load
          image: {image}
          env:
            - name: BOLIDE_PARTS
              value: \"{hosts}\"
            - name: BOLIDE_RENDEZVOUS
              value: {NAME}-0.{NAME}:7117
            - name: BOLIDE_SECRET
              valueFrom:
                secretKeyRef:
                  name: {NAME}
                  key: secret
          args:
",
        image = quoted(image)
    );
    for word in words {
        // Writing to a string does not fail.
        let _ = writeln!(text, "            - {}", quoted(word));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a key that occurs once.
    fn value<'a>(text: &'a str, key: &str) -> &'a str {
        let mut values = text.lines().filter_map(|line| {
            line.trim_start().trim_start_matches("- ").strip_prefix(key)?.strip_prefix(": ")
        });
        let value = values.next().unwrap_or_else(|| panic!("no {key} in {text}"));
        assert_eq!(values.next(), None, "{key}");
        value
    }

    #[test]
    fn a_job_has_its_parts_and_their_meeting_place() {
        let words = ["load", "-H", "x: \"y\"\n- z", "http://target/"].map(str::to_owned);
        let text = yaml(4, "registry.example/bolide:1", &words);
        for (key, expected) in [
            ("completionMode", "Indexed"),
            ("completions", "4"),
            ("parallelism", "4"),
            ("clusterIP", "None"),
            ("restartPolicy", "Never"),
            ("subdomain", NAME),
            ("image", "\"registry.example/bolide:1\""),
            ("key", "secret"),
        ] {
            assert_eq!(value(&text, key), expected);
        }
        assert!(text.contains("value: bolide-load-0.bolide-load:7117\n"));
        let end = "          args:\n            - \"load\"\n            - \"-H\"\n            - \"x: \\\"y\\\"\\n- z\"\n            - \"http://target/\"\n";
        assert!(text.ends_with(end), "{text}");
        assert!(!text.contains('\t'));
    }
}
