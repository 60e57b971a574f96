//! The areas of a policy are as large as the drive is wide.

use onefold_buffer::PolicySpec;
use onefold_nand::{Geometry, GeometrySpec, NullMedia, Span};
use onefold_ssd::Ssd;

use super::common::config;

/// BAW has a page for each die (Jeong 2021, sec. IV-B): the smallest buffer that `aoi` takes.
#[test]
fn areas_have_a_page_for_each_die_of_the_drive() {
    for (channels, ways) in [(2, 1), (1, 3), (4, 2)] {
        let spec = GeometrySpec {
            channels,
            ways,
            planes: 1,
            blocks: 24,
            pages: 16,
            page_bytes: 4096,
            unit_bytes: 4096,
            span: Span::Device,
        };
        let geometry = Geometry::new(spec).unwrap();
        let with = |slots| {
            let aoi = PolicySpec::parse("aoi").unwrap();
            Ssd::new(config(aoi, geometry, slots), NullMedia).map(drop)
        };
        let dies = channels * ways;
        with(dies).unwrap_or_else(|error| panic!("{channels} x {ways}: {error}"));
        assert!(with(dies - 1).is_err(), "{channels} x {ways}: {} fit", dies - 1);
    }
}
