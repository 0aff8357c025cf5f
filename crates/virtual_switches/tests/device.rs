//! A device as its file says, and as it is changed while packets pass.

mod lab;

use lab::{Folder, Lab, file, frame, numbers, switch, wait_for};
use millrace_ctl_api::{Answer, GraphStatus, LinkStatus, Probation, RefusalKind, Request};
use millrace_device_file::{DeviceFile, MAX_FILE, MAX_SHOWN};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const CROSS: &str = "entries = [\"cross.txt\"]";

fn two() -> String {
    file("", &[switch("a", 10, CROSS), switch("b", 20, CROSS)].concat())
}

#[test]
fn switches_forward_as_the_file_says() {
    let lab = Lab::new(&two());
    lab.passes(10);
    lab.passes(20);
    lab.cables[1].send([frame(10, 7), frame(30, 8)]);
    assert_eq!(numbers(&lab.cables[0].receive(1)), [7]);
    wait_for(|| lab.stats().unclassified == Some(1));
    let Answer::Switches(list) = lab.ask(&Request::List) else { panic!() };
    let names = list.iter().map(|switch| (switch.name.as_str(), switch.device_id, switch.is_running));
    assert_eq!(names.collect::<Vec<_>>(), [("a", 10, true), ("b", 20, true)]);
    assert_eq!(list[0].ports.values().collect::<Vec<_>>(), ["p0", "p1"]);
    assert_eq!((list[0].program.as_str(), list[0].engine.as_str()), ("steer", "interp"));
    let counts = lab.counts("a");
    let packets = counts.ports.iter().map(|port| (port.rx_packets, port.tx_packets));
    assert_eq!(packets.collect::<Vec<_>>(), [(10, 1), (1, 10)]);
    let physical = &lab.stats().physical[0];
    assert_eq!((physical.name.as_str(), physical.rx_packets, physical.tx_packets), ("p0", 20, 1));
}

#[test]
fn a_file_is_applied_by_the_smallest_changes() {
    let lab = Lab::new(&two());
    lab.passes(10);
    let three = file("", &[switch("a", 10, CROSS), switch("b", 30, CROSS), switch("c", 20, CROSS)].concat());
    let dry = Request::Apply {
        text: three.clone(),
        folder: lab.folder.text(),
        files: BTreeMap::new(),
        dry_run: true,
    };
    let Answer::Changed(would) = lab.ask(&dry) else { panic!() };
    assert!(would.is_dry_run && would.done.iter().any(|line| line.contains("add switch c")), "{would:?}");
    lab.passes(20);
    let changed = lab.change(&lab.apply(&three));
    assert!(changed.kept.contains(&"keep switch a with its state".to_owned()), "{changed:?}");
    [10, 20, 30].into_iter().for_each(|vid| lab.passes(vid));
    assert_eq!(lab.counts("a").ports[0].rx_packets, 20, "it is the switch of before");
    assert_eq!(lab.counts("c").ports[0].rx_packets, 10);
    assert_eq!(lab.change(&lab.apply(&three)).done, [""; 0]);
    lab.change(&Request::Remove { switch: "c".into() });
    lab.cables[0].send([frame(20, 1)]);
    wait_for(|| lab.stats().unclassified == Some(1));
    let Answer::Text(shown) = lab.ask(&Request::Show) else { panic!() };
    assert!(shown.contains("name = \"b\"") && !shown.contains("name = \"c\""), "{shown}");
}

#[test]
fn what_is_refused_changes_nothing() {
    let lab = Lab::new(&two());
    lab.folder.write("broken.p4", "control c() { apply { x = 1; } }\n");
    lab.folder.write("wrong.txt", "table_add steer send 0 => 1\ntable_add nobody send 0 => 1\n");
    let broken = switch("c", 30, CROSS).replace("steer.p4", "broken.p4");
    let wrong = switch("c", 30, "entries = [\"wrong.txt\"]");
    for (rest, words) in [
        (broken, "broken.p4:1"),
        (wrong, "wrong.txt:2"),
        (switch("c", 10, CROSS), "the file has"),
        ("[[port]]\nname = \"p2\"\ndevice = \"packet:no-such\"\n".to_owned(), "no-such"),
        (switch("c", 30, CROSS).replace("number = 1", "number = 512"), "512"),
    ] {
        let text = format!("{}{rest}", two());
        let refused = lab.refused(&lab.apply(&text));
        let told = format!("{} {:?}", refused.message, refused.problems);
        assert!(told.contains(words), "{told}");
        let Answer::Switches(list) = lab.ask(&Request::List) else { panic!() };
        assert_eq!(list.len(), 2);
        lab.passes(10);
    }
    let restart = lab.refused(&lab.apply(&two().replace("[device]", "[device]\nworkers = 2")));
    assert!(restart.message.contains("workers"), "{restart:?}");
}

/// A change that fails after others were done: the device is as it was.
#[test]
fn changes_before_one_that_fails_are_taken_back() {
    let lab = Lab::new(&two());
    let two = two();
    let place = two.find("number = 1").unwrap() + "number = ".len();
    let text = format!("{}600{}", &two[..place], &two[place + 1..]);
    let text = format!("{text}{}", switch("c", 30, CROSS));
    let refused = lab.refused(&lab.apply(&text));
    for part in ["port 600 does not fit", "what was done before it is taken back"] {
        assert!(refused.message.contains(part), "{part}: {}", refused.message);
    }
    assert!(!refused.message.contains("started again"), "{}", refused.message);
    let Answer::Switches(list) = lab.ask(&Request::List) else { panic!() };
    let ports = list.iter().map(|switch| (switch.name.as_str(), switch.ports.len()));
    assert_eq!(ports.collect::<Vec<_>>(), [("a", 2), ("b", 2)]);
    lab.passes(10);
    lab.passes(20);
    assert_eq!(lab.change(&lab.apply(&two)).done, [""; 0], "the file is that of before");
    // A switch that was made again is where it was in the file.
    let before = lab.device.file();
    let place = two.rfind("number = 1").unwrap() + "number = ".len();
    let text = format!("{}600{}", &two[..place], &two[place + 1..]);
    let refused = lab.refused(&lab.apply(&text.replace("device-id = 10", "device-id = 11")));
    assert!(refused.message.contains("have started again: a"), "{}", refused.message);
    assert_eq!(lab.device.file(), before);
}

/// What is written in a switch that would go and come again stays where an interface is not there: that is found before the first change.
#[test]
fn an_interface_that_is_not_there_changes_nothing() {
    let lab = Lab::new(&two());
    lab.change(&Request::Stop { switch: "b".into() });
    let before = lab.device.file();
    let Answer::Text(now) = lab.ask(&Request::Show) else { panic!() };
    let other = now.replace("device-id = 10", "device-id = 11");
    assert_ne!(other, now);
    let text = format!("{other}[[port]]\nname = \"p2\"\ndevice = \"packet:no-such\"\n");
    let refused = lab.refused(&lab.apply(&text));
    assert!(refused.message.contains("no-such"), "{}", refused.message);
    for word in ["taken back", "started again"] {
        assert!(!refused.message.contains(word), "{}", refused.message);
    }
    assert_eq!(lab.device.file(), before);
    lab.passes(10);
}

/// The text of a device that runs has all defaults and whole paths, so it is longer than the file was.
#[test]
fn a_device_is_changed_whose_own_text_is_longer_than_a_file() {
    let text = |length: usize| {
        let define = |at| format!("\"M{at}={}\",", "1".repeat(length));
        let keys = format!("define = [{}]", (0..64).map(define).collect::<String>());
        file("", &(10..18).map(|vid| switch(&format!("s{vid}"), vid, &keys)).collect::<String>())
    };
    let text = text((MAX_FILE - text(0).len()) / (64 * 8));
    let lab = Lab::new(&text);
    let Answer::Text(shown) = lab.ask(&Request::Show) else { panic!() };
    assert!(text.len() <= MAX_FILE && shown.len() > MAX_FILE, "{} {}", text.len(), shown.len());
    lab.change(&Request::Stop { switch: "s10".into() });
    let load = |text: String| Request::Load { text, folder: lab.folder.text(), files: BTreeMap::new() };
    lab.change(&load(switch("c", 30, CROSS)));
    lab.change(&Request::Remove { switch: "s11".into() });
    lab.passes(30);
    let long = lab.refused(&load("#".repeat(MAX_FILE + 1)));
    assert!(long.kind == RefusalKind::Limit && long.message.contains("MAX_FILE"), "{}", long.message);
    // What it shows is a file again.
    let Answer::Text(shown) = lab.ask(&Request::Show) else { panic!() };
    assert_eq!(lab.change(&lab.apply(&shown)).done, [""; 0]);
    lab.passes(30);
    let read = DeviceFile::parse_with_files("shown", &shown, Path::new(&lab.folder.text()));
    assert_eq!(read.unwrap_or_else(|why| panic!("{}", why.render(false))), lab.device.file());
    let long = lab.refused(&lab.apply(&"#".repeat(MAX_SHOWN + 1)));
    assert!(long.kind == RefusalKind::Limit && long.message.contains("MAX_SHOWN"), "{}", long.message);
}

#[test]
fn switches_stop_and_start() {
    let lab = Lab::new(&two());
    lab.change(&Request::Stop { switch: "a".into() });
    lab.cables[0].send((0..5).map(|number| frame(10, number)));
    wait_for(|| lab.counts("a").losses.get("stopped") == Some(&5));
    lab.passes(20);
    lab.change(&Request::Start { switch: "a".into() });
    lab.passes(10);
    let refused = lab.refused(&Request::Stop { switch: "nobody".into() });
    assert_eq!(refused.kind, RefusalKind::NotFound);
}

#[test]
fn switches_are_linked_and_unlinked() {
    let ends = |name: &str, number: u16, vid: u16| {
        let physical = if number == 0 { "p0" } else { "p1" };
        format!(
            "[[switch]]\nname = \"{name}\"\nprogram = \"steer.p4\"\nengine = \"interp\"\ndevice-id = {vid}\n{CROSS}\n\
             [[switch.port]]\nnumber = {number}\nphysical = \"{physical}\"\nmatch = {{ vlan = {vid} }}\ntag = \"strip\"\n"
        )
    };
    let lab = Lab::new(&file("", &[ends("a", 0, 10), ends("b", 1, 20)].concat()));
    let link = "[[link]]\nbetween = [\"a:1\", \"b:0\"]\ndelay = \"1ms\"\n";
    lab.change(&Request::Load { text: link.into(), folder: lab.folder.text(), files: BTreeMap::new() });
    lab.cables[0].send((0..3).map(|number| frame(10, number)));
    let out: Vec<Vec<u8>> = (0..3).map(|number| frame(20, number)).collect();
    assert_eq!(lab.cables[1].receive(3), out, "each side has its own VLAN");
    let Answer::Graph(graph) = lab.ask(&Request::Graph) else { panic!() };
    let GraphStatus { physical, switches, links } = graph;
    assert_eq!((physical.len(), switches.len(), links.len()), (2, 2, 3));
    let inside = LinkStatus { from: ("a".into(), 1), to: ("b".into(), Some(0)), label: "1000000 ns".into() };
    assert!(links.contains(&inside), "{links:?}");
    let unlink = Request::Unlink { between: ["b:0".into(), "a:1".into()] };
    lab.change(&unlink);
    lab.cables[0].send([frame(10, 1)]);
    wait_for(|| !lab.counts("a").drops.is_empty());
    assert_eq!(lab.refused(&unlink).kind, RefusalKind::NotFound);
    lab.change(&Request::Load { text: link.into(), folder: lab.folder.text(), files: BTreeMap::new() });
    lab.cables[0].send([frame(10, 4)]);
    assert_eq!(numbers(&lab.cables[1].receive(1)), [4]);
}

/// The program with another default: it sends all to port 1.
fn always() -> String {
    include_str!("programs/steer.p4").replace("default_action = drop();", "default_action = send(1);")
}

#[test]
fn a_program_is_swapped_and_rolled_back() {
    let lab = Lab::new(&two());
    lab.passes(10);
    let swap = |program: String| Request::Swap {
        switch: "a".into(),
        program,
        keep_everything: false,
        probation: None,
    };
    assert_eq!(lab.refused(&Request::Rollback { switch: "a".into() }).kind, RefusalKind::Invalid);
    let refused = lab.refused(&swap("no program".into()));
    assert_eq!(refused.kind, RefusalKind::Invalid);
    lab.passes(10);
    let done = lab.change(&swap(always())).done;
    assert!(done.iter().any(|line| line.contains("kept 2 entries")), "{done:?}");
    lab.passes(10);
    lab.change(&Request::Rollback { switch: "a".into() });
    lab.passes(10);
    lab.passes(20);
    // The file names the program of before: it comes back with the file.
    lab.change(&swap(always()));
    let applied = lab.change(&lab.apply(&two()));
    assert!(applied.done.iter().any(|line| line.contains("swap the program of switch a")), "{applied:?}");
    assert_eq!(lab.change(&lab.apply(&two())).done, [""; 0]);
    lab.passes(10);
}

#[test]
fn what_is_done_to_a_switch_leaves_the_programs_that_were_set() {
    let lab = Lab::new(&two());
    let swap = Request::Swap {
        switch: "a".into(),
        program: include_str!("programs/steer.p4")
            .replace("send(bit<9> port) {", "send(bit<9> port) { hdr.ethernet.src = 7;"),
        keep_everything: true,
        probation: None,
    };
    lab.change(&swap);
    let source = || {
        lab.cables[0].send([frame(10, 1)]);
        lab.cables[1].receive(1)[0][6..12].to_vec()
    };
    let link = "[[link]]\nbetween = [\"b:2\", \"c:2\"]\n";
    let requests = [
        Request::Stop { switch: "b".into() },
        Request::Start { switch: "b".into() },
        Request::Load { text: switch("c", 30, CROSS), folder: lab.folder.text(), files: BTreeMap::new() },
        Request::Load { text: link.into(), folder: lab.folder.text(), files: BTreeMap::new() },
        Request::Unlink { between: ["b:2".into(), "c:2".into()] },
        Request::Remove { switch: "c".into() },
        Request::Stop { switch: "a".into() },
        Request::Start { switch: "a".into() },
    ];
    for request in &requests {
        let done = lab.change(request).done;
        assert!(!done.iter().any(|line| line.contains("swap")), "{request:?}: {done:?}");
        if *request != (Request::Stop { switch: "a".into() }) {
            assert_eq!(source(), [0, 0, 0, 0, 0, 7], "{request:?}");
        }
    }
    lab.change(&Request::Rollback { switch: "a".into() });
    assert_eq!(source(), [2, 0, 0, 0, 0, 9]);
    // A file that is applied brings its program back, and says so before.
    lab.change(&swap);
    let would =
        Request::Apply { text: two(), folder: lab.folder.text(), files: BTreeMap::new(), dry_run: true };
    let would = lab.change(&would).done;
    assert_eq!(source(), [0, 0, 0, 0, 0, 7]);
    assert_eq!(lab.change(&lab.apply(&two())).done, would);
    assert!(would.len() == 1 && would[0].contains("swap the program of switch a"), "{would:?}");
    assert_eq!(source(), [2, 0, 0, 0, 0, 9]);
}

#[test]
fn what_is_wrong_with_an_addition_is_told_in_its_own_lines() {
    let lab = Lab::new(&two());
    let refused = |text: &str| {
        let load = Request::Load { text: text.into(), folder: lab.folder.text(), files: BTreeMap::new() };
        let refused = lab.refused(&load);
        refused.problems.into_iter().next().unwrap_or_else(|| panic!("{}", refused.message))
    };
    let twice = refused("\n[[switch]]\nname = \"a\"\nimage = \"none.mimg\"\n");
    assert_eq!((twice.line, twice.column), (3, 8), "{twice:?}");
    assert!(twice.message.contains("two have the name `a`"), "{twice:?}");
    for part in ["[ the file:3:8 ]", "[ the device as it runs:", "there already"] {
        assert!(twice.shown.contains(part), "{part}: {}", twice.shown);
    }
    let whole = refused("[device]\nname = \"d\"\n");
    assert!(whole.shown.contains("[ the device as it runs:1:2 ]"), "{}", whole.shown);
    assert!(whole.shown.contains("`apply` has the whole file"), "{}", whole.shown);
}

#[test]
fn a_program_that_drops_too_much_goes_back_by_itself() {
    let lab = Lab::new(&two());
    let none = include_str!("programs/steer.p4").replace("steer.apply();", "drop();");
    let probation = Some(Probation { seconds: 30, max_drops: 10_000 });
    let swap =
        |program, probation| Request::Swap { switch: "a".into(), program, keep_everything: false, probation };
    // It has no place for the entries, which come back with the program.
    lab.change(&swap(none, probation));
    lab.cables[0].send((0..1500).map(|number| frame(10, number)));
    let forwards = || {
        lab.cables[0].send([frame(10, 1)]);
        std::thread::sleep(Duration::from_millis(20));
        lab.counts("a").ports[1].tx_packets > 0
    };
    wait_for(forwards);
    // One that forwards stays.
    let probation = Some(Probation { seconds: 1, max_drops: 10_000 });
    lab.change(&swap(always(), probation));
    std::thread::sleep(Duration::from_millis(1500));
    let Answer::Switches(list) = lab.ask(&Request::List) else { panic!() };
    assert!(list[0].can_roll_back);
    // What cannot be is refused before the program is another one: that of before still comes back.
    lab.change(&Request::Rollback { switch: "a".into() });
    for wrong in [Probation { seconds: 0, max_drops: 1 }, Probation { seconds: 1, max_drops: 1_000_001 }] {
        assert_eq!(lab.refused(&swap(always(), Some(wrong))).kind, RefusalKind::Invalid);
        let Answer::Switches(list) = lab.ask(&Request::List) else { panic!() };
        assert!(!list[0].can_roll_back, "{wrong:?}");
    }
}

#[test]
fn a_snapshot_goes_on_elsewhere() {
    let lab = Lab::new(&two());
    lab.passes(10);
    let take = |switch: &str| match lab.ask(&Request::Snapshot { switch: switch.into() }) {
        Answer::Text(text) => text,
        other => panic!("{other:?}"),
    };
    let snapshot = take("a");
    assert!(snapshot.contains("register_write In.seen 0 0x0000000a"), "{snapshot}");
    // A switch without entries, on another device.
    let other = Lab::new(&file("", &switch("z", 30, "")));
    other.cables[0].send([frame(30, 1)]);
    wait_for(|| !other.counts("z").drops.is_empty());
    other.change(&Request::Restore { switch: "z".into(), snapshot: snapshot.clone() });
    other.passes(30);
    let again = match other.ask(&Request::Snapshot { switch: "z".into() }) {
        Answer::Text(text) => text,
        other => panic!("{other:?}"),
    };
    assert!(again.contains("register_write In.seen 0 0x00000014"), "{again}");
    // The first one is as it was.
    assert_eq!(take("a"), snapshot);
    for wrong in [
        "",
        "{}",
        &snapshot.replace("snapshot 1", "snapshot 2"),
        &snapshot.replace("In.steer In.send", "nobody send"),
    ] {
        let refused = other.refused(&Request::Restore { switch: "z".into(), snapshot: wrong.into() });
        assert_eq!(refused.kind, RefusalKind::Invalid, "{refused:?}");
        other.passes(30);
    }
    let wrong = snapshot.replace("In.steer In.send", "nobody send");
    let refused = other.refused(&Request::Restore { switch: "z".into(), snapshot: wrong });
    assert!(refused.message.contains("its state:2: no table named `nobody`"), "{}", refused.message);
}

#[test]
fn entries_worker_and_quota_are_set_while_it_runs() {
    let lab = Lab::new(&file("workers = 2", &switch("a", 10, CROSS)));
    lab.passes(10);
    lab.folder.write("back.txt", "table_add steer send 0 => 0\n");
    let moved = file(
        "workers = 2",
        &switch("a", 10, "entries = [\"back.txt\"]\nworker = 1\nquota = { packets-per-second = 1 }"),
    );
    lab.change(&lab.apply(&moved));
    lab.cables[0].send([frame(10, 3)]);
    assert_eq!(numbers(&lab.cables[0].receive(1)), [3]);
    let Answer::Switches(list) = lab.ask(&Request::List) else { panic!() };
    assert_eq!(list[0].worker, 1);
    assert!(!list[0].can_roll_back || list[0].program == "steer");
    lab.cables[0].send((0..500).map(|number| frame(10, number)));
    wait_for(|| lab.counts("a").losses.get("packet_quota").is_some_and(|lost| *lost > 400));
}

#[test]
fn a_candidate_is_compared_packet_by_packet() {
    let lab = Lab::new(&two());
    lab.passes(10);
    let ask =
        |program: Option<String>, end| match lab.ask(&Request::Shadow { switch: "a".into(), program, end }) {
            Answer::Shadow(status) => Ok(status),
            Answer::Refused(refused) => Err(refused.message),
            other => panic!("{other:?}"),
        };
    assert!(ask(None, false).unwrap_err().contains("no candidate"));
    assert!(ask(Some("no program".into()), false).is_err());
    // The same program, and one that sends the fourth packet of a port elsewhere: 10 were counted before it came.
    let same = include_str!("programs/steer.p4").to_owned();
    let other = same.replace("steer.apply();", "steer.apply(); if (count == 13) { std.egress_spec = 3; }");
    let done = |packets: u64| wait_for(|| ask(None, false).unwrap().compared == packets);
    ask(Some(same), false).unwrap();
    lab.passes(10);
    done(10);
    let status = ask(None, false).unwrap();
    assert_eq!((status.same, status.different, status.left_out), (10, 0, 0), "{status:?}");
    // Ten more have been counted when this one comes.
    ask(Some(other.replace("13", "23")), false).unwrap();
    lab.passes(10);
    lab.passes(20);
    done(10);
    let status = ask(None, true).unwrap();
    assert_eq!((status.same, status.different), (9, 1), "{status:?}");
    let difference = &status.differences[0];
    for words in ["a packet of port 0: 020000000001", "by port 1: 0200", "by port 3: 0200", "steer"] {
        assert!(difference.contains(words), "{difference}");
    }
    assert!(ask(None, true).is_err());
    lab.passes(10);
    assert_eq!(
        lab.counts("a").ports.iter().map(|port| port.tx_packets).sum::<u64>(),
        40,
        "nothing of it leaves"
    );
}

#[test]
fn quotas_of_the_file_hold() {
    let switch = |quota: &str, entries: &str| {
        switch("a", 10, &format!("entries = [{entries}]\nquota = {{ {quota} }}"))
    };
    let lab = Lab::new(&file("", &switch("entries = 2", "\"cross.txt\"")));
    lab.passes(10);
    // A third entry is one too many, whoever writes it.
    lab.folder.write("more.txt", "table_add steer send 2 => 1\n");
    let refused = lab.refused(&lab.apply(&file("", &switch("entries = 2", "\"cross.txt\", \"more.txt\""))));
    assert!(refused.message.contains("entries"), "{refused:?}");
    lab.passes(10);
    lab.change(&lab.apply(&file("", &switch("entries = 3", "\"cross.txt\""))));
    lab.change(&lab.apply(&file("", &switch("entries = 3", "\"cross.txt\", \"more.txt\""))));
    lab.passes(10);
    // Clones beyond the quota are counted by their reason; 64 are a burst.
    let clones = include_str!("programs/steer.p4")
        .replace("steer.apply();", "steer.apply(); clone(CloneType.I2E, 7);");
    let lab = Lab::within(Folder::new(), &file("", &switch("clones-per-second = 1", "\"cross.txt\"")));
    lab.folder.write("steer.p4", &clones);
    lab.folder
        .write("clones.txt", "table_add steer send 0 => 1\ntable_add steer send 1 => 0\nmirroring_add 7 0\n");
    let program =
        Request::Swap { switch: "a".into(), program: clones, keep_everything: false, probation: None };
    lab.change(&program);
    lab.change(&lab.apply(&file("", &switch("clones-per-second = 1", "\"clones.txt\""))));
    lab.cables[0].send((0..500).map(|number| frame(10, number)));
    lab.cables[1].receive(500);
    wait_for(|| lab.counts("a").drops.get("clone_quota").is_some_and(|lost| *lost >= 430));
}

/// The program of the operator says it by the last byte of the source: 9 is 7, all else is 8, which nobody has.
#[test]
fn a_program_says_which_switch_a_frame_belongs_to() {
    let by_id = |name: &str, vid: u16, id: u16| {
        let text = switch(name, vid, CROSS).replace(&format!("vlan = {vid}"), &format!("id = {id}"));
        text.replace("tag = \"strip\"\n", "")
    };
    let classify = "[classify]\nprogram = \"classify.p4\"\n";
    let folder = Folder::new();
    let ids = |last: u8| {
        let code = format!(
            "if (hdr.ethernet.src[7:0] == {last}) {{ std.egress_spec = 7; }} else {{ std.egress_spec = 8; }}"
        );
        include_str!("programs/steer.p4").replace("steer.apply();", &code)
    };
    folder.write("classify.p4", &ids(9));
    folder.write("other.p4", &ids(10));
    let lab = Lab::within(folder, &file("workers = 2", &format!("{classify}{}", by_id("a", 10, 7))));
    // Whatever its VLAN is; the tag stays.
    lab.passes(10);
    lab.passes(77);
    assert_eq!(lab.stats().unclassified, Some(0));
    let another =
        file("workers = 2", &format!("{}{}", classify.replace("classify.p4", "other.p4"), by_id("a", 10, 7)));
    lab.change(&lab.apply(&another));
    lab.cables[0].send([frame(10, 1)]);
    wait_for(|| lab.stats().unclassified == Some(1));
    let both = file("workers = 2", &format!("{classify}{}{}", by_id("a", 10, 7), by_id("b", 11, 8)));
    lab.change(&lab.apply(&both));
    lab.passes(10);
    assert_eq!((lab.counts("a").ports[0].rx_packets, lab.counts("b").ports[0].rx_packets), (30, 0));
}
