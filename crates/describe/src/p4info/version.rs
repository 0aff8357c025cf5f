//! P4Info for controllers that were made for an older P4Runtime: their readers of text and JSON refuse fields that they do
//! not know. (Those of the binary form pass over them.)

use millrace_messages::config::{MeterSpec, P4Info, meter_spec};

/// A version of P4Runtime, by what its P4Info can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 1.3
    V1_3,
    /// 1.4
    V1_4,
    /// 1.5
    V1_5,
}

/// Takes out the fields that are younger than a version: 1.4 and 1.5 have brought some.
pub fn keep_to(version: Version, info: &mut P4Info) {
    if version < Version::V1_5 {
        info.action_profiles.iter_mut().for_each(|profile| profile.weights_disallowed = false);
    }
    if version < Version::V1_4 {
        info.pkg_info.iter_mut().for_each(|package| package.platform_properties = None);
        for table in &mut info.tables {
            table.initial_default_action = None;
            table.has_initial_entries = false;
        }
        info.action_profiles.iter_mut().for_each(|profile| profile.selector_size_semantics = None);
        let type_before = |spec: &mut Option<MeterSpec>| {
            spec.iter_mut().for_each(|spec| spec.set_type(meter_spec::Type::default()));
        };
        info.meters.iter_mut().for_each(|meter| type_before(&mut meter.spec));
        info.direct_meters.iter_mut().for_each(|meter| type_before(&mut meter.spec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_messages::text::{Style, read, write};

    const TEXT: &str = "pkg_info {\n  arch: \"v1model\"\n  platform_properties {\n    multicast_group_table_size: 7\n  }\n}\n\
        tables {\n  preamble {\n    id: 33554433\n    name: \"t\\303\\251\"\n  }\n  initial_default_action {\n    \
        action_id: 5\n  }\n  size: 9\n  has_initial_entries: true\n}\n\
        action_profiles {\n  preamble {\n    id: 3\n  }\n  sum_of_members {\n    max_member_weight: 3\n  }\n  \
        weights_disallowed: true\n}\n\
        meters {\n  preamble {\n    id: 4\n  }\n  spec {\n    unit: BYTES\n    type: SINGLE_RATE_TWO_COLOR\n  }\n}\n";

    fn kept(version: Version) -> P4Info {
        let mut info = read(TEXT).unwrap();
        keep_to(version, &mut info);
        info
    }

    /// The fields of each release are those of its p4info.proto, tags v1.3.0, v1.4.1 and v1.5.0 of p4lang/p4runtime.
    #[test]
    fn older_controllers_get_what_they_know() {
        assert_eq!(write(&kept(Version::V1_5), Style::Lines), TEXT);
        let mut expected: P4Info = read(TEXT).unwrap();
        expected.action_profiles[0].weights_disallowed = false;
        assert_eq!(kept(Version::V1_4), expected);
        assert_eq!(
            write(&kept(Version::V1_3), Style::Lines),
            "pkg_info {\n  arch: \"v1model\"\n}\n\
             tables {\n  preamble {\n    id: 33554433\n    name: \"t\\303\\251\"\n  }\n  size: 9\n}\n\
             action_profiles {\n  preamble {\n    id: 3\n  }\n}\n\
             meters {\n  preamble {\n    id: 4\n  }\n  spec {\n    unit: BYTES\n  }\n}\n"
        );
    }
}
