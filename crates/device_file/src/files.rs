//! Files that a device file names: whether they are there, and where they may be.

use crate::parse::Draft;
use millrace_toml_sections::{Finding, Findings, Kind, quoted};
use std::fs::Metadata;
use std::path::{Component, Path, PathBuf};

/// Whether a path leads into a folder, by its words alone: both start at the root or neither does, and no step leads up.
pub(crate) fn is_inside(path: &str, folder: &str) -> bool {
    let steps = |text| {
        let all = Path::new(text).components();
        all.filter(|step| *step != Component::CurDir).collect::<Vec<_>>()
    };
    let (path, folder) = (steps(path), steps(folder));
    let leads_up = path.iter().chain(&folder).any(|step| *step == Component::ParentDir);
    let is_rooted = |steps: &[Component<'_>]| steps.first() == Some(&Component::RootDir);
    !leads_up && is_rooted(&path) == is_rooted(&folder) && path.starts_with(&folder)
}

/// Looks for the files that are named. Paths that do not start at the root start at a folder.
pub(crate) fn check(draft: &Draft<'_>, folder: &Path, findings: &mut Findings) {
    for file in &draft.files {
        let what = if file.is_folder { "folder" } else { "file" };
        // A pipe or a device might give nothing, or never end: a device that runs would wait for it.
        let is_right = |found: &Metadata| if file.is_folder { found.is_dir() } else { found.is_file() };
        let why = match std::fs::metadata(folder.join(&file.path)) {
            Ok(found) if is_right(&found) => continue,
            Ok(_) => format!("it is no {what}"),
            Err(error) => error.to_string(),
        };
        let message = format!("the {what} {} cannot be used: {why}", quoted(&file.path));
        findings.push(Finding::new(Kind::File, file.at.clone(), message));
    }
    // A link of the file system can lead out of a folder that the words of a path stay in.
    for switch in &draft.switches {
        let tenant = draft.tenants.iter().find(|tenant| Some(&tenant.is.name) == switch.is.tenant.as_ref());
        let Some(inside) = tenant.and_then(|tenant| tenant.is.folder.as_ref()) else { continue };
        let real = |path: &str| -> Option<PathBuf> { folder.join(path).canonicalize().ok() };
        let Some(real_folder) = real(inside) else { continue };
        for (path, at) in switch.files.iter().filter(|(path, _)| is_inside(path, inside)) {
            if let Some(target) = real(path).filter(|target| !target.starts_with(&real_folder)) {
                let message = format!(
                    "{} leads to {}, outside of the folder of its tenant",
                    quoted(path),
                    quoted(&target.to_string_lossy())
                );
                findings.push(Finding::new(Kind::File, at.clone(), message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn a_path_stays_in_its_folder_by_its_words() {
        for (path, folder) in
            [("/a/b/c", "/a/b"), ("a/b", "a"), ("./a/b", "a/"), ("/a", "/"), ("a/./b", "./a"), ("b", ".")]
        {
            assert!(is_inside(path, folder), "{path} {folder}");
        }
        for (path, folder) in [
            ("/a/bc", "/a/b"),
            ("/a/b/../c", "/a/b"),
            ("a/b", "/a"),
            ("/a/b", "a"),
            ("/b", "."),
            ("../a", "."),
            ("b", "a"),
        ] {
            assert!(!is_inside(path, folder), "{path} {folder}");
        }
    }
}
