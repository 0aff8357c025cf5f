//! Numbers gathered by name, and written as the format wants them: all of one name together.

use millrace_observe_api::Distribution;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashMap;
use std::fmt;

pub(super) type Labels = Vec<(&'static str, String)>;

/// Numbers of one name, each with its labels.
pub(super) type Samples = Vec<(Labels, u64)>;

/// All numbers by name. Names without numbers are left out.
#[derive(Debug, Default)]
pub(super) struct Families {
    list: Vec<Family>,
    /// Where in the list each name is.
    places: HashMap<String, usize>,
    /// The switch that numbers are of from now on, as their first label.
    pub(super) switch: Option<String>,
}

#[derive(Debug)]
struct Family {
    name: String,
    help: String,
    unit: Option<Unit>,
    kind: MetricType,
    samples: Vec<(Labels, Value)>,
}

#[derive(Debug)]
enum Value {
    Count(u64),
    Number(u64),
    Seconds(f64),
    Info(Labels),
    Ranges { sum: f64, count: u64, buckets: Vec<(f64, u64)> },
}

impl Families {
    pub(super) fn counters(&mut self, name: &str, help: &str, unit: Option<Unit>, samples: Samples) {
        self.add((name, help), unit, MetricType::Counter, samples, Value::Count);
    }

    pub(super) fn gauges(&mut self, name: &str, help: &str, unit: Option<Unit>, samples: Samples) {
        self.add((name, help), unit, MetricType::Gauge, samples, Value::Number);
    }

    pub(super) fn seconds(&mut self, name: &str, help: &str, kind: MetricType, samples: Vec<(Labels, f64)>) {
        self.add((name, help), Some(Unit::Seconds), kind, samples, Value::Seconds);
    }

    pub(super) fn info(&mut self, name: &str, help: &str, labels: &[(&'static str, &str)]) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.add((name, help), None, MetricType::Info, vec![(vec![], labels)], Value::Info);
    }

    /// The ranges that end at these powers of two, divided; what is above is in the last one.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        numbers: &Distribution,
        powers: std::ops::Range<usize>,
        divisor: f64,
    ) {
        let up_to = |power: usize| numbers.ranges.iter().take(power + 1).sum::<u64>();
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for power in powers {
            let all = up_to(power);
            buckets.push(((1u64 << power) as f64 / divisor, all - below));
            below = all;
        }
        buckets.push((f64::INFINITY, numbers.count.saturating_sub(below)));
        let ranges = Value::Ranges { sum: numbers.sum as f64 / divisor, count: numbers.count, buckets };
        self.add((name, help), unit, MetricType::Histogram, vec![(vec![], ranges)], |ranges| ranges);
    }

    /// Adds numbers to those of their name.
    fn add<T>(
        &mut self,
        (name, help): (&str, &str),
        unit: Option<Unit>,
        kind: MetricType,
        samples: Vec<(Labels, T)>,
        value: impl Fn(T) -> Value,
    ) {
        if samples.is_empty() {
            return;
        }
        let at = match self.places.get(name) {
            Some(at) => *at,
            None => {
                let (name, help) = (name.to_owned(), help.to_owned());
                self.places.insert(name.clone(), self.list.len());
                self.list.push(Family { name, help, unit, kind, samples: Vec::new() });
                self.list.len() - 1
            }
        };
        let switch = &self.switch;
        self.list[at].samples.extend(samples.into_iter().map(|(mut labels, number)| {
            if let Some(switch) = switch {
                labels.insert(0, ("switch", switch.clone()));
            }
            (labels, value(number))
        }));
    }

    pub(super) fn into_text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, unit, kind, samples } in &self.list {
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), *kind)?;
            for (labels, value) in samples {
                match labels.is_empty() {
                    true => value.write(&mut family, *kind)?,
                    false => value.write(&mut family.encode_family(labels)?, *kind)?,
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn write(&self, metric: &mut MetricEncoder<'_>, kind: MetricType) -> fmt::Result {
        const NO_EXAMPLE: Option<&Exemplar<NoLabelSet, f64>> = None;
        match self {
            Value::Count(count) => metric.encode_counter::<NoLabelSet, u64, f64>(count, NO_EXAMPLE),
            Value::Number(number) => metric.encode_gauge(number),
            Value::Seconds(seconds) if matches!(kind, MetricType::Counter) => {
                metric.encode_counter(seconds, NO_EXAMPLE)
            }
            Value::Seconds(seconds) => metric.encode_gauge(seconds),
            Value::Info(labels) => metric.encode_info(labels),
            Value::Ranges { sum, count, buckets } => {
                metric.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
            }
        }
    }
}
