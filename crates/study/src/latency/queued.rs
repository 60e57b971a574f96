//! Requests that wait for dies and channels: the `queued` model.
//!
//! Every tenant has one request under way, and requests are issued in the order of the mix: each as
//! soon as the last one of its tenant is done and all before it are issued. So there is no rate to
//! choose, and a device that is faster is asked sooner.
//!
//! 1. A request is in DRAM first; then its victims are programmed; then, in the places they left, it
//!    reads its pages. It is done when it need not wait for any of them.
//! 2. An operation crosses its channel, then occupies its die; reads are timed like programs, as the
//!    sum is the same. Channels and dies take operations in the order of requests.
//! 3. A channel is booked from when the operation could start, not from when its die is free:
//!    operations that wait for a die keep no channel from others.

use onefold_buffer::{Counts, Req};
use onefold_units::convert::index;

use super::device::{Device, Kind};
use super::{LatencyModel, Placement};

/// Tenants there can be.
const TENANTS: usize = 256;

/// Times of requests, and what the device is busy with; nanoseconds since its start.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    device: Device,
    model: LatencyModel,
    channels: Vec<u64>,
    dies: Vec<u64>,
    /// Where the next request programs.
    next: Place,
    pool: Pool,
    /// When the last request was issued.
    issued: u64,
    /// When the last request of each tenant was done.
    done: Vec<u64>,
}

impl Queued {
    pub(super) fn new(device: Device, model: LatencyModel) -> Self {
        Self {
            device,
            model,
            channels: vec![0; index(device.channels)],
            dies: vec![0; index(device.channels * device.ways)],
            next: Place { die: 0, channel: 0 },
            pool: Pool { ends: vec![0; index(model.wb_slots)], at: 0, all: 0 },
            issued: 0,
            done: vec![0; TENANTS],
        }
    }

    /// Time of a request, from when it is issued until it is done.
    #[inline]
    pub(super) fn time(&mut self, req: &Req, counts: Counts) -> u64 {
        let tenant = usize::from(req.tenant);
        self.issued = self.issued.max(self.done[tenant]);
        let mut now = self.issued + self.device.dram(req.n, counts.lookups);
        if counts.programs > 0 {
            now = now.max(self.programs(counts.programs, now));
        }
        if counts.reads > 0 {
            now = self.reads(Place::of(req.lpn.raw(), &self.device), counts.reads, now);
        }
        self.done[tenant] = now;
        now - self.issued
    }

    /// Programs victims; when no more of them are under way than there are slots.
    fn programs(&mut self, count: u32, start: u64) -> u64 {
        let (mut place, mut free) = (self.next, start);
        for _ in 0..count {
            let end = self.operate(place, self.device.program, start);
            free = self.pool.add(end);
            place = place.after(self.model.programs, &self.device);
        }
        self.next = match self.model.programs {
            Placement::Striped => place,
            Placement::Channel | Placement::Die => {
                self.next.after(Placement::Striped, &self.device)
            }
        };
        free
    }

    /// Reads pages; when the last one is there.
    fn reads(&mut self, mut place: Place, count: u32, start: u64) -> u64 {
        let mut last = start;
        for _ in 0..count {
            last = last.max(self.operate(place, self.device.read, start));
            place = place.after(self.model.reads, &self.device);
        }
        last
    }

    /// The end of one operation that could start at `start`.
    #[inline]
    fn operate(&mut self, place: Place, kind: Kind, start: u64) -> u64 {
        let (channel, die) =
            (&mut self.channels[index(place.channel)], &mut self.dies[index(place.die)]);
        let crossing = start.max(*channel);
        *channel = crossing + kind.transfer;
        *die = crossing.max(*die) + kind.transfer + kind.cell;
        *die
    }
}

/// A die: its number, channels first and ways second, and its channel.
#[derive(Clone, Copy, Debug)]
struct Place {
    die: u32,
    channel: u32,
}

impl Place {
    /// Where a page is read: pages lie around the dies in the order of their addresses.
    fn of(lpn: u32, device: &Device) -> Self {
        let die = lpn % (device.channels * device.ways);
        Self { die, channel: die % device.channels }
    }

    /// Where the next operation of a request goes.
    #[inline]
    const fn after(self, placement: Placement, device: &Device) -> Self {
        let dies = device.channels * device.ways;
        let step = match placement {
            Placement::Striped => 1,
            Placement::Channel => device.channels,
            Placement::Die => 0,
        };
        let (mut die, mut channel) = (self.die + step, self.channel);
        if die >= dies {
            die -= dies;
        }
        if step == 1 {
            channel += 1;
            if channel == device.channels {
                channel = 0;
            }
        }
        Self { die, channel }
    }
}

/// Victims on their way to flash.
#[derive(Clone, Debug)]
struct Pool {
    /// For as many programs as there are slots: when it and all before it are done.
    ends: Vec<u64>,
    /// The oldest of them.
    at: usize,
    /// When all programs are done.
    all: u64,
}

impl Pool {
    /// Adds a program; when only as many as there are slots are left.
    #[inline]
    fn add(&mut self, end: u64) -> u64 {
        self.all = self.all.max(end);
        let Some(oldest) = self.ends.get_mut(self.at) else { return self.all };
        let free = std::mem::replace(oldest, self.all);
        self.at = if self.at + 1 == self.ends.len() { 0 } else { self.at + 1 };
        free
    }
}

#[cfg(test)]
mod tests {
    use onefold_buffer::{Counts, Req};
    use onefold_units::{Lpn, Nanos, Op};

    use super::super::device::{Device, small};
    use super::super::service::Service;
    use super::{LatencyModel, Placement, Queued};
    use crate::latency::ModelKind;

    fn request(tenant: u8, lpn: u32, n: u32) -> Req {
        let (op, fua, head, tail, t) = (Op::Write, false, 0, 0, Nanos::ZERO);
        Req { op, fua, tenant, lpn: Lpn::new(lpn), n, head, tail, t }
    }

    fn counts(reads: u32, programs: u32) -> Counts {
        Counts { reads, programs, lookups: 1 }
    }

    fn models(wb_slots: &[u32]) -> Vec<LatencyModel> {
        let pairs = Placement::ALL.into_iter().flat_map(|a| Placement::ALL.map(|b| (a, b)));
        let model = |(reads, programs), wb_slots| LatencyModel {
            kind: ModelKind::Queued,
            reads,
            programs,
            wb_slots,
        };
        pairs.flat_map(|pair| wb_slots.iter().map(move |slots| model(pair, *slots))).collect()
    }

    /// Requests of up to four tenants, most of them small.
    fn requests(tenants: u32) -> Vec<(Req, Counts)> {
        let mut state = 7_u32;
        let mut below = |limit: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % limit
        };
        let mut one = || {
            let most = [1, 3, 8, 200][usize::try_from(below(4)).unwrap()];
            let tenant = u8::try_from(below(tenants)).unwrap();
            let (n, counts) = (1 + below(most), counts(below(most + 1), below(most + 1)));
            (request(tenant, below(10_000), n), counts)
        };
        (0..300).map(|_| one()).collect()
    }

    #[test]
    fn one_tenant_that_waits_for_its_victims_has_the_device_to_itself() {
        for device in [small(8, 8), small(3, 5), small(1, 1)] {
            for model in models(&[0]) {
                let service = Service::new(device, model);
                let mut queued = Queued::new(device, model);
                for (req, counts) in requests(1) {
                    let expected = service.time(req.n, counts);
                    assert_eq!(queued.time(&req, counts), expected, "{model} {counts:?}");
                }
            }
        }
    }

    #[test]
    fn a_request_waits_for_those_before_it() {
        let device = small(1, 2);
        let mut queued = Queued::new(device, LatencyModel::default());
        // Two programs, one on each die: the second crosses the channel after the first.
        assert_eq!(queued.time(&request(0, 0, 1), counts(0, 2)), 1100 + 220_000);
        // Issued with the first one: its victim goes to the first die, which is busy until 211100.
        assert_eq!(queued.time(&request(1, 0, 1), counts(0, 1)), 211_100 + 210_000);
        // Issued at 221100, when the first of its tenant is done: both dies are in use, one by the
        // first tenant until then, the other by the second until 421100.
        assert_eq!(queued.time(&request(0, 1, 1), counts(1, 0)), 1100 + 50_000);
        assert_eq!(queued.time(&request(0, 0, 1), counts(1, 0)), 421_100 + 50_000 - 272_200);
    }

    #[test]
    fn slots_hide_programs_until_they_are_full() {
        let model = LatencyModel { wb_slots: 3, ..LatencyModel::default() };
        let mut queued = Queued::new(small(1, 1), model);
        assert_eq!(queued.time(&request(0, 0, 1), counts(0, 3)), 1100);
        // The first of the three ends at 1100 + 210000.
        assert_eq!(queued.time(&request(0, 0, 1), counts(0, 1)), 210_000);
    }

    /// The same from the list of all operations, each time from the start.
    struct Naive {
        device: Device,
        model: LatencyModel,
        /// Channel, die, transfer, from when it could start, end.
        operations: Vec<(u32, u32, u64, u64, u64)>,
        program_ends: Vec<u64>,
        program_requests: u32,
        issues: Vec<u64>,
        done: [u64; 4],
    }

    impl Naive {
        fn operate(&mut self, (channel, way): (u32, u32), is_read: bool, start: u64) -> u64 {
            let kind = if is_read { self.device.read } else { self.device.program };
            let die = channel + way * self.device.channels;
            let of_channel = self.operations.iter().filter(|operation| operation.0 == channel);
            let crossed = of_channel.fold(0, |at, operation| operation.3.max(at) + operation.2);
            let of_die = self.operations.iter().filter(|operation| operation.1 == die);
            let free = of_die.map(|operation| operation.4).max().unwrap_or(0);
            let end = free.max(start).max(crossed) + kind.transfer + kind.cell;
            self.operations.push((channel, die, kind.transfer, start, end));
            end
        }

        /// Channel and way of operation `k` of a request whose first one is on die `first`.
        fn place(&self, placement: Placement, first: u32, k: u32) -> (u32, u32) {
            let (channels, ways) = (self.device.channels, self.device.ways);
            let at = |die: u32| (die % channels, die / channels % ways);
            match placement {
                Placement::Striped => at(first + k),
                Placement::Channel => (at(first).0, (at(first).1 + k) % ways),
                Placement::Die => at(first),
            }
        }

        fn time(&mut self, req: &Req, counts: Counts) -> u64 {
            let tenant = usize::from(req.tenant);
            let issue = self.issues.iter().copied().max().unwrap_or(0).max(self.done[tenant]);
            self.issues.push(issue);
            let start = issue + 1000 * u64::from(req.n) + 100;
            let before = u32::try_from(self.program_ends.len()).unwrap();
            for k in 0..counts.programs {
                let place = match self.model.programs {
                    Placement::Striped => self.place(Placement::Striped, before, k),
                    other => self.place(other, self.program_requests, k),
                };
                let end = self.operate(place, false, start);
                self.program_ends.push(end);
            }
            self.program_requests += u32::from(counts.programs > 0);
            let mut now = start;
            // Slots are given back in the order in which they were taken.
            let slots = usize::try_from(self.model.wb_slots).unwrap();
            let waited_for = self.program_ends.len().saturating_sub(slots);
            if counts.programs > 0 {
                now = self.program_ends[..waited_for].iter().copied().fold(now, u64::max);
            }
            let first = req.lpn.raw();
            let ready = now;
            for k in 0..counts.reads {
                let place = self.place(self.model.reads, first, k);
                now = now.max(self.operate(place, true, ready));
            }
            self.done[tenant] = now;
            now - issue
        }
    }

    #[test]
    fn it_is_what_a_list_of_all_operations_gives() {
        for device in [small(4, 2), small(3, 5)] {
            for model in models(&[0, 1, 7, 300]) {
                let mut queued = Queued::new(device, model);
                let mut naive = Naive {
                    device,
                    model,
                    operations: Vec::new(),
                    program_ends: Vec::new(),
                    program_requests: 0,
                    issues: Vec::new(),
                    done: [0; 4],
                };
                for (req, counts) in requests(4).into_iter().take(60) {
                    assert_eq!(queued.time(&req, counts), naive.time(&req, counts), "{model}");
                }
            }
        }
    }
}
