//! Requests of the host that wait for batches.

use onefold_units::convert::{index, u32_from};

use crate::io::IoFailed;

/// A request of the host that waits for batches.
#[derive(Clone, Copy, Debug)]
struct Request {
    tag: u64,
    outstanding: u32,
    result: Result<(), IoFailed>,
    /// The host was told that it failed before it was over.
    told: bool,
    /// Durable before it is done.
    fua: bool,
}

/// Requests of the host that wait for batches.
#[derive(Debug, Default)]
pub struct Requests {
    list: Vec<Request>,
    free: Vec<u32>,
}

impl Requests {
    /// Takes a request and gives its number. `fua`: it is to be durable before it is done.
    pub fn begin(&mut self, tag: u64, fua: bool) -> u32 {
        let request = Request { tag, outstanding: 0, result: Ok(()), told: false, fua };
        if let Some(id) = self.free.pop() {
            self.list[index(id)] = request;
            return id;
        }
        self.list.push(request);
        u32_from(self.list.len() - 1)
    }

    /// A request waits for one more batch.
    pub fn wait(&mut self, id: u32) {
        self.list[index(id)].outstanding += 1;
    }

    pub(crate) fn is_fua(&self, id: u32) -> bool {
        self.list[index(id)].fua
    }

    /// The host does not wait any longer: all requests that it was told nothing of.
    pub fn give_up(&mut self) -> Vec<u64> {
        let waits = |request: &&mut Request| request.outstanding > 0 && !request.told;
        let give_up = |request: &mut Request| {
            request.told = true;
            request.tag
        };
        self.list.iter_mut().filter(waits).map(give_up).collect()
    }

    /// One of the batches of a request is over. Gives tag, result and `fua` of the request when it was the last one and the
    /// host was not told before.
    pub fn over(
        &mut self,
        id: u32,
        result: Result<(), IoFailed>,
    ) -> Option<(u64, Result<(), IoFailed>, bool)> {
        let request = &mut self.list[index(id)];
        request.outstanding -= 1;
        request.result = request.result.and(result);
        if request.outstanding > 0 {
            return None;
        }
        self.free.push(id);
        if request.told {
            return None;
        }
        Some((request.tag, request.result, request.fua))
    }
}
