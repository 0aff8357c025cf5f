//! Compiles what DPDK has as inline functions, with the feature `dpdk`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk::build();
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::process::Command;

    const SOURCE: &str = "src/dpdk/shim.c";
    /// The libraries that the driver calls. Those of devices are loaded when a process starts DPDK.
    const LIBRARIES: [&str; 4] = ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_eal"];

    pub(super) fn build() {
        println!("cargo::rerun-if-changed={SOURCE}");
        println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
        let mut shim = cc::Build::new();
        for flag in pkg_config("--cflags") {
            // Its headers are the system's, whose warnings are not ours.
            match flag.strip_prefix("-I") {
                Some(path) => shim.flag("-isystem").flag(path),
                None => shim.flag(&flag),
            };
        }
        shim.file(SOURCE).opt_level(3).warnings(true).extra_warnings(true).compile("millrace_dpdk");
        for flag in pkg_config("--libs-only-L") {
            if let Some(path) = flag.strip_prefix("-L") {
                println!("cargo::rustc-link-search=native={path}");
            }
        }
        LIBRARIES.iter().for_each(|library| println!("cargo::rustc-link-lib=dylib={library}"));
    }

    /// What pkg-config says of DPDK.
    fn pkg_config(question: &str) -> Vec<String> {
        let answer = Command::new("pkg-config").args([question, "libdpdk >= 22.11"]).output();
        let answer = answer.unwrap_or_else(|error| panic!("the feature `dpdk` needs pkg-config: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            answer.status.success(),
            "the feature `dpdk` needs DPDK 22.11 or later (Debian: libdpdk-dev): {}",
            text(&answer.stderr)
        );
        text(&answer.stdout).split_whitespace().map(str::to_owned).collect()
    }
}
