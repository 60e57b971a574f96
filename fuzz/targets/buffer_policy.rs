//! Buffer policies: a text is refused, or means the same when it is written out; sizes are refused,
//! or the policy keeps its invariants over any requests, never mixes up slots, and does not grow.
//! The first line is the text of the policy; 8 bytes of sizes follow, then 8 bytes per request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_buffer::{
    Action, Actions, BufferConfig, Charge, FtlView, Policy, PolicySpec, Req, Sizes, new_policy,
};
use onefold_fuzz::memory::{Counting, live};
use onefold_units::{Lpn, Nanos, Op};

#[global_allocator]
static MEMORY: Counting = Counting;

/// Requests of one input: enough to turn the smallest buffers over many times.
const REQUESTS_MOST: usize = 256;
/// Memory of a slot with its ghosts and its part of the index, and what no size changes.
const SLOT_BYTES: usize = 256;
const FIXED_BYTES: usize = 256 << 10;
/// Memory of a step with what it programs, in vectors that may be half empty.
const STEP_BYTES: usize = 128;

fuzz_target!(|data: &[u8]| {
    let line = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (text, rest) = data.split_at(line);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let spec = match PolicySpec::parse(text) {
        Ok(spec) => spec,
        Err(error) => return assert!(error.to_string().len() < 1000),
    };
    assert_eq!(PolicySpec::parse(&spec.to_string()), Ok(spec));
    let Some((sizes, requests)) = rest.get(1..).and_then(|rest| rest.split_first_chunk::<8>())
    else {
        return;
    };
    let (config, sizes) = configure(spec, *sizes);
    let before = live();
    match new_policy(&config, &sizes) {
        Ok(policy) => Run::new(policy, &config, &sizes, before).all(requests),
        Err(error) => assert!(
            error.to_string().contains("expected") || error.to_string().contains("at least")
        ),
    }
});

/// Small buffers in front of devices of any size.
fn configure(spec: PolicySpec, bytes: [u8; 8]) -> (BufferConfig, Sizes) {
    let [entry, page, low, high, device, odd, charge, volatile] = bytes;
    let entry_bytes = 512 << (entry % 10);
    let sizes = Sizes {
        entry_bytes,
        flash_page_bytes: 512 << (page % 16),
        device_bytes: (1 << (9 + device % 28)) + u64::from(odd) * 512,
        channels: 1 + u32::from(odd % 4),
        ways: 1 + u32::from(device % 2),
    };
    let bytes = u64::from(u16::from_le_bytes([low, high])) * u64::from(entry_bytes) / 64;
    let charge = Charge::ALL[usize::from(charge) % Charge::ALL.len()];
    (BufferConfig { policy: spec, bytes, charge, volatile: volatile % 2 == 1 }, sizes)
}

/// Some pages hold data and some do not.
struct Striped;

impl FtlView for Striped {
    fn mapped(&self, lpn: Lpn) -> bool {
        lpn.raw() & 4 == 0
    }
}

struct Run {
    policy: Box<dyn Policy + Send>,
    out: Actions,
    /// Page whose bytes each slot holds.
    owner: Vec<Option<Lpn>>,
    sectors: u32,
    per_program: usize,
    volatile: bool,
    /// Bytes in use that the run may not exceed.
    memory_most: usize,
    /// Steps of the largest request so far.
    steps_most: usize,
}

impl Run {
    fn new(
        policy: Box<dyn Policy + Send>,
        config: &BufferConfig,
        sizes: &Sizes,
        before: usize,
    ) -> Self {
        let slots = policy.slots() as usize;
        let built = live() - before;
        let entries = sizes.device_bytes.div_ceil(u64::from(sizes.entry_bytes));
        // Two bits per chunk of the device, of which one is at least an entry.
        let table = entries.div_ceil(4) as usize;
        assert!(built <= slots * SLOT_BYTES + table + FIXED_BYTES, "{built} B, {slots} slots");
        let owner = vec![None; slots];
        Self {
            policy,
            out: Actions::new(),
            owner,
            sectors: sizes.entry_bytes / 512,
            per_program: (sizes.flash_page_bytes / sizes.entry_bytes).max(1) as usize,
            volatile: config.volatile,
            memory_most: live() + slots * SLOT_BYTES + FIXED_BYTES,
            steps_most: 0,
        }
    }

    fn all(mut self, requests: &[u8]) {
        for bytes in requests.as_chunks::<8>().0.iter().take(REQUESTS_MOST) {
            let request = self.read(*bytes);
            self.request(&request);
        }
        self.policy.drain(&mut self.out);
        self.execute(&Req::new(Op::Flush, Lpn::new(0), 0));
        self.policy.check().expect("after a drain");
        assert_eq!(self.policy.stats().total().dirty, 0);
    }

    /// Any request that a caller may send: what it cuts off is less than the entry it cuts.
    fn read(&self, bytes: [u8; 8]) -> Req {
        let [kind, low, high, n, more, head, tail, tenant] = bytes;
        let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush];
        let op = op[usize::from(kind) % op.len()];
        let near = u32::from(u16::from_le_bytes([low, high]));
        let lpn = if kind & 64 == 64 { u32::MAX - near } else { near };
        let n = if op == Op::Flush { 0 } else { 1 + u32::from(n % 64) * (1 + u32::from(more % 8)) };
        let cut = kind & 128 == 128 && n > 0;
        let head = if cut { u32::from(head) % self.sectors } else { 0 };
        let room = if n == 1 { self.sectors - head } else { self.sectors };
        let tail = if cut { u32::from(tail) % room } else { 0 };
        let fua = kind & 32 == 32;
        let (head, tail, lpn, t) = (head as u8, tail as u8, Lpn::new(lpn), Nanos::ZERO);
        Req { op, fua, tenant, lpn, n, head, tail, t }
    }

    fn request(&mut self, request: &Req) {
        self.policy.request(request, &Striped, &mut self.out);
        self.policy.check().unwrap_or_else(|violation| panic!("{violation} after {request:?}"));
        self.execute(request);
        if self.volatile && request.op == Op::Flush {
            assert_eq!(self.policy.stats().total().dirty, 0);
        }
        // What a request needs by itself is kept for the next one.
        self.steps_most = self.steps_most.max(self.out.as_slice().len());
        let (live, most) = (live(), self.memory_most + self.steps_most * STEP_BYTES);
        assert!(live <= most, "{live} B are in use after {request:?}, expected at most {most}");
    }

    /// Follows the slots, and counts an answer per page.
    fn execute(&mut self, request: &Req) {
        let mut answers = 0;
        for action in self.out.as_slice() {
            match *action {
                Action::Hit { lpn, slot } => {
                    assert_eq!(self.owner[slot.index()], Some(lpn));
                    answers += 1;
                }
                Action::Fill { lpn, slot, .. } | Action::Store { lpn, slot } => {
                    self.owner[slot.index()] = Some(lpn);
                    answers += 1;
                }
                Action::PadRead { lpn, slot, .. } => self.owner[slot.index()] = Some(lpn),
                Action::Drop { lpn, slot } => {
                    assert_eq!(self.owner[slot.index()].take(), Some(lpn));
                }
                Action::Bypass { .. } => answers += 1,
                Action::Program { batch, .. } => {
                    let entries = self.out.batch(batch);
                    assert!((1..=self.per_program).contains(&entries.len()));
                    for entry in entries {
                        assert_eq!(self.owner[entry.slot.index()], Some(entry.lpn));
                    }
                }
            }
        }
        let pages = match request.op {
            Op::Read | Op::Write | Op::WriteZeroes => {
                u64::from(request.n).min(u64::from(u32::MAX - request.lpn.raw()) + 1)
            }
            Op::Trim | Op::Flush => 0,
        };
        assert_eq!(answers, pages, "{request:?}");
    }
}
