//! One small case per rule. Pages have 4 KiB; FLUSH, which programs BAW, SORB and BAR in this order,
//! shows where pages are.

use crate::common::build::{build, try_build};
use crate::common::replay::Written;
use crate::common::text::text;
use onefold_buffer::{
    Actions, BufferConfig, BufferError, Charge, Policy, PolicySpec, Req, Sizes, new_policy,
};
use onefold_units::{Lpn, Op};

/// A buffer in front of an FTL, and its answers as text.
struct Buffer {
    policy: Box<dyn Policy + Send>,
    out: Actions,
    written: Written,
    programmed: [u64; 3],
}

impl Buffer {
    /// Chunks of 16 pages; 4 pages are large.
    fn new(more: &str, slots: u32, k: u32) -> Self {
        let policy = build(&format!("aoi:chunk=64KiB,{more}"), slots, 4096, k, true);
        let (out, written) = (Actions::new(), Written::default());
        Self { policy, out, written, programmed: [0; 3] }
    }

    fn ask(&mut self, r: &Req) -> String {
        self.policy.request(r, &self.written, &mut self.out);
        self.policy.check().unwrap();
        self.written.note(r);
        text(&self.out)
    }

    fn read(&mut self, lpn: u32, n: u32) -> String {
        self.ask(&Req::new(Op::Read, Lpn::new(lpn), n))
    }

    fn write(&mut self, lpn: u32, n: u32) -> String {
        self.ask(&Req::new(Op::Write, Lpn::new(lpn), n))
    }

    fn write_fua(&mut self, lpn: u32, n: u32) -> String {
        self.ask(&Req { fua: true, ..Req::new(Op::Write, Lpn::new(lpn), n) })
    }

    fn trim(&mut self, lpn: u32, n: u32) -> String {
        self.ask(&Req::new(Op::Trim, Lpn::new(lpn), n))
    }

    fn flush(&mut self) -> String {
        self.ask(&Req::new(Op::Flush, Lpn::new(0), 0))
    }

    /// Flushes, and returns how many pages of BAW, BAR and SORB were programmed since the last call.
    fn programmed(&mut self) -> [u64; 3] {
        self.flush();
        let areas = self.policy.stats().areas();
        assert_eq!([areas[0].name, areas[1].name, areas[2].name], ["baw", "bar", "sorb"]);
        let now = [areas[0].write_backs(), areas[1].write_backs(), areas[2].write_backs()];
        let before = std::mem::replace(&mut self.programmed, now);
        [now[0] - before[0], now[1] - before[1], now[2] - before[2]]
    }
}

fn pages(range: std::ops::Range<u32>) -> String {
    range.map(|page| format!("program {page}")).collect::<Vec<String>>().join(", ")
}

#[test]
fn a_request_over_three_chunks_is_judged_in_each() {
    let mut b = Buffer::new("channels=4,ways=2", 40, 1);
    b.write(16, 16);
    b.write(16, 16);
    assert_eq!(b.out.counts().lookups, 1);
    b.write(14, 20);
    assert_eq!(b.out.counts().lookups, 3);
    // Chunks 0 and 2 are append-only, chunk 1 was rewritten.
    let flushed = [pages(14..16), pages(32..34), pages(16..32)].join(", ");
    assert_eq!(b.flush(), flushed);
    assert_eq!(b.out.counts().lookups, 0);
    b.read(13, 30);
    b.trim(0, 64);
    assert_eq!(b.policy.stats().lookups, 1 + 1 + 3 + 3);
}

#[test]
fn an_append_larger_than_its_area_recycles_it_although_there_is_room() {
    let mut b = Buffer::new("channels=2,ways=2", 16, 1);
    assert_eq!(
        b.write(0, 7),
        "store 0, store 1, store 2, store 3, program 0, store 4, program 1, store 5, \
         program 2, store 6"
    );
    b.write(200, 1);
    // So do reads of append-only data.
    assert_eq!(
        b.read(8, 6),
        "fill 8 0xff, fill 9 0xff, fill 10 0xff, fill 11 0xff, drop 8, fill 12 0xff, \
         drop 9, fill 13 0xff"
    );
    assert_eq!(b.flush(), "program 3, program 4, program 5, program 6, program 200");
}

#[test]
fn groups_of_appends_leave_in_whole_flash_pages() {
    let mut b = Buffer::new("channels=2,ways=1", 16, 4);
    b.write_fua(0, 4);
    b.write(4, 4);
    // Clean ones leave with their group.
    assert_eq!(b.write(8, 1), "store 8");
    assert!(b.write(9, 4).starts_with("drop 0, drop 1, drop 2, drop 3, store 9"));
    assert!(b.write(13, 3).starts_with("store 13"));
    assert!(b.write(16, 4).contains("program 4+5+6+7, store 16"));
}

#[test]
fn nothing_in_sorb_to_take() {
    let mut b = Buffer::new("channels=1,ways=1", 5, 4);
    b.write(0, 4);
    assert_eq!(b.trim(0, 2), "drop 0, drop 1");
    b.read(8, 3);
    assert_eq!(b.read(11, 1), "drop 8, fill 11 0xff");
    assert_eq!(b.flush(), "program 2+3");
}

#[test]
fn nothing_but_appends() {
    let mut b = Buffer::new("channels=4,ways=1", 4, 1);
    b.write(0, 4);
    assert_eq!(b.write(100, 1), "program 0, store 100");
    assert_eq!(b.read(8, 1), "program 1, fill 8 0xff");
    assert_eq!(b.write(101, 1), "drop 8, store 101");
}

#[test]
fn a_few_appends_leave_at_the_deadline() {
    let mut b = Buffer::new("channels=1,ways=1", 6, 4);
    b.write(0, 4);
    b.trim(0, 2);
    b.read(100, 4);
    for page in 104..109 {
        assert_eq!(b.read(page, 1), format!("drop {}, fill {page} 0xff", page - 4));
    }
    // The sixth page that needs room, in a buffer of six.
    assert_eq!(b.read(109, 1), "program 2+3, fill 109 0xff");
    assert_eq!(b.policy.stats().total().short_programs, 1);
    assert_eq!(b.read(110, 1), "fill 110 0xff");
    assert_eq!(b.read(111, 1), "drop 105, fill 111 0xff");
    assert_eq!(b.programmed(), [2, 0, 0]);
}

/// A new append starts the wait again.
#[test]
fn an_append_resets_the_deadline() {
    let mut b = Buffer::new("channels=1,ways=1", 6, 4);
    b.write(0, 4);
    b.trim(0, 2);
    b.read(100, 7);
    // Three pages have waited. Then the area is full and recycles itself: 2, 3, 4, 5 leave.
    assert!(b.write(4, 4).contains("program 2+3+4+5"));
    b.read(110, 2);
    let waited: Vec<String> = (112..120).map(|page| b.read(page, 1)).collect();
    let fired = waited.iter().position(|answer| answer.starts_with("program 6+7"));
    assert_eq!(fired, Some(5), "{waited:?}");
}

#[test]
fn trims_reset_chunks() {
    // A large TRIM of half a chunk; all of it; less than the threshold.
    for (reset, first, n, appends) in [
        ("touch", 8, 8, true),
        ("touch", 0, 16, true),
        ("touch", 8, 3, false),
        ("full", 8, 8, false),
        ("full", 0, 16, true),
        ("full", 0, 40, true),
        ("off", 0, 16, false),
    ] {
        let mut b = Buffer::new(&format!("channels=4,ways=4,trim_reset={reset}"), 64, 1);
        b.write(0, 8);
        b.write(0, 8);
        b.programmed();
        b.trim(first, n);
        b.write(8, 8);
        let pages = if appends { [8, 0, 0] } else { [0, 0, 8] };
        assert_eq!(b.programmed(), pages, "trim_reset={reset}, TRIM {first}, {n}");
    }
}

/// Its cut pages keep their data, so a TRIM that has no other page in a chunk leaves it alone.
#[test]
fn trims_do_not_reset_chunks_that_they_only_cut() {
    for (head, pages) in [(0, [4, 0, 0]), (1, [0, 0, 4])] {
        let mut b = Buffer::new("channels=4,ways=4", 64, 1);
        b.write(12, 4);
        b.write(12, 4);
        b.programmed();
        b.ask(&Req { head, ..Req::new(Op::Trim, Lpn::new(15), 8) });
        b.write(8, 4);
        assert_eq!(b.programmed(), pages, "{head} sectors of page 15 stay");
    }
}

#[test]
fn trimmed_pages_leave_every_area() {
    let mut b = Buffer::new("channels=2,ways=2", 16, 1);
    b.write(0, 4);
    b.read(8, 2);
    b.write(100, 1);
    assert_eq!(b.trim(0, 101), "drop 0, drop 1, drop 2, drop 3, drop 8, drop 9, drop 100");
    assert_eq!(b.flush(), "");
    b.read(8, 1);
    b.write(4, 4);
    // Page 8 was read into SORB: nothing is known about its chunk any more.
    assert_eq!(b.write(8, 1), "store 8");
    assert_eq!(b.flush(), "program 4, program 5, program 6, program 7, program 8");
}

#[test]
fn fua_appends_are_programmed_and_stay_in_their_area() {
    let mut b = Buffer::new("channels=2,ways=2", 16, 1);
    let answer = b.write_fua(0, 4);
    assert!(answer.ends_with("store 3, program 0, program 1, program 2, program 3"), "{answer}");
    assert_eq!(b.flush(), "");
    assert_eq!(b.programmed(), [4, 0, 0]);
    assert!(b.write(4, 4).starts_with("drop 0, store 4, drop 1, store 5"));
}

#[test]
fn a_write_finds_pages_in_bar() {
    let mut b = Buffer::new("channels=2,ways=2", 8, 1);
    b.write(0, 4);
    b.read(8, 1);
    // An append over a page that was read before it was written: it stays, dirty.
    b.write(8, 4);
    assert_eq!(b.flush(), "program 3, program 9, program 10, program 11, program 8");
    b.write(8, 4);
    assert_eq!(b.flush(), "program 8, program 9, program 10, program 11", "an update: SORB");
    let mut b = Buffer::new("channels=2,ways=2", 5, 1);
    b.write(0, 4);
    b.read(8, 1);
    b.write(8, 4);
    // Evicting BAR programs it.
    assert!(b.write(100, 1).starts_with("program 8, store 100"));
    // A small write to a page of BAR makes it SORB, and its chunk.
    let mut b = Buffer::new("channels=2,ways=2", 16, 1);
    b.write(0, 4);
    b.read(8, 1);
    b.write(8, 1);
    b.write(12, 4);
    assert_eq!(
        b.flush(),
        "program 0, program 1, program 2, program 3, program 8, program 12, program 13, \
         program 14, program 15"
    );
}

#[test]
fn a_log_that_rewrites_its_tail_page_appends() {
    // The printed rules take the second request into a chunk for an update. The page of the last
    // one is small: no area for appends.
    for (reaccess, expected) in
        [("mapped", [12, 0, 1]), ("cursor", [12, 0, 1]), ("literal", [3, 0, 10])]
    {
        let mut b = Buffer::new(&format!("channels=8,ways=8,reaccess={reaccess}"), 64, 1);
        b.write(0, 4);
        b.write(3, 6);
        b.write(8, 4);
        b.write(12, 1);
        assert_eq!(b.programmed(), expected, "{reaccess}");
    }
}

#[test]
fn a_rewrite_of_half_a_request_is_an_append_and_of_more_an_update() {
    for reaccess in ["mapped", "cursor"] {
        for (first, expected) in [(2, [6, 0, 0]), (1, [1, 0, 4])] {
            let mut b = Buffer::new(&format!("reaccess={reaccess}"), 64, 1);
            b.write(0, 4);
            b.write(first, 4);
            assert_eq!(b.programmed(), expected, "{reaccess}");
        }
    }
}

#[test]
fn a_log_that_reuses_its_chunk_restarts_it() {
    for (restart, again) in [("off", [0, 0, 32]), ("on", [32, 0, 0])] {
        let mut b = Buffer::new(&format!("channels=4,ways=2,restart={restart}"), 64, 1);
        for expected in [[32, 0, 0], again, again] {
            for at in (0..32).step_by(8) {
                b.write(at, 8);
            }
            assert_eq!(b.programmed(), expected, "restart={restart}");
        }
    }
}

/// A small write makes a chunk rewritten in spite of `restart`; what follows it is no sequence from
/// the first page on. The next complete one is.
#[test]
fn only_a_complete_rewrite_restarts_a_chunk() {
    let mut b = Buffer::new("channels=4,ways=2,restart=on", 64, 1);
    b.write(0, 8);
    b.write(3, 1);
    b.write(8, 8);
    assert_eq!(b.programmed(), [7, 0, 9]);
    b.write(0, 8);
    b.trim(8, 3);
    // The write that completes it is an append again. Pages that are in SORB stay there.
    b.write(8, 8);
    assert_eq!(b.programmed(), [3, 0, 13]);
}

/// BAW and BAR were 64 flash pages each whatever the drive: on two dies 64 pages waited where 2 keep
/// every die busy, and buffers below 256 KiB were refused.
#[test]
fn areas_are_those_of_the_drive_unless_given() {
    for (more, channels, ways, most) in
        [("", 2, 1, 2), ("", 4, 4, 16), (":ways=3", 2, 4, 6), (":channels=5", 2, 4, 20)]
    {
        let policy = PolicySpec::parse(&format!("aoi{more}")).unwrap();
        let least = |bytes| {
            let config = BufferConfig { policy, bytes, charge: Charge::None, volatile: true };
            let sizes = Sizes { channels, ways, ..Sizes::of_one_die(4096, 1 << 30) };
            new_policy(&config, &sizes).map(|policy| policy.slots())
        };
        assert_eq!(least(most * 4096), Ok(most.try_into().unwrap()), "{more} {channels} x {ways}");
        assert!(least((most - 1) * 4096).is_err(), "{more} {channels} x {ways}");
    }
}

#[test]
fn hits_are_counted_by_tenant_and_area() {
    let mut b = Buffer::new("channels=4,ways=2", 40, 1);
    b.write(0, 8);
    b.write(100, 1);
    b.write(100, 1);
    b.read(0, 8);
    let of = |tenant| {
        let all = b.policy.stats().hits_by_area(tenant);
        all.iter().map(|area| (area.name, area.reads, area.writes)).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [("baw", 8, 0), ("bar", 0, 0), ("sorb", 0, 1)]);
    assert_eq!(of(1), [("baw", 0, 0), ("bar", 0, 0), ("sorb", 0, 0)]);
}

fn on_300_gib(spec: &str, bytes: u64, charge: Charge) -> Result<u32, BufferError> {
    let policy = PolicySpec::parse(spec).unwrap();
    let config = BufferConfig { policy, bytes, charge, volatile: true };
    let sizes = Sizes { channels: 8, ways: 8, ..Sizes::of_one_die(4096, 300 << 30) };
    new_policy(&config, &sizes).map(|policy| policy.slots())
}

#[test]
fn the_table_is_paid_for_with_entries() {
    const MIB: u64 = 1 << 20;
    assert_eq!(on_300_gib("aoi", 32 * MIB, Charge::Paper), Ok(8192 - 19));
    assert_eq!(on_300_gib("aoi", 32 * MIB, Charge::Full), Ok(8192 - 19));
    assert_eq!(on_300_gib("aoi", 32 * MIB, Charge::None), Ok(8192));
    assert_eq!(on_300_gib("aoi:chunk=4KiB", 32 * MIB, Charge::Paper), Ok(8192 - 4800));
    // 16 KiB of cursors are four entries; 8 B per ghost.
    assert_eq!(on_300_gib("aoi:reaccess=cursor", 32 * MIB, Charge::Full), Ok(8192 - 23));
    assert_eq!(on_300_gib("aoi:area=s3-fifo", 32 * MIB, Charge::Full), Ok(8192 - 19 - 15));
    let size = 75 * MIB / 4;
    for bytes in [size, 19 * MIB - 1] {
        let refused = on_300_gib("aoi:chunk=4KiB", bytes, Charge::Paper);
        let least = size + 64 * 4096;
        assert_eq!(refused, Err(BufferError::Tables { policy: "aoi", bytes, tables: size, least }));
    }
    assert_eq!(on_300_gib("aoi:chunk=4KiB", 19 * MIB, Charge::Paper), Ok(64));
}

#[test]
fn areas_and_chunks_that_do_not_fit_are_refused() {
    let refused = try_build("aoi", 63, 4096, 1, true).err();
    let (bytes, least) = (63 * 4096, 64 * 4096);
    assert_eq!(refused, Some(BufferError::Tables { policy: "aoi", bytes, tables: 0, least }));
    assert!(try_build("aoi", 64, 4096, 1, true).is_ok());
    let refused = try_build("aoi:chunk=8KiB,ways=1", 64, 16_384, 1, true).err().unwrap();
    let expected =
        "chunk of the policy aoi is 8192, expected a size not below that of a buffer entry";
    assert!(refused.to_string().starts_with(expected), "{refused}");
    // Whatever the sizes, there is an answer.
    assert!(try_build("aoi:channels=4096,ways=4096", 64, 4096, 64, true).is_err());
}

/// In front of a device of 24 pages: its last chunk is short.
fn on_24_pages(more: &str) -> Buffer {
    let policy = PolicySpec::parse(&format!("aoi:chunk=64KiB,channels=1,{more}")).unwrap();
    let config = BufferConfig { policy, bytes: 1 << 20, charge: Charge::Paper, volatile: true };
    let sizes = Sizes { channels: 8, ways: 8, ..Sizes::of_one_die(4096, 24 * 4096) };
    let (out, written) = (Actions::new(), Written::default());
    let policy = new_policy(&config, &sizes).unwrap();
    Buffer { policy, out, written, programmed: [0; 3] }
}

#[test]
fn the_last_chunk_of_the_device_is_covered_when_its_pages_are() {
    let mut b = on_24_pages("trim_reset=full");
    b.write(16, 8);
    b.write(16, 8);
    assert_eq!(b.programmed(), [0, 0, 8]);
    b.trim(16, 8);
    b.write(16, 8);
    assert_eq!(b.programmed(), [8, 0, 0]);
    let mut b = on_24_pages("restart=on");
    b.write(16, 8);
    b.write(19, 1);
    assert_eq!(b.programmed(), [7, 0, 1]);
    b.trim(19, 1);
    b.write(16, 8);
    assert_eq!(b.programmed(), [8, 0, 0]);
}

#[test]
fn requests_past_the_end_of_the_device_find_no_bits() {
    let mut b = on_24_pages("trim_reset=full");
    b.write(u32::MAX - 4, 4);
    b.write(u32::MAX - 4, 4);
    b.read(100, 4);
    assert_eq!(b.policy.stats().total().dirty, 4);
    b.policy.request(&Req::new(Op::Trim, Lpn::new(0), u32::MAX), &b.written, &mut b.out);
    assert_eq!(b.policy.stats().total().dirty, 0);
    b.policy.check().unwrap();
}
