//! The volumes: what their generators are given, and what the originals were measured to be.

use super::figures::PageFigures;

/// Everything a look-alike of a volume needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Preset {
    /// The word of the specification language.
    pub(super) name: &'static str,
    /// GiB read and written by the whole original (Jeong 2021, Table 1).
    pub(super) gib: f64,
    pub(super) read_share: f64,
    /// Popularity of starts, in the order of [`FITS`].
    pub(super) fits: [Fit; 2],
    /// Share of requests of several pages, and their mean size.
    pub(super) multi: f64,
    pub(super) mean: f64,
    /// Pages that are only read; the first `loop_pages` of them also one after another.
    pub(super) read_only: u64,
    pub(super) loop_pages: u64,
    pub(super) loop_share: f64,
    /// The original's figures.
    pub(super) wanted: PageFigures,
}

/// The words for the two fits.
pub(super) const FITS: [(&str, usize); 2] = [("pages", 0), ("requests", 1)];

/// A popularity, and what it leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    /// (rank + q)^-s over `pages` pages.
    pub(super) s: f64,
    pub(super) q: f64,
    pub(super) pages: u64,
    /// Share of accesses that repeat the start of one of the last `distance`.
    pub(super) rho: f64,
    pub(super) distance: u64,
    /// The figures of this generator over as many page writes as wanted, with seed 1.
    pub(super) reached: PageFigures,
}

const fn fit(
    (s, q, pages): (f64, f64, u64),
    (rho, distance): (f64, u64),
    reached: PageFigures,
) -> Fit {
    Fit { s, q, pages, rho, distance, reached }
}

/// A volume without a loop.
const fn volume(
    name: &'static str,
    gib: f64,
    read_share: f64,
    (multi, mean): (f64, f64),
    read_only: u64,
    wanted: PageFigures,
    fits: [Fit; 2],
) -> Preset {
    Preset {
        name,
        gib,
        read_share,
        fits,
        multi,
        mean,
        read_only,
        loop_pages: 0,
        loop_share: 0.0,
        wanted,
    }
}

const fn figures(
    page_writes: u64,
    (rewrite_share, top1_share): (f64, f64),
    max_writes: u64,
    (median_gap, p90_gap): (u64, u64),
) -> PageFigures {
    PageFigures { page_writes, rewrite_share, top1_share, max_writes, median_gap, p90_gap }
}

/// Volumes of Microsoft Research Cambridge (2007). The figures of the originals and the first fit are
/// those of the buffer specification; the second fit was found by the search of the example
/// `calibration`, which also prints both beside the originals.
pub(super) const PRESETS: [Preset; 7] = [
    volume(
        "like-mds_0-pages",
        10.6,
        0.30,
        (0.31, 5.6),
        731_244,
        figures(2_050_000, (0.958, 0.620), 117_036, (204, 69_900)),
        [
            fit(
                (1.02, 0.8, 91_351),
                (0.4, 4096),
                figures(2_050_000, (0.958, 0.570), 46_475, (803, 127_275)),
            ),
            fit(
                (1.096, 0.21, 111_217),
                (0.487, 71_468),
                figures(2_050_000, (0.958, 0.686), 94_126, (253, 62_740)),
            ),
        ],
    ),
    volume(
        "like-hm_0-pages",
        30.4,
        0.33,
        (0.22, 6.9),
        182_401,
        figures(4_530_000, (0.907, 0.425), 109_129, (8_426, 312_000)),
        [
            fit(
                (0.86, 0.3, 450_611),
                (0.2, 4096),
                figures(4_530_000, (0.906, 0.388), 42_196, (29_997, 783_178)),
            ),
            fit(
                (0.907, 0.08, 473_332),
                (0.361, 15_689),
                figures(4_530_000, (0.908, 0.459), 70_995, (8_703, 660_437)),
            ),
        ],
    ),
    volume(
        "like-prxy_0-pages",
        56.8,
        0.05,
        (0.14, 4.9),
        27_088,
        figures(4_440_000, (0.981, 0.727), 34_884, (615, 4_970)),
        [
            fit(
                (1.42, 51.8, 100_219),
                (0.1, 16_384),
                figures(4_440_000, (0.980, 0.687), 32_188, (875, 56_148)),
            ),
            fit(
                (1.571, 72.01, 259_415),
                (0.627, 11_585),
                figures(4_440_000, (0.982, 0.721), 31_401, (377, 14_745)),
            ),
        ],
    ),
    volume(
        "like-prn_0-pages",
        59.0,
        0.22,
        (0.23, 8.6),
        313_228,
        figures(6_730_000, (0.823, 0.545), 101_932, (1_709, 258_000)),
        [
            fit(
                (0.96, 2.7, 2_441_835),
                (0.3, 16_384),
                figures(6_730_000, (0.817, 0.491), 41_539, (11_572, 1_128_097)),
            ),
            fit(
                (1.012, 1.17, 4_000_000),
                (0.452, 2_896),
                figures(6_730_000, (0.833, 0.573), 83_312, (1_685, 589_018)),
            ),
        ],
    ),
    Preset {
        loop_pages: 9000,
        loop_share: 0.75,
        ..volume(
            "like-usr_0-pages",
            48.3,
            0.73,
            (0.54, 9.8),
            477_638,
            figures(3_590_000, (0.953, 0.605), 119_570, (356, 133_000)),
            [
                fit(
                    (1.02, 2.0, 181_111),
                    (0.4, 4096),
                    figures(3_590_000, (0.952, 0.535), 40_129, (2_411, 278_139)),
                ),
                fit(
                    (1.091, 0.26, 216_911),
                    (0.503, 3_756),
                    figures(3_590_000, (0.953, 0.676), 79_147, (414, 126_248)),
                ),
            ],
        )
    },
    volume(
        "like-rsrch_0-pages",
        12.2,
        0.11,
        (0.30, 5.2),
        17_895,
        figures(2_890_000, (0.974, 0.544), 125_991, (287, 54_000)),
        [
            fit(
                (0.98, 0.9, 75_878),
                (0.5, 16_384),
                figures(2_890_000, (0.974, 0.513), 55_853, (1_075, 135_107)),
            ),
            fit(
                (1.038, 0.44, 81_022),
                (0.694, 17_867),
                figures(2_890_000, (0.974, 0.602), 95_701, (301, 53_383)),
            ),
        ],
    ),
    volume(
        "like-wdev_0-pages",
        9.8,
        0.28,
        (0.26, 6.2),
        47_909,
        figures(1_930_000, (0.953, 0.543), 83_540, (198, 82_600)),
        [
            fit(
                (0.96, 0.7, 92_640),
                (0.5, 4096),
                figures(1_930_000, (0.954, 0.486), 33_797, (1_220, 152_413)),
            ),
            fit(
                (1.017, 0.23, 112_786),
                (0.694, 1_117),
                figures(1_930_000, (0.953, 0.573), 61_423, (202, 73_959)),
            ),
        ],
    ),
];
