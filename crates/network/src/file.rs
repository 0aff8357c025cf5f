//! The text of a file to a checked model, and back.

mod check;
mod keys;
mod parse;
mod print;
mod report;
mod routes;

use crate::limits::MAX_FILE;
use crate::model::Network;
use millrace_toml_sections::{MAX_NAME, Problems, read_document};

impl Network {
    /// Reads the text of a file that names no reports of programs. `name` is what problems call the file.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Network, Problems> {
        Network::parse_with_reports(name, text, &mut |_| Err("no other file is read here".to_owned()))
    }

    /// Reads the text of a file. `reports` gives the text of each report of `millrace bounds` that the file names, or says why there is none.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse_with_reports(
        name: &str,
        text: &str,
        reports: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Network, Problems> {
        read_document(name, text, (MAX_FILE, "MAX_FILE"), |document, findings| {
            let draft = parse::draft(document, reports, findings);
            check::check(draft, true, findings)
        })
    }

    /// As [`Network::parse_with_reports`], of a file whose CRC need not be its own.
    ///
    /// # Errors
    /// Everything else that is wrong.
    pub fn parse_with_any_crc(
        name: &str,
        text: &str,
        reports: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Network, Problems> {
        read_document(name, text, (MAX_FILE, "MAX_FILE"), |document, findings| {
            let draft = parse::draft(document, reports, findings);
            check::check(draft, false, findings)
        })
    }

    /// The text of a file that says the same, with every default written and its CRC.
    pub fn to_toml(&self) -> String {
        print::text(self, Some(self.crc()))
    }

    /// The text that the CRC is made of: that of [`Network::to_toml`] without the CRC, end systems, switches and accounts by their
    /// names, links by their ends, virtual links by their ids. So two files that say the same have the same CRC, whatever their order.
    pub fn canonical(&self) -> String {
        let mut sorted = self.clone();
        sorted.end_systems.sort_by(|a, b| a.name.cmp(&b.name));
        sorted.switches.sort_by(|a, b| a.name.cmp(&b.name));
        sorted.accounts.sort_by(|a, b| a.name.cmp(&b.name));
        for link in &mut sorted.links {
            if !link.one_way && link.between[1] < link.between[0] {
                link.between.reverse();
            }
        }
        sorted.links.sort_by(|a, b| a.between.cmp(&b.between));
        sorted.vls.sort_by_key(|vl| vl.id);
        for vl in &mut sorted.vls {
            vl.routes.sort_by_key(|route| route.network);
            vl.routes.iter_mut().for_each(|route| route.paths.sort());
        }
        print::text(&sorted, None)
    }

    /// CRC-32 of the configuration (that of Ethernet, ISO-HDLC), over [`Network::canonical`].
    pub fn crc(&self) -> u32 {
        crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC).checksum(self.canonical().as_bytes())
    }

    /// As another model is checked: through its text.
    ///
    /// # Errors
    /// Everything that is wrong, with places in [`Network::to_toml`].
    pub fn checked(&self, name: &str) -> Result<Network, Problems> {
        Network::parse(name, &self.to_toml())
    }
}

/// All sections of the file with their keys, as Markdown.
pub fn reference() -> String {
    millrace_toml_sections::reference(&keys::SECTIONS)
}

/// Whether a text is a name of the file.
pub(crate) fn is_label(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_NAME
        && !text.contains([':', ','])
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UPDATE_EXPECT=1 writes it into the page.
    #[test]
    fn the_page_has_the_keys_of_the_crate() {
        const START: &str =
            "<!-- The keys, from here to the end, come from the crate `network`; a test compares them. -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/network.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (before, _) = page.split_once(START).expect("the start of the reference");
        let file = format!("A file has at most {MAX_FILE} bytes (`MAX_FILE`).");
        assert!(before.contains(&file), "{file}");
        let wanted = format!("{before}{START}\n{}", reference().trim_end()) + "\n";
        expect_test::expect_file![path].assert_eq(&wanted);
    }
}
