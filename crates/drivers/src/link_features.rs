//! Features of the device of an interface, as `ethtool -k` has them: whether it can have one and has it, and switched on for a while.

use crate::ethtool::{self, BITSET_NOMASK, NESTED};
use crate::link::LinkName;
use crate::netlink::{Refusal, attributes, put_attribute};

/// Messages and attributes of linux/ethtool_netlink.h.
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_FEATURES_HW: u16 = 2;
const ETHTOOL_A_FEATURES_WANTED: u16 = 3;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BITS_BIT: u16 = 1;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;
const ETHTOOL_A_BITSET_BIT_VALUE: u16 = 3;

/// What a device says of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    /// It can be switched on and off.
    pub(crate) can_change: bool,
    /// It is on.
    pub(crate) is_on: bool,
}

impl Feature {
    /// The feature of this name.
    pub(crate) fn of(link: &LinkName, name: &str) -> Result<Feature, Refusal> {
        let answer = ethtool::ask(link, ETHTOOL_MSG_FEATURES_GET, ETHTOOL_A_FEATURES_HEADER, &[])?;
        Ok(Feature::parse(&answer, name))
    }

    fn parse(answer: &[u8], name: &str) -> Feature {
        let has = |set| attributes(answer).any(|(kind, bits)| kind == set && has_bit(bits, name));
        Feature { can_change: has(ETHTOOL_A_FEATURES_HW), is_on: has(ETHTOOL_A_FEATURES_ACTIVE) }
    }
}

/// Whether a set of bits has the one of this name. In a set with a mask each bit of the mask is listed, and has a value if it is set; in one
/// without those that are set are listed.
fn has_bit(set: &[u8], name: &str) -> bool {
    let has = |bytes, wanted| attributes(bytes).any(|(kind, _)| kind == wanted);
    let is_list = has(set, BITSET_NOMASK);
    let bits = attributes(set)
        .filter(|(kind, _)| *kind == ETHTOOL_A_BITSET_BITS)
        .flat_map(|(_, bits)| attributes(bits));
    let is_named = |bit| {
        let mut names = attributes(bit).filter(|(kind, _)| *kind == ETHTOOL_A_BITSET_BIT_NAME);
        names.any(|(_, found)| found.strip_suffix(&[0]) == Some(name.as_bytes()))
    };
    bits.filter(|(kind, _)| *kind == ETHTOOL_A_BITSET_BITS_BIT)
        .any(|(_, bit)| is_named(bit) && (is_list || has(bit, ETHTOOL_A_BITSET_BIT_VALUE)))
}

/// Switches one feature; whether it is so then is asked with [`Feature::of`].
fn switch(link: &LinkName, name: &str, on: bool) -> Result<(), Refusal> {
    let mut bit = Vec::new();
    put_attribute(&mut bit, ETHTOOL_A_BITSET_BIT_NAME, &[name.as_bytes(), &[0]].concat());
    if on {
        put_attribute(&mut bit, ETHTOOL_A_BITSET_BIT_VALUE, &[]);
    }
    let (mut bits, mut wanted, mut request) = (Vec::new(), Vec::new(), Vec::new());
    put_attribute(&mut bits, ETHTOOL_A_BITSET_BITS_BIT | NESTED, &bit);
    put_attribute(&mut wanted, ETHTOOL_A_BITSET_BITS | NESTED, &bits);
    put_attribute(&mut request, ETHTOOL_A_FEATURES_WANTED | NESTED, &wanted);
    ethtool::ask(link, ETHTOOL_MSG_FEATURES_SET, ETHTOOL_A_FEATURES_HEADER, &request).map(drop)
}

/// A feature that is on for as long as this is there; afterwards it is as before.
#[derive(Debug)]
pub(crate) struct SwitchedOn {
    link: LinkName,
    name: &'static str,
    /// It was off.
    was_changed: bool,
}

impl SwitchedOn {
    /// Switches a feature on.
    ///
    /// # Errors
    /// Why the device does not have it on, for people.
    pub(crate) fn start(link: &LinkName, name: &'static str) -> Result<SwitchedOn, String> {
        let ask = || Feature::of(link, name).map_err(|error| error.to_string());
        let before = ask()?;
        if !before.is_on {
            if !before.can_change {
                return Err(format!("its device cannot do `{name}`"));
            }
            switch(link, name, true).map_err(|error| format!("`{name}` cannot be switched on: {error}"))?;
        }
        let switched = SwitchedOn { link: link.clone(), name, was_changed: !before.is_on };
        match ask()?.is_on {
            true => Ok(switched),
            // Another feature may forbid it; the wish is taken back.
            false => Err(format!("its device does not switch `{name}` on")),
        }
    }
}

impl Drop for SwitchedOn {
    fn drop(&mut self) {
        if self.was_changed {
            // An interface that is gone has no features either.
            let _ = switch(&self.link, self.name, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{in_fresh_namespace, veth_pair};

    /// A set of bits as the kernel has them: index, name, and a value for those that are set.
    fn set(is_list: bool, bits: &[(&str, bool)]) -> Vec<u8> {
        let mut all = Vec::new();
        for (index, (name, is_set)) in bits.iter().enumerate() {
            let mut bit = Vec::new();
            put_attribute(&mut bit, 1, &(index as u32).to_ne_bytes());
            put_attribute(&mut bit, ETHTOOL_A_BITSET_BIT_NAME, &[name.as_bytes(), &[0]].concat());
            if *is_set {
                put_attribute(&mut bit, ETHTOOL_A_BITSET_BIT_VALUE, &[]);
            }
            put_attribute(&mut all, ETHTOOL_A_BITSET_BITS_BIT | NESTED, &bit);
        }
        let mut set = Vec::new();
        if is_list {
            put_attribute(&mut set, BITSET_NOMASK, &[]);
        }
        put_attribute(&mut set, 2, &64u32.to_ne_bytes());
        put_attribute(&mut set, ETHTOOL_A_BITSET_BITS | NESTED, &all);
        set
    }

    #[test]
    fn features_of_a_card_by_hand() {
        // As of a card that can receive check sequences and does not, and has its receive checksums on for good.
        let mut answer = Vec::new();
        let hw = set(
            false,
            &[("rx-fcs", true), ("rx-all", true), ("rx-checksum", false), ("rx-fcs-other", false)],
        );
        put_attribute(&mut answer, ETHTOOL_A_FEATURES_HW | NESTED, &hw);
        put_attribute(&mut answer, ETHTOOL_A_FEATURES_WANTED | NESTED, &set(true, &[("rx-fcs", false)]));
        let active = set(true, &[("rx-checksum", false), ("rx-all", false)]);
        put_attribute(&mut answer, ETHTOOL_A_FEATURES_ACTIVE | NESTED, &active);
        let of = |name| {
            let Feature { can_change, is_on } = Feature::parse(&answer, name);
            (can_change, is_on)
        };
        assert_eq!(of("rx-fcs"), (true, false));
        assert_eq!(of("rx-all"), (true, true));
        assert_eq!(of("rx-checksum"), (false, true));
        assert_eq!(of("rx-fcs-other"), (false, false));
        assert_eq!(of("rx-fc"), (false, false));
        for end in 0..answer.len() {
            Feature::parse(&answer[..end], "rx-all");
        }
    }

    #[test]
    fn a_veth_cannot_receive_check_sequences_and_can_switch_others() {
        in_fresh_namespace("a_veth_cannot_receive_check_sequences_and_can_switch_others", || {
            veth_pair("va", "vb");
            let link = LinkName::new("packet", "va").unwrap();
            let fcs = SwitchedOn::start(&link, "rx-fcs").unwrap_err();
            assert_eq!(fcs, "its device cannot do `rx-fcs`");
            let feature = || Feature::of(&link, "tx-gso-partial").unwrap();
            assert!(!feature().is_on && SwitchedOn::start(&link, "tx-gso-partial").is_err());
            // One that it can: it comes back to how it was.
            let gro = || Feature::of(&link, "rx-gro").unwrap();
            switch(&link, "rx-gro", false).unwrap();
            assert_eq!(gro(), Feature { can_change: true, is_on: false });
            let on = SwitchedOn::start(&link, "rx-gro").unwrap();
            let again = SwitchedOn::start(&link, "rx-gro").unwrap();
            assert!(gro().is_on);
            drop(again);
            assert!(gro().is_on, "it was on before");
            drop(on);
            assert!(!gro().is_on);
            let gone = LinkName::new("packet", "gone").unwrap();
            assert!(SwitchedOn::start(&gone, "rx-fcs").unwrap_err().contains("No such device"));
        });
    }
}
