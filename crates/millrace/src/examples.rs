//! Examples that help texts end with.

pub(crate) const MILLRACE: &str = "\
Examples:
  millrace run                                            a demonstration, all built in
  millrace check programs/router.p4
  sudo millrace run programs/router.p4 -i 0@eth0 -i 1@eth1 --entries programs/router.entries
  millrace help run";

pub(crate) const CHECK: &str = "\
Examples:
  millrace check router.p4
  millrace check --std p4-14 -I include old.p4
  millrace check router.p4 --json | jq .diagnostics
  millrace check --input 'filter \"tcp[13] & 2 != 0\" | account syn.json'";

pub(crate) const P4INFO: &str = "\
Examples:
  millrace p4info router.p4 -o router.p4info.txtpb
  millrace p4info router.p4 --json | jq .p4info.tables";

pub(crate) const COMPILE: &str = "\
Examples:
  millrace compile router.p4 -o router.image              what `millrace run` takes without the source
  millrace compile router.p4 --emit ir
  millrace compile router.p4 --time";

pub(crate) const STF: &str = "\
Examples:
  millrace stf router.p4 router.stf
  millrace stf router.p4 tests/*.stf --json";

pub(crate) const RUN: &str = "\
Examples:
  millrace run
  millrace run router.p4 --entries router.entries -i 0@pcap:in.pcap,out.pcap
  sudo millrace run router.p4 --entries router.entries -i 0@eth0 -i 1@eth1 --metrics 9560
  sudo millrace run -i 0@eth0 -i 1@eth1 --grpc 9559 --cpu-port 510
  sudo millrace run router.p4 -i 0@tap:mr0 --thrift 9090 --user nobody --log switch.log
  sudo millrace run router.p4 -i 0@eth0 --input '0:filter \"not port 22\" else account rest.json | sample 1/10 flows'";

pub(crate) const ES: &str = "\
Examples:
  sudo millrace es network.toml --name ES1 -i A@eth0 -i B@eth1 --seconds 10
  sudo millrace es network.toml --name ES1 -i A@eth0 -i B@eth1 --misbehave babble=5:100,number=6:10 --json";

pub(crate) const SWAP: &str = "\
Examples:
  millrace swap new.p4                                    over P4Runtime, at 127.0.0.1:9559
  millrace swap new.p4 --thrift 9090 --keep compatible";

pub(crate) const SHELL: &str = "\
Examples:
  millrace shell
  echo 'table_dump RouterIngress.ipv4_lpm' | millrace shell --thrift-port 9090";

pub(crate) const TRACE: &str = "\
Examples:
  millrace trace router.p4 --entries router.entries --port 0 --packet capture.pcap
  millrace trace router.p4 --port 0 --packet 02000000000106000000000108004500";

pub(crate) const BOUNDS: &str = "\
Examples:
  millrace bounds router.p4 --entries router.entries
  millrace bounds router.p4 --entries router.entries --packet worst.pcap --json
  millrace calibrate -o here.json && millrace bounds router.p4 --calibration here.json";

pub(crate) const RTL: &str = "\
Examples:
  millrace rtl router.p4
  millrace rtl router.p4 -o build --period 5000 && verilator --lint-only -Wall -y build build/ingress.sv
  millrace rtl router.p4 --device --ports 8 --width 128 -o build";

pub(crate) const CALIBRATE: &str = "\
Examples:
  millrace calibrate -o here.json";

pub(crate) const BENCH: &str = "\
Examples:
  millrace bench router.p4 --entries router.entries --trace frames.pcap
  millrace bench router.p4 --trace frames.pcap --frame-size 64 --profile --json";

pub(crate) const TOP: &str = "\
Examples:
  millrace top
  millrace top 9561 --once
  millrace top --switch l2 --token-file blue.token        a switch of a device with many
  millrace top --json | jq '.status.ports[] | select(.up | not)'";

pub(crate) const CAPTURE: &str = "\
Examples:
  millrace capture on 1
  millrace capture on 1 --name trouble --metrics 9561
  millrace capture off 1
  millrace capture on 0 --switch l2 --token-file blue.token";

pub(crate) const QUEUE: &str = "\
Examples:
  millrace queue                                          says the queue pairs of each worker
  millrace queue 0 1 0                                    worker 0 has queue pair 1 of port 0 from now on
  millrace queue 0 1 0 --metrics 9561";

pub(crate) const TC: &str = "\
Examples:
  millrace tc show                                        says the plans of ports and what their queues hold
  millrace tc replace plan.tc                             has all ports go on with the plans of the file
  millrace tc set --port 1 \"class add parent 1: classid 1:1 drr quantum 3000\"
  millrace tc check plan.tc                               says whether they can be, without a switch
  millrace tc ingress 0 --class 7                         packets of port 0 come in before those of others";

pub(crate) const NETWORK: &str = "\
Examples:
  millrace network check programs/networks/small.toml      all that is wrong with the file, or what it holds
  millrace network bounds programs/networks/small.toml     the largest delay of each path
  millrace network simulate programs/networks/small.toml --offsets directed
  millrace network entries programs/networks/small.toml -o entries
  millrace network import network.xml -o network.toml      a network of WoPANets";
pub(crate) const MODE: &str = "\
Examples:
  millrace mode show                                      says the mode of the switch, and since when
  millrace mode set maintenance                           has it take entries and programs; it forwards what its program lets pass meanwhile
  millrace mode set init                                  has it check its configuration, and become operational or passive
  millrace mode list                                      says what a switch does in each mode";

pub(crate) const LINK: &str = "\
Examples:
  sudo millrace link serve --uio /dev/uio0                serves the registers of an FPGA on this machine, at 127.0.0.1:9561
  millrace link read 0x10 4                               reads four registers
  millrace link write 0x10=1 0x14=0xff                    writes two, nothing of other clients between them
  millrace link dump --json                               reads all of them
  millrace link serve --simulate l2_switch.p4             simulates the device of `millrace rtl l2_switch.p4 --device -o build`, and serves it
  millrace link write --map build/registers.json port1.discipline=2
  millrace link dump --map build/registers.json           reads all registers of the device that have names";

pub(crate) const NODE: &str = "\
Examples:
  millrace node check programs/nodes/octet_switch.toml    says what the node is made of, and where each block is
  sudo millrace node programs/nodes/octet_switch.toml --listen 9561   runs it on the interfaces that the file names
  millrace node read programs/nodes/octet_switch.toml queue1.frames forward.entry0.matches
  millrace node write programs/nodes/octet_switch.toml serve2.discipline=1 p0.up=0";

pub(crate) const CHASSIS: &str = "\
Examples:
  sudo millrace chassis edge.toml                         runs the device; `millrace ctl` changes it
  millrace chassis check edge.toml                        all that is wrong with the file, each with its line
  millrace chassis check edge.toml --json                 the same as one JSON object";

pub(crate) const CTL: &str = "\
Examples:
  millrace ctl list
  millrace ctl stats l2 --device edge                     of the device at /run/millrace/edge.sock
  millrace ctl apply edge.toml --dry-run                  says what would change
  millrace ctl link l2:1 router:1 --delay 1ms --rate 1Gbit
  millrace ctl swap l2 new.p4 --probation 30 --max-drops 1%
  millrace ctl snapshot l2 -o l2.snapshot
  millrace ctl list --grpc edge.example:9559 --grpc-ca ca.pem --token-file operator.token    of a device on another machine
  millrace ctl graph --form dot | dot -Tsvg > edge.svg
  millrace ctl list --json | jq '.switches[] | select(.is_running | not).name'";

pub(crate) const PLUGIN: &str = "\
Examples:
  millrace plugin                                         says what the plugins are and what they cost
  millrace plugin load match match.wasm,policy=pass       loads it, or replaces what is there, while packets pass
  millrace plugin off match                               packets meet its policy from now on
  millrace plugin on match --metrics 9561";

pub(crate) const LOG: &str = "\
Examples:
  millrace log                                            says the level
  millrace log debug
  millrace log trace --metrics 9561";
