//! Deduplicated writes of few contents against a plain array of them: every read, and after power cuts
//! nothing but what was written to that unit. For every hash and scope, with a buffer and without, with
//! zeroes unmapped and programmed.

use onefold_ftl::{DedupScope, FtlError, Layout, RemapConfig, RemapScheme};
use onefold_nand::MediaError;
use onefold_ssd::{DedupConfig, HashKind, Ssd, SsdConfig, SsdError};
use onefold_testkit::{Cut, CutMedia, Power, for_each_seed, small_policies};
use onefold_units::Rng;
use onefold_units::convert::{index, index64, low8, narrow};

use super::common::{Rig, config, geometry};

const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];
const UNIT: u64 = 4096;
/// Contents there are: few, so that most writes repeat a unit.
const LETTERS: u64 = 6;

/// What each unit may hold after a power cut: what was durable, and all that was written since, the
/// last one being what it holds now.
type Histories = Vec<Vec<u8>>;

fn random_config(seed: u64, rng: &mut Rng) -> SsdConfig {
    let policies = small_policies();
    let policy = policies[index64(seed) % policies.len()];
    let page = [4096, 8192][index64(rng.below(2))];
    let slots = [0, 32][index64(rng.below(2))];
    let mut config = config(policy, geometry(page, 4096), slots);
    config.ftl.fingerprints = 1 + narrow(rng.below(40));
    config.ftl.dedup_scope = DedupScope::ALL[index64(rng.below(3))];
    config.unmap_zeroes = rng.below(2) == 0;
    config.ftl.remap = RemapConfig {
        scheme: [RemapScheme::Ln, RemapScheme::Lh][index64(rng.below(2))],
        log_bytes: 16 << 10,
        segment_bytes: 128,
        max_refs: [0, 3][index64(rng.below(2))],
        ..RemapConfig::OFF
    };
    let hash = Some(HashKind::ALL[index64(rng.below(3))]);
    config.dedup = DedupConfig { hash, key: [low8(seed % 256); 32], ..DedupConfig::DEFAULT };
    config
}

fn page(letter: u8) -> Vec<u8> {
    let mut page = vec![letter; index64(UNIT)];
    // Contents that differ at the end only.
    if letter > 0 {
        page[..4000].fill(1);
    }
    page
}

/// `false` if power failed.
fn step(rig: &mut Rig<CutMedia>, histories: &mut Histories, rng: &mut Rng) -> bool {
    rig.now += 150_000;
    let lpn = rng.below(histories.len().try_into().unwrap());
    let history = &mut histories[index64(lpn)];
    let done = match rng.below(20) {
        0..14 => {
            let letter = low8(rng.below(1 + LETTERS));
            history.push(letter);
            rig.write(lpn * UNIT, &page(letter), false)
        }
        14..18 => rig.read(lpn * UNIT, UNIT).map(|found| {
            assert!(found == page(history[history.len() - 1]), "unit {lpn}");
        }),
        18 => {
            history.push(0);
            rig.trim(lpn * UNIT, UNIT)
        }
        _ => rig.flush().map(|()| {
            for history in histories {
                history.drain(..history.len() - 1);
            }
        }),
    };
    match done {
        Ok(()) => true,
        Err(SsdError::Ftl(FtlError::Media(MediaError::PowerLost))) => false,
        Err(error) => panic!("{error}"),
    }
}

fn run(seed: u64, power: Power, shared: &mut u64) {
    let mut rng = Rng::fork(seed, 8);
    let config = random_config(seed, &mut rng);
    let layout = Layout::new(&config.geometry, &config.ftl).unwrap();
    let media = CutMedia::new(&config.geometry, layout.nvram_bytes(), power, seed);
    let mut rig = Rig::new(Ssd::new(config, media).unwrap());
    let mut histories = vec![vec![0]; index(rig.ssd.ftl().host_units())];
    for _ in 0..3 {
        let after = rng.below(300);
        rig.ssd.ftl_mut().nand_mut().media_mut().arm(after, CUTS[index64(rng.below(3))]);
        while step(&mut rig, &mut histories, &mut rng) {}
        *shared += rig.ssd.ftl().remap_stats().deduplicated;
        let mut media = rig.ssd.into_media();
        media.restore();
        let (ssd, report) = Ssd::recover(config, media).unwrap();
        assert_eq!(report.lost_units, 0, "{report:?} with {config:?}");
        rig = Rig::new(ssd);
        for (lpn, history) in (0..).zip(&mut histories) {
            let found = rig.read(lpn * UNIT, UNIT).unwrap();
            let letter = found[index64(UNIT) - 1];
            let known = found == page(letter) && history.contains(&letter);
            assert!(known, "unit {lpn} ends in {letter}, expected {history:?} with {config:?}");
            *history = vec![letter];
        }
        rig.ssd.ftl().check().unwrap();
    }
}

#[test]
fn equal_contents_are_shared_and_survive_device_cuts() {
    let mut shared = 0;
    let test = ("onefold-ssd", "ssd", "equal_contents_are_shared_and_survive_device_cuts");
    for_each_seed(test, 200, |seed| run(seed, Power::Device, &mut shared));
    assert!(shared > 1000, "{shared} writes were deduplicated: too few to show anything");
}

#[test]
fn equal_contents_are_shared_and_survive_host_cuts() {
    let test = ("onefold-ssd", "ssd", "equal_contents_are_shared_and_survive_host_cuts");
    for_each_seed(test, 100, |seed| run(seed, Power::Host, &mut 0));
}

/// Simulated contents have no bytes, so what leaves a buffer has none to be compared.
#[test]
fn a_buffer_and_deduplication_need_bytes() {
    let mut config = config(small_policies()[0], geometry(4096, 4096), 32);
    let scheme = RemapScheme::Opt;
    config.ftl.remap = RemapConfig { scheme, log_bytes: 1 << 20, ..RemapConfig::OFF };
    config.ftl.fingerprints = 10;
    let Err(error) = Ssd::new(config, onefold_nand::NullMedia) else { panic!("it was built") };
    assert!(error.to_string().contains("both a buffer and deduplication"), "{error}");
}
