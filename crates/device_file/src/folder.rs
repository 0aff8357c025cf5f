//! Paths of a file that start at its folder, from the root.

use crate::model::{DeviceFile, Program, Source};
use std::path::Path;

impl DeviceFile {
    /// The same with paths that start at the root, where they start at a folder: so that files of several folders can be one device.
    #[must_use]
    pub fn rooted_at(mut self, folder: &Path) -> DeviceFile {
        let root = |path: &mut String| {
            // A path that starts at the root replaces what it is joined to.
            let joined = folder.join(&*path);
            // Steps that stay where they are make no other file.
            let steps: std::path::PathBuf = joined.components().collect();
            *path = steps.to_string_lossy().into_owned();
        };
        let program = |program: &mut Program| {
            root(&mut program.path);
            program.include.iter_mut().for_each(root);
        };
        let device = &mut self.device;
        root(&mut device.socket);
        let of_device = [
            &mut device.grpc_cert,
            &mut device.grpc_key,
            &mut device.grpc_client_ca,
            &mut device.captures,
            &mut device.uploads,
            &mut device.audit,
        ];
        of_device.into_iter().flatten().for_each(root);
        device.operator_token_file.iter_mut().for_each(root);
        for tenant in &mut self.tenants {
            tenant.token_file.iter_mut().chain(&mut tenant.folder).for_each(root);
        }
        for switch in &mut self.switches {
            match &mut switch.source {
                Source::Image(path) => root(path),
                Source::Program(source) => program(source),
            }
            switch.entries.iter_mut().for_each(root);
        }
        self.classify.iter_mut().for_each(program);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_root_once() {
        let text = "[device]\nsocket = \"a.sock\"\n[[switch]]\nname = \"s\"\nimage = \"./b/c.mimg\"\nentries = [\"/e.txt\"]\n";
        let file = DeviceFile::parse("t", text).unwrap().rooted_at(Path::new("/d"));
        assert_eq!(file.device.socket, "/d/a.sock");
        assert_eq!(file.switches[0].source, Source::Image("/d/b/c.mimg".into()));
        assert_eq!(file.switches[0].entries, ["/e.txt"]);
        assert_eq!(file.clone().rooted_at(Path::new("/other")), file);
    }
}
