//! Several sources as one stream, at a ratio of bytes that any prefix keeps.

use onefold_config::size_text;
use onefold_units::convert::u64_from;
use serde_json::{Value, json};

use super::block::Block;
use super::feed::{Feed, refuse};
use super::{Facts, MappedEntries, PackedReq};
use crate::StudyError;
use crate::file::{Input, Source, Study, WarmUp, Workload, scaled};

/// What is known of a workload before it is run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What determines its requests.
    pub(crate) identity: Value,
    /// What determines its warm-up, if it has one that other workloads can share.
    pub(crate) warm_up: Option<String>,
    /// Bytes of the mix, warm-up not counted, if every source says what it has.
    pub(crate) bytes: Option<u64>,
}

impl Plan {
    /// Of a workload that is no mix.
    pub(crate) const fn none() -> Self {
        Self { identity: Value::Null, warm_up: None, bytes: None }
    }
}

/// One source in the mix.
struct Part {
    feed: Feed,
    share: u64,
    /// Bytes read and written in the mix so far.
    sent: u64,
    /// Bytes it sends first, by itself.
    warm_up: WarmUp,
}

/// The requests of a workload.
///
/// First every source sends its warm-up, one after the other. Then the next request always comes from
/// the source that is furthest behind its share of the bytes. The mix ends with the first source
/// that has no more: nothing runs alone at the end.
pub(crate) struct Mix {
    parts: Vec<Part>,
    entry: u64,
    /// The source whose warm-up is being sent; all are done if there is none such.
    warming: usize,
    warmed: u64,
    /// Bytes after which the mix ends.
    end: u64,
    /// Bytes read and written in the mix so far.
    pub(crate) sent: u64,
    /// Requests so far, with the warm-up.
    pub(crate) requests: u64,
}

/// Where a stream stands after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// More of the same follows.
    More,
    /// The warm-up ends here.
    Warm,
    /// The stream ends here.
    End,
}

impl Mix {
    /// Opens all sources and checks that they fit beside each other.
    pub(crate) fn open(
        study: &Study,
        workload: &Workload,
        scale: f64,
    ) -> Result<(Self, Plan), StudyError> {
        let mut parts = Vec::new();
        let mut facts = Vec::new();
        for (source, tenant) in workload.sources.iter().zip(0..) {
            let (feed, known) = Feed::open(study, workload, source, tenant)?;
            parts.push(Part { feed, share: source.share, sent: 0, warm_up: source.warm_up });
            facts.push(known);
        }
        overlaps(study, workload, &facts)?;
        let mut mix = Self {
            parts,
            entry: u64::from(study.entry_bytes),
            warming: 0,
            warmed: 0,
            end: u64::MAX,
            sent: 0,
            requests: 0,
        };
        let limited = mix.limited(workload, &facts);
        if scale < 1.0 {
            let whole = match limited {
                Some(bytes) => bytes,
                None => Self::open(study, workload, 1.0)?.0.count()?,
            };
            mix.end = scaled(whole, scale);
        } else if let Some(bytes) = limited {
            mix.end = bytes;
        }
        let plan = Plan {
            identity: identity(workload, &facts, scale),
            warm_up: warm_up(workload, &facts),
            bytes: (mix.end < u64::MAX).then_some(mix.end),
        };
        Ok((mix, plan))
    }

    /// Whether the warm-up is still to come, or being sent.
    pub(crate) const fn is_warming(&self) -> bool {
        self.warming < self.parts.len()
    }

    /// Goes on where the warm-up of `other` ended, which is equal to its own: their plans say so.
    /// The sources that have none were not read yet.
    pub(crate) fn go_on_after(&mut self, other: &Self) {
        for (part, warmed) in self.parts.iter_mut().zip(&other.parts) {
            if part.warm_up != WarmUp::NONE {
                // Plans with a trace to copy have no warm-up to share.
                part.feed = warmed.feed.copy().expect("only generators share a warm-up");
            }
        }
        (self.warming, self.requests) = (self.parts.len(), other.requests);
    }

    /// Bytes of the mix when the first source reaches its limit, if any has one.
    fn limited(&self, workload: &Workload, facts: &[Facts]) -> Option<u64> {
        let all: u128 = self.parts.iter().map(|part| u128::from(part.share)).sum();
        let ends = workload.sources.iter().zip(facts).filter_map(|(source, facts)| {
            let bytes = source.limit.into_iter().chain(facts.bytes).min()?;
            let mix = u128::from(bytes) * all / u128::from(source.share);
            Some(u64::try_from(mix).unwrap_or(u64::MAX))
        });
        ends.min()
    }

    /// Bytes of the whole mix, by running through it.
    fn count(mut self) -> Result<u64, StudyError> {
        loop {
            let mut block = Block::default();
            if self.fill(&mut block, None)? == State::End {
                return Ok(self.sent);
            }
        }
    }

    /// Fills a block as far as it may go.
    pub(crate) fn fill(
        &mut self,
        block: &mut Block,
        mut map: Option<&mut MappedEntries>,
    ) -> Result<State, StudyError> {
        let before = block.len();
        let state = loop {
            if block.is_full() {
                break State::More;
            }
            let warming = self.is_warming();
            let next = if warming { self.next_of_warm_up()? } else { self.next_of_mix()? };
            match next {
                Some(request) => block.push(request, map.as_deref_mut()),
                None if warming => break State::Warm,
                None => break State::End,
            }
        };
        self.requests += u64_from(block.len() - before);
        Ok(state)
    }

    /// The next request before anything is counted.
    fn next_of_warm_up(&mut self) -> Result<Option<PackedReq>, StudyError> {
        while let Some(part) = self.parts.get_mut(self.warming) {
            let next = match part.warm_up {
                WarmUp::Bytes(bytes) if self.warmed < bytes => part.feed.next()?,
                WarmUp::Bytes(_) => None,
                WarmUp::Load => part.feed.next_of_load(),
            };
            if let Some(request) = next {
                self.warmed += u64::from(request.traffic()) * self.entry;
                return Ok(Some(request));
            }
            (self.warming, self.warmed) = (self.warming + 1, 0);
        }
        Ok(None)
    }

    #[inline]
    fn next_of_mix(&mut self) -> Result<Option<PackedReq>, StudyError> {
        if self.sent >= self.end {
            return Ok(None);
        }
        let mut behind = 0;
        for at in 1..self.parts.len() {
            let (a, b) = (&self.parts[at], &self.parts[behind]);
            // a.sent / a.share < b.sent / b.share; the first source wins a tie.
            let product = |sent, share| u128::from(sent) * u128::from(share);
            if product(a.sent, b.share) < product(b.sent, a.share) {
                behind = at;
            }
        }
        let part = &mut self.parts[behind];
        let Some(request) = part.feed.next()? else { return Ok(None) };
        let bytes = u64::from(request.traffic()) * self.entry;
        part.sent += bytes;
        self.sent += bytes;
        Ok(Some(request))
    }
}

fn overlaps(study: &Study, workload: &Workload, facts: &[Facts]) -> Result<(), StudyError> {
    let sources = workload.sources.iter().zip(facts);
    let mut ranges: Vec<_> = sources
        .map(|(source, facts)| {
            (source.offset, source.offset.saturating_add(source.size.unwrap_or(facts.end)), source)
        })
        .collect();
    ranges.sort_by_key(|(start, end, _)| (*start, *end));
    for (_, end, source) in &ranges {
        if *end > study.device_bytes {
            let [end, device] = [*end, study.device_bytes].map(size_text);
            let problem = format!(
                "its addresses end at offset + size = {end}, expected at most the device of {device}"
            );
            return Err(refuse(workload, source, problem));
        }
    }
    for pair in ranges.windows(2) {
        let [(_, end, before), (start, _, source)] = pair else { continue };
        if end > start {
            let [start, end] = [*start, *end].map(size_text);
            let problem = format!(
                "its addresses start at {start}, expected at least {end}, where those of source {} \
                 end; change offset or size",
                before.name
            );
            return Err(refuse(workload, source, problem));
        }
    }
    Ok(())
}

/// What determines the requests of the workload, names aside.
fn identity(workload: &Workload, facts: &[Facts], scale: f64) -> Value {
    let source = |(source, facts): (&Source, &Facts)| {
        json!({"input": facts.identity, "share": source.share, "offset": source.offset,
               "limit": source.limit, "warm_up": bytes_or_load(source.warm_up),
               "target": source.is_target})
    };
    let sources: Vec<Value> = workload.sources.iter().zip(facts).map(source).collect();
    json!({"sources": sources, "scale": scale})
}

/// What determines the requests of the warm-up and what bounds make of them. Shares and limits do
/// not: they hold for the mix. `None` if there is no warm-up, or one of a trace, which is not copied.
fn warm_up(workload: &Workload, facts: &[Facts]) -> Option<String> {
    let mut warming = Vec::new();
    for ((source, facts), tenant) in workload.sources.iter().zip(facts).zip(0_u8..) {
        match (source.warm_up, &source.input) {
            (WarmUp::NONE, _) => {}
            (_, Input::Trace { .. }) => return None,
            (length, Input::Workload(_)) => warming
                .push(json!({"tenant": tenant, "input": facts.identity, "offset": source.offset,
                       "warm_up": bytes_or_load(length)})),
        }
    }
    let identity = json!({"sources": warming, "target": workload.target()});
    (!warming.is_empty()).then(|| identity.to_string())
}

fn bytes_or_load(warm_up: WarmUp) -> Value {
    match warm_up {
        WarmUp::Bytes(bytes) => json!(bytes),
        WarmUp::Load => json!("load"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use onefold_units::Op;

    use super::{Block, Mix, State};
    use crate::Study;

    const STORE: &str = "lsm-load,bytes=3GiB";
    const VOLUME: &str = "like-prxy_0-pages,bytes=1GiB";

    fn study(shares: (u32, u32)) -> Study {
        let text = format!(
            r#"
            schema = "onefold.study/1"
            name = "mix"
            device = "300GiB"
            sizes = ["8MiB"]
            policies = ["lru"]
            seed = 9
            [[workload]]
            name = "W"
            source = [
                {{ workload = "{STORE}", share = {} }},
                {{ workload = "{VOLUME}", share = {}, offset = "282GiB" }},
            ]
            "#,
            shares.0, shares.1
        );
        Study::parse(Path::new("mix.toml"), &text).unwrap()
    }

    #[test]
    fn every_prefix_keeps_the_ratio() {
        let study = study((7, 3));
        let (mut mix, plan) = Mix::open(&study, &study.workloads[0], 0.5).unwrap();
        let mut pages = [0_u64; 2];
        loop {
            let mut block = Block::default();
            let state = mix.fill(&mut block, None).unwrap();
            for request in block.requests().iter().filter(|request| request.op != Op::Trim) {
                pages[usize::from(request.tenant)] += u64::from(request.n);
                // One request of either may be ahead: 512 KiB of the store.
                assert!((pages[0] * 3).abs_diff(pages[1] * 7) <= 7 * 3 * 128, "{pages:?}");
            }
            if state == State::End {
                break;
            }
        }
        let bytes = (pages[0] + pages[1]) * 4096;
        assert!(plan.bytes.unwrap().abs_diff(bytes) <= 512 << 10);
    }
}
