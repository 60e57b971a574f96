//! Every format: a small sample, its detection and its exact records.

use onefold_trace::{
    DetectError, Event, Flags, Format, FormatSpec, ReadError, ReadOptions, Reader, Record, TraceOp,
    detect, read_all,
};

/// What a test compares: time, operation, device, offset, length, latency.
type Row = (u64, TraceOp, u16, u64, u64, Option<u64>);

fn row(record: &Record) -> Row {
    (record.t_ns, record.op, record.dev, record.offset, record.len, record.lat_ns)
}

/// Reads a sample of a format that must be detected as such.
fn rows(format: Format, text: &str) -> Vec<Row> {
    assert_eq!(detect(text.as_bytes(), true), Ok(format), "detection of {}", format.name());
    let (records, _) = read_all(FormatSpec::new(format), text.as_bytes()).unwrap();
    records.iter().map(row).collect()
}

use TraceOp::{Flush, Read, Trim, Write, WriteZeroes};

#[test]
fn msr() {
    let text = "128166385295514663,hm,0,Write,9056014336,2048,2833\r\n\
                128166385295514878,hm,1,Read,11855351808,512,2617 \n";
    let t = 1_172_164_929_551_466_300;
    assert_eq!(
        rows(Format::Msr, text),
        [
            (t, Write, 0, 9_056_014_336, 2_048, Some(283_300)),
            (t + 21_500, Read, 1, 11_855_351_808, 512, Some(261_700)),
        ]
    );
    let (_, summary) = read_all(FormatSpec::new(Format::Msr), text.as_bytes()).unwrap();
    assert_eq!(summary.devices, ["hm_0", "hm_1"]);
    assert_eq!(summary.epoch_base_ns, Some(0));
    // A header and renumbered times.
    let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n7,a,0,Read,0,1,0\n";
    assert_eq!(rows(Format::Msr, text), [(700, Read, 0, 0, 1, Some(0))]);
}

#[test]
fn fiu() {
    let md5 = "88b93b628d84082186026d9da044f173";
    let text = format!("89966527950584 4253 nfsd 508516672 8 W 6 0 {md5}\n");
    assert_eq!(
        rows(Format::Fiu, &text),
        [(89_966_527_950_584, Write, 0, 260_360_536_064, 4_096, None)]
    );
    // Homes: eight digests per 4 KiB. Equal contents have equal digests, others not.
    let line = |last: &str| format!("5 1 p 8 8 W 6 0 {}{last}\n", md5.repeat(7));
    let text = line(md5) + &line(md5) + &line(&md5.replace('8', "9"));
    let (records, summary) = read_all(FormatSpec::new(Format::Fiu), text.as_bytes()).unwrap();
    assert_eq!(records[0].digests, records[1].digests);
    assert_ne!(records[0].digests, records[2].digests);
    assert!(summary.split_requests);
    // Written by Onefold: further operations, FUA in the major column.
    let text = "5 0 - 0 0 F 0 0 -\n6 0 - 8 16 D 0 0 -\n7 0 - 8 8 W 1 0 ".to_owned() + md5 + "\n";
    let (records, summary) = read_all(FormatSpec::new(Format::Fiu), text.as_bytes()).unwrap();
    assert_eq!(records.iter().map(|r| r.op).collect::<Vec<_>>(), [Flush, Trim, Write]);
    assert_eq!(records[2].flags, Flags::FUA);
    assert_eq!(summary.devices.len(), 1);
}

#[test]
fn appdedupe_diskmon_spc() {
    let md5 = "88b93b628d84082186026d9da044f173";
    let text = format!("1.5\tW\t16\t16\t77\tqemu\t{md5}-{md5}\n");
    assert_eq!(rows(Format::Appdedupe, &text), [(1_500_000_000, Write, 0, 8_192, 8_192, None)]);
    let (records, _) = read_all(FormatSpec::new(Format::Appdedupe), text.as_bytes()).unwrap();
    assert_eq!(records[0].digests.as_ref().map(|d| d.len()), Some(2));
    let text = "0\t0.000125\t0.000031\t0\tWrite\t100\t8\n";
    assert_eq!(rows(Format::Diskmon, text), [(125_000, Write, 0, 51_200, 4_096, Some(31_000))]);
    let text = "0,303567,3584,w,0.000000\n1, 240840, 3072, R, 0.026214, extra\n";
    assert_eq!(
        rows(Format::Spc, text),
        [(0, Write, 0, 155_426_304, 3_584, None), (26_214_000, Read, 1, 123_310_080, 3_072, None),]
    );
}

#[test]
fn systor_in_both_column_orders() {
    let first = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                 1455592390.001234000,0.000500000,W,1,4096,8192\n\
                 1455592390.002000000,0.000100000,,1,0,0\n";
    let expected = [(1_455_592_390_001_234_000, Write, 0, 4_096, 8_192, Some(500_000))];
    assert_eq!(rows(Format::Systor, first), expected);
    let last = "Timestamp,IOType,LUN,Offset,Size,Response\n\
                1455592390.001234000,W,1,4096,8192,0.000500000\n";
    assert_eq!(rows(Format::Systor, last), expected);
    let bare = last.split_once('\n').unwrap().1;
    assert_eq!(rows(Format::Systor, bare), expected);
    let (_, summary) = read_all(FormatSpec::new(Format::Systor), first.as_bytes()).unwrap();
    assert_eq!(summary.skipped_lines, 1);
}

#[test]
fn clouds() {
    let text =
        "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n";
    assert_eq!(
        rows(Format::Alibaba, text),
        [
            (1_577_808_144_360_767_000, Write, 0, 8_792_731_648, 16_384, None),
            (1_577_808_144_360_813_000, Read, 1, 59_110_326_272, 360_448, None),
        ]
    );
    let text = "3,0.25,W,4096,512\n";
    assert_eq!(rows(Format::K5cloud, text), [(250_000_000, Write, 0, 4_096, 512, None)]);
    let text = "1538323200,12910952,128,0,1063\n1538323200,6265688,8,1,1064\n";
    assert_eq!(
        rows(Format::Tencent, text),
        [
            (1_538_323_200_000_000_000, Read, 0, 6_610_407_424, 65_536, None),
            (1_538_323_200_000_000_000, Write, 1, 3_208_032_256, 4_096, None),
        ]
    );
}

#[test]
fn simulators_and_overrides() {
    let text = "938513000 4 264719034 16 0\n938828000\t3\t197570570\t16\t1\n";
    let expected = [
        (938_513_000, Write, 0, 135_536_145_408, 8_192, None),
        (938_828_000, Read, 1, 101_156_131_840, 8_192, None),
    ];
    assert_eq!(rows(Format::Ssdsim, text), expected);
    let spec = FormatSpec::parse("mqsim:time=us:addr=bytes:read=0").unwrap();
    let (records, _) = read_all(spec, text.as_bytes()).unwrap();
    assert_eq!(row(&records[0]), (938_513_000_000, Read, 0, 264_719_034, 16, None));
    let text = "0.5 0 1000 8 1\n1.25 0 8 8 0\n";
    assert_eq!(
        rows(Format::Disksim, text),
        [(500_000, Read, 0, 512_000, 4_096, None), (1_250_000, Write, 0, 4_096, 4_096, None)]
    );
    // All multiples of 512 and large: bytes or sectors is a question to the user.
    let text = "0.5 0 4096 16384 1\n1.25 0 8192 4096 0\n";
    assert_eq!(
        detect(text.as_bytes(), true),
        Err(DetectError::Ambiguous(Format::Ioda, Format::Disksim))
    );
    let (records, _) = read_all(FormatSpec::new(Format::Ioda), text.as_bytes()).unwrap();
    assert_eq!(row(&records[0]), (500_000, Read, 0, 4_096, 16_384, None));
}

const BLKPARSE: &str = "  8,16   3        3     0.000001950  3645  Q   R 256 + 8 [java]
  8,16   3        4     0.000011950  3645  I   R 256 + 8 [java]
  8,16   3        5     0.000026421  3645  D   R 256 + 8 [java]
  8,16   3        6     0.000030000  3645  R   R 256 + 8 [0]
  8,16   3        7     0.000031000  3645  D   R 256 + 8 [java]
  8,16   3        8     0.000040000     0  C   R 256 + 8 [0]
  8,16   3        9     0.000041000  3645  P   N [java]
  8,16   3       10     0.000050000  3645  D FWFS 8 + 8 [jbd2]
  8,16   3       11     0.000051000  3645  D  DS 1024 + 2048 [fstrim]
  8,16   3       12     0.000060000     0  C FWFS 8 + 8 [0]
CPU0 (8,16):
 Reads Queued:           0,        0KiB
";

#[test]
fn blkparse() {
    assert_eq!(
        rows(Format::Blkparse, BLKPARSE),
        [
            // Requeued and issued again: one request, from its first issue.
            (26_421, Read, 0, 131_072, 4_096, Some(13_579)),
            (50_000, Flush, 0, 0, 0, None),
            (50_000, Write, 0, 4_096, 4_096, Some(10_000)),
            (51_000, Trim, 0, 524_288, 1_048_576, None),
        ]
    );
    let options = ReadOptions { event: Event::Queue, ..Default::default() };
    let mut reader = Reader::new(FormatSpec::new(Format::Blkparse), options).unwrap();
    let mut records = Vec::new();
    reader.push(BLKPARSE.as_bytes(), &mut records).unwrap();
    reader.finish(&mut records).unwrap();
    assert_eq!(records.iter().map(|r| r.t_ns).collect::<Vec<_>>(), [1_950]);
}

/// One event of blktrace, in either byte order.
fn event(little: bool, t: u64, sector: u64, bytes: u32, action: u32, pdu: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let u32s = |out: &mut Vec<u8>, value: u32| {
        out.extend(if little { value.to_le_bytes() } else { value.to_be_bytes() });
    };
    let u64s = |out: &mut Vec<u8>, value: u64| {
        out.extend(if little { value.to_le_bytes() } else { value.to_be_bytes() });
    };
    let u16s = |out: &mut Vec<u8>, value: u16| {
        out.extend(if little { value.to_le_bytes() } else { value.to_be_bytes() });
    };
    u32s(&mut out, 0x6561_7407);
    u32s(&mut out, 1);
    u64s(&mut out, t);
    u64s(&mut out, sector);
    for value in [bytes, action, 7, 8 << 20 | 16, 0] {
        u32s(&mut out, value);
    }
    u16s(&mut out, 0);
    u16s(&mut out, u16::try_from(pdu.len()).unwrap());
    out.extend_from_slice(pdu);
    out
}

#[test]
fn blktrace_in_both_byte_orders() {
    let issue = 7 | (0x40 | 2 | 8) << 16;
    let complete = 8 | (0x80 | 2) << 16;
    for little in [true, false] {
        let mut file = event(little, 5, 0, 0, 0x400 << 16, b"a message");
        file.extend(event(little, 10, 8, 4_096, issue, b""));
        file.extend(event(little, 30, 8, 4_096, complete, b""));
        file.extend(event(little, 40, 8, 4_096, complete, b""));
        file.extend(event(little, 50, 0, 0, 7 | 4 << 16, b""));
        assert_eq!(detect(&file, true), Ok(Format::Blktrace));
        let (records, summary) = read_all(FormatSpec::new(Format::Blktrace), &file).unwrap();
        assert_eq!(row(&records[0]), (10, Write, 0, 4_096, 4_096, Some(20)));
        assert_eq!(records[0].flags, Flags::SYNC);
        assert_eq!((records.len(), records[1].op), (2, Flush));
        assert_eq!(summary.devices, ["8,16"]);
        assert_eq!(summary.warnings.len(), 1, "a completion without issue: {summary:?}");
        file.pop();
        let cut = read_all(FormatSpec::new(Format::Blktrace), &file);
        assert!(matches!(cut, Err(ReadError::Truncated { missing: 1, .. })), "{cut:?}");
    }
}

#[test]
fn tracefs() {
    let text = "# tracer: nop\n\
        kworker/0:1-55 [000] d..1. 12.000005: block_rq_issue: 259,0 WS 4096 () 2048 + 8 be,0,4 [kworker/0:1]\n\
        kworker/0:1-55 [000] d..1. 12.000007: block_rq_issue: 259,0 FF 0 () 0 + 0 none,0,0 [x]\n\
        <idle>-0 [000] d.h1. 12.000105: block_rq_complete: 259,0 WS () 2048 + 8 be,0,4 [0]\n\
        <idle>-0 [000] d.h1. 12.000205: block_rq_complete: 259,0 FF () 18446744073709551615 + 0 none,0,0 [0]\n\
        CPU:1 [LOST 3 EVENTS]\n";
    assert_eq!(
        rows(Format::Tracefs, text),
        [
            (12_000_005_000, Write, 0, 1_048_576, 4_096, Some(100_000)),
            (12_000_007_000, Flush, 0, 0, 0, Some(198_000)),
        ]
    );
    let (_, summary) = read_all(FormatSpec::new(Format::Tracefs), text.as_bytes()).unwrap();
    assert_eq!(summary.dropped_records, 3);
}

/// Of a device that has no requests of its own, such as those of the device mapper.
#[test]
fn tracefs_of_what_is_queued() {
    let text = "fio-9 [000] ..... 3.000001: block_bio_queue: 253,0 WS 2048 + 8 [fio]\n\
        kworker/u4:0-9 [000] ..... 3.000002: block_rq_issue: 254,0 WS 4096 () 4096 + 8 be,0,4 [x]\n\
        kworker/u4:0-9 [000] ..... 3.000031: block_bio_complete: 253,0 WS 2048 + 8 [0]\n";
    let options = ReadOptions { event: Event::Queue, ..Default::default() };
    let mut reader = Reader::new(FormatSpec::new(Format::Tracefs), options).unwrap();
    let mut records = Vec::new();
    reader.push(text.as_bytes(), &mut records).unwrap();
    reader.finish(&mut records).unwrap();
    assert_eq!((records.len(), records[0].lat_ns), (1, Some(30_000)));
    assert_eq!(reader.summary().warnings, Vec::<String>::new());
    assert_eq!(
        rows(Format::Tracefs, text),
        [(3_000_002_000, Write, 0, 2_097_152, 4_096, None)],
        "what is queued is not what is issued"
    );
}

#[test]
fn nbdkit_log() {
    let text = "2026-11-20 18:25:23.558619 Ready thread_model=3\n\
        2026-11-20 18:25:26.904765 connection=3 Read id=1 offset=0x0 count=0x4000 ...\n\
        2026-11-20 18:25:26.904796 connection=3 ...Read id=1 return=0\n\
        2026-11-20 18:25:26.908719 connection=2 Trim id=1 offset=0x1000 count=0x140000000 fua=0 ...\n\
        2026-11-20 18:25:26.912401 connection=2 Zero id=3 offset=0x2000 count=0x1000 trim=1 fua=1 fast=0 ...\n\
        2026-11-20 18:25:26.912901 connection=2 Flush id=4 ...\n";
    let t = 1_795_199_126_000_000_000;
    assert_eq!(
        rows(Format::NbdkitLog, text),
        [
            (t + 904_765_000, Read, 0, 0, 16_384, Some(31_000)),
            (t + 908_719_000, Trim, 0, 4_096, 5_368_709_120, None),
            (t + 912_401_000, WriteZeroes, 0, 8_192, 4_096, None),
            (t + 912_901_000, Flush, 0, 0, 0, None),
        ]
    );
}

#[test]
fn fio_iolog() {
    let text = "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb write 4096 8192\n\
                /dev/sdb sync 0 0\n/dev/sdb wait 150 0\n/dev/sdb trim 0 4096\n/dev/sdb close\n";
    assert_eq!(
        rows(Format::FioIolog, text),
        [
            (0, Write, 0, 4_096, 8_192, None),
            (0, Flush, 0, 0, 0, None),
            (150_000, Trim, 0, 0, 4_096, None),
        ]
    );
    let text = "fio version 3 iolog\n0 f add\n1 f open\n25 f read 512 1024\n30 f datasync 0 0\n";
    assert_eq!(
        rows(Format::FioIolog, text),
        [(25_000, Read, 0, 512, 1_024, None), (30_000, Flush, 0, 0, 0, None)]
    );
    let untimed = |text: &str| {
        read_all(FormatSpec::new(Format::FioIolog), text.as_bytes()).unwrap().1.untimed
    };
    assert!(untimed("fio version 2 iolog\nf write 0 1\n"));
    assert!(!untimed("fio version 3 iolog\n0 f write 0 1\n"));
}

#[test]
fn vscsi() {
    let one = |command: u16, t: u64| {
        let mut out = Vec::new();
        for value in [1_u32, 4_096, 1] {
            out.extend(value.to_le_bytes());
        }
        out.extend(command.to_le_bytes());
        out.extend(0x0100_u16.to_le_bytes());
        out.extend(10_u64.to_le_bytes());
        out.extend(t.to_le_bytes());
        out
    };
    let file: Vec<u8> = (0..20).flat_map(|n| one(0x2A, n)).collect();
    assert_eq!(detect(&file, true), Ok(Format::Vscsi1));
    let (records, _) = read_all(FormatSpec::new(Format::Vscsi1), &file).unwrap();
    assert_eq!(row(&records[3]), (3_000, Write, 0, 5_120, 4_096, None));
    let two = |t: u64| {
        let mut out = Vec::new();
        out.extend(0x88_u16.to_le_bytes());
        out.extend(0x0200_u16.to_le_bytes());
        for value in [1_u32, 512, 1] {
            out.extend(value.to_le_bytes());
        }
        for value in [10_u64, t, 5] {
            out.extend(value.to_le_bytes());
        }
        out
    };
    let file: Vec<u8> = (0..20).flat_map(two).collect();
    assert_eq!(detect(&file, true), Ok(Format::Vscsi2));
    let (records, _) = read_all(FormatSpec::new(Format::Vscsi2), &file).unwrap();
    assert_eq!(row(&records[3]), (3_000, Read, 0, 5_120, 512, Some(5_000)));
    let text = "version,time,op,size,lbn\n1,0.5,0x2a,4096,10\n1,1,28,512,8\n1,2,12,36,0\n";
    assert_eq!(
        rows(Format::VscsiCsv, text),
        [(500_000_000, Write, 0, 5_120, 4_096, None), (1_000_000_000, Read, 0, 4_096, 512, None)]
    );
}

#[test]
fn onefold_csv() {
    let text =
        "t_ns,op,sector512,nsect,flags,lat_ns\n0,R,8,8,A,65000\n5,W,0,16,SMF,-1\n7,F,0,0,,9\n";
    assert_eq!(
        rows(Format::OnefoldCsv, text),
        [
            (0, Read, 0, 4_096, 4_096, Some(65_000)),
            (5, Write, 0, 0, 8_192, None),
            (7, Flush, 0, 0, 0, Some(9)),
        ]
    );
    let (records, _) = read_all(FormatSpec::new(Format::OnefoldCsv), text.as_bytes()).unwrap();
    assert_eq!(records[1].flags, Flags::SYNC.with(Flags::META).with(Flags::FUA));
}

#[test]
fn oracle_general_is_refused_unless_it_is_a_cache_study() {
    let spec = FormatSpec::new(Format::OracleGeneral);
    assert!(matches!(Reader::new(spec, ReadOptions::default()), Err(ReadError::NoReadWriteFlag)));
    let mut file = 3_u32.to_le_bytes().to_vec();
    file.extend(9_u64.to_le_bytes());
    file.extend(4_096_u32.to_le_bytes());
    file.extend((-1_i64).to_le_bytes());
    let (records, _) = read_all(spec, &file).unwrap();
    assert_eq!(row(&records[0]), (3_000_000_000, Read, 0, 4_608, 4_096, None));
}

#[test]
fn nothing_is_guessed() {
    assert_eq!(detect(b"", true), Err(DetectError::Empty));
    assert!(matches!(detect(b"hello\nworld\n", true), Err(DetectError::Unknown { .. })));
    assert!(matches!(detect(&[0; 4096], true), Err(DetectError::Unknown { .. })));
    assert_eq!(detect(b"PAR1....", true), Ok(Format::Parquet));
    assert_eq!(detect(b"OFTRACE\0....", true), Ok(Format::Oft));
    // One bad line in twenty is a bad line, not another format; two are too many.
    let good = "1,W,4096,4096,5\n".repeat(19);
    assert_eq!(detect((good.clone() + "?\n").as_bytes(), true), Ok(Format::Alibaba));
    assert!(detect((good + "?\n?\n").as_bytes(), true).is_err());
}

#[test]
fn bad_lines_are_placed() {
    let good = "t_ns,op,sector512,nsect,flags,lat_ns\n0,R,8,8,A,65000\n";
    for (line, column, expected) in [
        ("0,X,8,8,A,1", 3, "an operation of R W F D Z"),
        ("0,R,8,0,A,1", 7, "a read or write of 1 byte to 4 GiB"),
        ("0,R,99999999999999999999,8,A,1", 5, "a sector"),
        ("0,R,36028797018963967,9,A,1", 23, "a request that ends below 2^64 bytes"),
        ("0,R,8", 6, "a comma"),
        ("0,R,8,8,A,1,2", 12, "the end of the line"),
    ] {
        let text = format!("{good}{line}\n{good}");
        let error = read_all(FormatSpec::new(Format::OnefoldCsv), text.as_bytes()).unwrap_err();
        let ReadError::Line { line: number, column: at, byte, expected: what, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!((*number, *at, *what), (3, column, expected), "{line}");
        assert_eq!(*byte, good.len() as u64 + column - 1);
    }
}
