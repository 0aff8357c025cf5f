//! The text of a wrapper: an instance of the device, and for each port what is between it and its pins.

use super::{Phy, PinClock, Wrapper};
use crate::target::Target;
use millrace_netlist::verilog::{VerilogFile, VerilogPort};
use millrace_netlist::{Design, Direction};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The name of the wrapper.
const TOP: &str = "device_phy";
/// Xilinx' core with the clocks of the transceivers in it, and without.
const SHARED: &str = "ten_gig_eth_pcs_pma_shared";
const CHANNEL: &str = "ten_gig_eth_pcs_pma_channel";

/// What the core with the clocks has for the others of its quad: with `_out` there.
const QUAD: [&str; 9] = [
    "txusrclk",
    "txusrclk2",
    "gttxreset",
    "gtrxreset",
    "txuserrdy",
    "qplllock",
    "qplloutclk",
    "qplloutrefclk",
    "reset_counter_done",
];
/// What only that core has, and only the others.
const OF_SHARED: [(&str, &str); 7] = [
    ("refclk_p", "refclk_p"),
    ("refclk_n", "refclk_n"),
    ("reset", "rst"),
    ("coreclk_out", "device_clk"),
    ("areset_datapathclk_out", "areset_coreclk"),
    ("rxrecclk_out", "recovered0"),
    ("resetdone_out", "ready"),
];
const OF_CHANNEL: [(&str, &str); 3] =
    [("coreclk", "device_clk"), ("areset", "rst"), ("areset_coreclk", "areset_coreclk")];
/// The ports by which the core reaches the registers of its transceiver: it alone does.
const DRP: [(&str, &str); 14] = [
    ("drp_req", "request"),
    ("drp_gnt", "request"),
    ("drp_den_o", "enable"),
    ("drp_den_i", "enable"),
    ("drp_dwe_o", "write"),
    ("drp_dwe_i", "write"),
    ("drp_daddr_o", "address"),
    ("drp_daddr_i", "address"),
    ("drp_di_o", "in"),
    ("drp_di_i", "in"),
    ("drp_drdy_o", "ready"),
    ("drp_drdy_i", "ready"),
    ("drp_drpdo_o", "out"),
    ("drp_drpdo_i", "out"),
];

/// A part that does not depend on the device: its module, and its file.
fn part(module: &str) -> &'static str {
    match module {
        "gmii_elastic" => include_str!("gmii_elastic.sv"),
        "rgmii_ecp5" => include_str!("rgmii_ecp5.sv"),
        "rgmii_xc7" => include_str!("rgmii_xc7.sv"),
        "clocks_xc7" => include_str!("clocks_xc7.sv"),
        _ => include_str!("reset_synchroniser.sv"),
    }
}

/// A wrapper while it is written.
struct Text {
    /// The ports that are not the device's.
    ports: Vec<VerilogPort>,
    body: String,
    clocks: Vec<PinClock>,
    parts: BTreeSet<&'static str>,
}

pub(super) fn wrapper(phy: Phy, target: Target, device: &VerilogFile, ports: u32) -> Wrapper {
    let mut text = Text {
        ports: Vec::new(),
        body: String::new(),
        clocks: Vec::new(),
        parts: BTreeSet::from(["reset_synchroniser"]),
    };
    text.input("rst", 1);
    text.output("device_clk", 1);
    text.output("device_rst", 1);
    text.clocks(phy, target);
    for port in 0..ports {
        match phy {
            Phy::Gmii => text.gmii(port),
            Phy::RgmiiRxid | Phy::RgmiiId => text.rgmii(phy, target, port),
            Phy::XilinxPcsPma => text.pcs_pma(port),
        }
    }
    text.device(device);
    let cores = if phy == Phy::XilinxPcsPma { cores(ports) } else { String::new() };
    let Text { ports, body, clocks, parts } = text;
    let head = format!("module {TOP} (\n    {}\n);\n", VerilogPort::declared(&ports));
    let file = |module: &str, text: String, is_clocked, ports| VerilogFile {
        module: module.to_owned(),
        text,
        is_clocked,
        ports,
    };
    let mut files: Vec<VerilogFile> =
        parts.into_iter().map(|module| file(module, part(module).to_owned(), true, Vec::new())).collect();
    let is_clocked = clocks.iter().any(|clock| clock.port == Design::CLOCK);
    files.push(file(TOP, format!("{}{head}{body}endmodule\n", about(phy)), is_clocked, ports));
    Wrapper { files, clocks, cores, needs_pins: phy != Phy::Gmii }
}

/// What the wrapper is, for who reads it.
fn about(phy: Phy) -> String {
    let what = match phy {
        Phy::Gmii => "PHYs on GMII. clk has 125 MHz.",
        Phy::RgmiiRxid => {
            "PHYs on RGMII of 1 Gbit/s that delay the clock of what they send (RGMII-RXID). clk has 125 MHz."
        }
        Phy::RgmiiId => "PHYs on RGMII of 1 Gbit/s that delay both clocks (RGMII-ID). clk has 125 MHz.",
        Phy::XilinxPcsPma => {
            "transceivers for 10GBASE-R. refclk has 156.25 MHz; dclk is the clock that the cores ask for at their registers."
        }
    };
    format!(
        "// The device with {what} rst begins at once, and may come at any time.\n\
         // What is not of the PHYs are the ports of the device, with the clock device_clk; device_rst is 1 while it is reset.\n"
    )
}

/// How Vivado makes the cores: one with the clocks in it, others without.
fn cores(ports: u32) -> String {
    let mut text = String::from("create_project -in_memory -part $part\n");
    for (module, level) in [(SHARED, 1), (CHANNEL, 0)].into_iter().take(ports.min(2) as usize) {
        let _ = write!(
            text,
            "create_ip -vendor xilinx.com -library ip -name ten_gig_eth_pcs_pma -module_name {module}\n\
             set_property CONFIG.SupportLevel {{{level}}} [get_ips {module}]\n\
             generate_target all [get_ips {module}]\n\
             synth_ip [get_ips {module}]\n"
        );
    }
    text
}

/// What a core of a port is connected to, whether the clocks are in it or not.
fn own_connections(port: u32) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut connect = |name: &str, to: String| all.push((name.to_owned(), to));
    for name in ["txp", "txn", "rxp", "rxn", "signal_detect", "tx_fault", "tx_disable", "core_status"] {
        connect(name, format!("sfp{port}_{name}"));
    }
    connect("xgmii_txd", format!("tx{port}_data"));
    connect("xgmii_txc", format!("tx{port}_control"));
    connect("xgmii_rxd", format!("rx{port}_data"));
    connect("xgmii_rxc", format!("rx{port}_control"));
    connect("status_vector", format!("status{port}"));
    for (name, to) in DRP {
        connect(name, format!("drp{port}_{to}"));
    }
    // What the core has after a reset (the timer of 125 us), and 10GBASE-SR.
    connect("configuration_vector", "{136'd0, 16'h4c4b, 384'd0}".to_owned());
    connect("pma_pmd_type", "3'b111".to_owned());
    connect("sim_speedup_control", "1'b0".to_owned());
    connect("dclk", "dclk".to_owned());
    all
}

impl Text {
    fn put(&mut self, name: &str, width: u32, direction: Direction) {
        self.ports.push(VerilogPort { name: name.to_owned(), width, direction });
    }

    fn input(&mut self, name: &str, width: u32) {
        self.put(name, width, Direction::In);
    }

    fn output(&mut self, name: &str, width: u32) {
        self.put(name, width, Direction::Out);
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.body, "    {line}");
    }

    /// A clock that is a pin.
    fn clock(&mut self, port: &str, period_ps: u32) {
        self.input(port, 1);
        self.clocks.push(PinClock { port: port.to_owned(), period_ps, data: Vec::new() });
    }

    /// The clock of the device and its reset.
    fn clocks(&mut self, phy: Phy, target: Target) {
        match (phy, target) {
            (Phy::XilinxPcsPma, _) => {
                self.clock("refclk_p", 6400);
                ["refclk_n", "dclk"].into_iter().for_each(|name| self.input(name, 1));
                self.line("wire lost = rst;");
            }
            (Phy::RgmiiRxid | Phy::RgmiiId, Target::Xc7) => {
                self.parts.insert("clocks_xc7");
                self.clock(Design::CLOCK, 8000);
                self.line("wire clk_90, locked;");
                self.line(
                    "clocks_xc7 clocks (.clk_125(clk), .rst(rst), .clk(device_clk), .clk_90(clk_90), .locked(locked));",
                );
                self.line("wire lost = rst | ~locked;");
                if phy == Phy::RgmiiId {
                    self.line("wire unused = clk_90;");
                }
            }
            _ => {
                self.clock(Design::CLOCK, 8000);
                self.line("assign device_clk = clk;");
                self.line("wire lost = rst;");
            }
        }
        self.line("reset_synchroniser device_reset (.clk(device_clk), .async_rst(lost), .rst(device_rst));");
    }

    /// The signals of GMII of a port, received with the clock `from`; those at the device are `rx0_data` and so on.
    fn elastic(&mut self, port: u32, from: &str) {
        self.parts.insert("gmii_elastic");
        self.line(&format!("wire rx{port}_rst, rx{port}_dv, rx{port}_er;"));
        self.line(&format!("wire [7:0] rx{port}_data;"));
        self.line(&format!(
            "reset_synchroniser rx{port}_reset (.clk({from}), .async_rst(lost), .rst(rx{port}_rst));"
        ));
        self.line(&format!(
            "gmii_elastic elastic{port} (.rx_clk({from}), .rx_rst(rx{port}_rst), .rx_data(phy{port}_data), .rx_dv(phy{port}_dv), \
             .rx_er(phy{port}_er),"
        ));
        self.line(&format!(
            "    .clk(device_clk), .rst(device_rst), .data(rx{port}_data), .dv(rx{port}_dv), .er(rx{port}_er));"
        ));
    }

    fn gmii(&mut self, port: u32) {
        let pin = |name: &str| format!("gmii{port}_{name}");
        self.clock(&pin("rx_clk"), 8000);
        for (name, width) in [("rx_dv", 1), ("rx_er", 1), ("rxd", 8)] {
            self.input(&pin(name), width);
        }
        for (name, width) in [("gtx_clk", 1), ("tx_en", 1), ("tx_er", 1), ("txd", 8)] {
            self.output(&pin(name), width);
        }
        self.line(&format!("// Port {port}. The PHY takes what is sent in the middle of the cycle."));
        self.line(&format!("reg phy{port}_dv, phy{port}_er;"));
        self.line(&format!("reg [7:0] phy{port}_data;"));
        self.line(&format!("always @(posedge {}) begin", pin("rx_clk")));
        for (name, of) in [("data", "rxd"), ("dv", "rx_dv"), ("er", "rx_er")] {
            self.line(&format!("    phy{port}_{name} <= {};", pin(of)));
        }
        self.line("end");
        self.elastic(port, &pin("rx_clk"));
        self.line(&format!("wire tx{port}_en, tx{port}_er;"));
        self.line(&format!("wire [7:0] tx{port}_data;"));
        self.line(&format!("assign {} = ~device_clk;", pin("gtx_clk")));
        for (name, of) in [("txd", "data"), ("tx_en", "en"), ("tx_er", "er")] {
            self.line(&format!("assign {} = tx{port}_{of};", pin(name)));
        }
    }

    fn rgmii(&mut self, phy: Phy, target: Target, port: u32) {
        let pin = |name: &str| format!("rgmii{port}_{name}");
        self.clock(&pin("rxc"), 8000);
        if let Some(clock) = self.clocks.last_mut() {
            clock.data = vec![pin("rx_ctl"), format!("{}[*]", pin("rxd"))];
        }
        for (name, width) in [("rx_ctl", 1), ("rxd", 4)] {
            self.input(&pin(name), width);
        }
        for (name, width) in [("txc", 1), ("tx_ctl", 1), ("txd", 4)] {
            self.output(&pin(name), width);
        }
        let delays = phy == Phy::RgmiiRxid;
        let (module, values, clock) = match (target, delays) {
            (Target::Ecp5, true) => ("rgmii_ecp5", "", ""),
            (Target::Ecp5, false) => ("rgmii_ecp5", " #(.TX_TAPS(0))", ""),
            (_, true) => ("rgmii_xc7", "", ".txc_clk(clk_90), "),
            (_, false) => ("rgmii_xc7", "", ".txc_clk(device_clk), "),
        };
        self.parts.insert(module);
        self.line(&format!("// Port {port}."));
        self.line(&format!("wire phy{port}_dv, phy{port}_er, tx{port}_en, tx{port}_er;"));
        self.line(&format!("wire [7:0] phy{port}_data, tx{port}_data;"));
        let (of_phy, from) = match target {
            Target::Ecp5 => (String::new(), pin("rxc")),
            _ => {
                self.line(&format!("wire phy{port}_clk;"));
                (format!(".rx_clk(phy{port}_clk), "), format!("phy{port}_clk"))
            }
        };
        let pins = ["rxc", "rx_ctl", "rxd", "txc", "tx_ctl", "txd"];
        let pins = pins.map(|name| format!(".rgmii_{name}({})", pin(name))).join(", ");
        self.line(&format!("{module}{values} rgmii{port} ({pins},"));
        self.line(&format!(
            "    {of_phy}.rx_data(phy{port}_data), .rx_dv(phy{port}_dv), .rx_er(phy{port}_er), .clk(device_clk), {clock}\
             .tx_data(tx{port}_data), .tx_en(tx{port}_en), .tx_er(tx{port}_er));"
        ));
        self.elastic(port, &from);
    }

    /// Port 0 has the clocks of the quad in its core, the others take them from it.
    fn pcs_pma(&mut self, port: u32) {
        let pin = |name: &str| format!("sfp{port}_{name}");
        ["rxp", "rxn"].into_iter().for_each(|name| self.input(&pin(name), 1));
        ["txp", "txn"].into_iter().for_each(|name| self.output(&pin(name), 1));
        self.input(&pin("signal_detect"), 1);
        self.input(&pin("tx_fault"), 1);
        self.output(&pin("tx_disable"), 1);
        self.output(&pin("core_status"), 8);
        self.line(&format!("// Port {port}."));
        self.line(&format!("wire [63:0] rx{port}_data, tx{port}_data;"));
        self.line(&format!("wire [7:0] rx{port}_control, tx{port}_control;"));
        self.line(&format!("wire [447:0] status{port};"));
        self.line(&format!("wire drp{port}_request, drp{port}_enable, drp{port}_write, drp{port}_ready;"));
        self.line(&format!("wire [15:0] drp{port}_address, drp{port}_in, drp{port}_out;"));
        let mut connected = own_connections(port);
        let mut unused = vec![format!("status{port}")];
        let module = match port {
            0 => {
                connected.extend(QUAD.map(|name| (format!("{name}_out"), name.to_owned())));
                connected.extend(OF_SHARED.map(|(name, to)| (name.to_owned(), to.to_owned())));
                let own = ["areset_coreclk", "recovered0", "ready"];
                self.line(&format!("wire {}, {};", QUAD.join(", "), own.join(", ")));
                unused.extend(QUAD.iter().chain(&own).map(|name| (*name).to_owned()));
                SHARED
            }
            _ => {
                connected.extend(QUAD.map(|name| (name.to_owned(), name.to_owned())));
                connected.extend(OF_CHANNEL.map(|(name, to)| (name.to_owned(), to.to_owned())));
                let own = [
                    ("rxrecclk_out", "recovered"),
                    ("txoutclk", "txoutclk"),
                    ("tx_resetdone", "tx_done"),
                    ("rx_resetdone", "rx_done"),
                ]
                .map(|(name, to)| (name.to_owned(), format!("{to}{port}")));
                let names: Vec<String> = own.iter().map(|(_, to)| to.clone()).collect();
                self.line(&format!("wire {};", names.join(", ")));
                unused.extend(names);
                connected.extend(own);
                CHANNEL
            }
        };
        self.line(&format!("wire unused{port} = &{{1'b0, {}}};", unused.join(", ")));
        self.line(&format!("{module} pcs_pma{port} ("));
        let connected = connected.iter().map(|(name, to)| format!("        .{name}({to})"));
        let connected = connected.collect::<Vec<_>>().join(",\n");
        self.body.push_str(&format!("{connected}\n    );\n"));
    }

    /// The device, whose other ports are those of the wrapper.
    fn device(&mut self, device: &VerilogFile) {
        let mut connected = Vec::new();
        for port in &device.ports {
            let name = &port.name;
            let to = match name.as_str() {
                Design::CLOCK => "device_clk",
                Design::RESET => "device_rst",
                _ => name,
            };
            connected.push(format!("        .{name}({to})"));
            let is_of_wrapper =
                self.is_of_a_link(name) || [Design::CLOCK, Design::RESET].contains(&name.as_str());
            if !is_of_wrapper {
                self.ports.push(port.clone());
            }
        }
        self.line(&format!("{} {0}_i (", device.module));
        self.body.push_str(&format!("{}\n    );\n", connected.join(",\n")));
    }

    /// Whether a port of the device is one of a link: `rx0_data`, `tx12_en`.
    fn is_of_a_link(&self, name: &str) -> bool {
        let rest = name.strip_prefix("rx").or_else(|| name.strip_prefix("tx"));
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    }
}
