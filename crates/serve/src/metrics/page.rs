//! What metrics are written to.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Unit;

pub(super) struct Page<'a>(pub(super) DescriptorEncoder<'a>);

impl Page<'_> {
    pub(super) fn count(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let name = format!("onefold_{name}");
        count(&mut self.0.encode_descriptor(&name, help, None, MetricType::Counter)?, value)
    }

    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        value: f64,
    ) -> fmt::Result {
        let name = format!("onefold_{name}");
        self.0.encode_descriptor(&name, help, unit, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// Several counters of one name.
    pub(super) fn counts<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, &'l str); N], u64)>,
    ) -> fmt::Result {
        let name = format!("onefold_{name}");
        let mut family = self.0.encode_descriptor(&name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            count(&mut family.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

fn count(encoder: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_counter(&value, None::<&Exemplar<NoLabelSet, f64>>)
}
