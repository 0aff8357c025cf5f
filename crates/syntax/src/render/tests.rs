//! What diagnostics look like, and that no span is too strange to show.

use super::*;

fn sources(text: &str) -> (SourceMap, FileId) {
    let mut map = SourceMap::new();
    let file = map.add("dir/demo.p4", text, None).unwrap();
    (map, file)
}

fn error(span: Span) -> Diagnostic {
    Diagnostic::error("test", span, "something is wrong").with_label("look here")
}

#[test]
fn names_the_place_and_shows_the_line() {
    let (map, file) = sources("first\nsecond line\nthird\n");
    let text = render(&error(Span::new(file, 13, 17)).with_help("do it right"), &map, false);
    assert!(text.contains("dir/demo.p4:2:8"), "{text}");
    assert!(text.contains("2 │ second line"), "{text}");
    assert!(text.contains("look here"), "{text}");
    assert!(text.contains("do it right"), "{text}");
    assert!(!text.contains("\u{1b}["), "{text}");
    assert!(render(&error(Span::new(file, 13, 17)), &map, true).contains("\u{1b}["));
}

#[test]
fn columns_count_characters() {
    let (map, file) = sources("ççç x\n");
    let text = render(&error(Span::new(file, 7, 8)), &map, false);
    assert!(text.contains("demo.p4:1:5"), "{text}");
}

#[test]
fn the_end_of_a_file_is_that_of_its_last_word() {
    for (source, place, line) in [
        ("garbage\n", "demo.p4:1:8", "1 │ garbage"),
        ("one\ntwo\n\n  \n", "demo.p4:2:4", "2 │ two"),
        ("one\ntwo", "demo.p4:2:4", "2 │ two"),
    ] {
        let (map, file) = sources(source);
        let end = source.len() as u32;
        let text = render(&error(Span::new(file, end, end)), &map, false);
        assert!(text.contains(place) && text.contains(line), "{source:?}: {text}");
        assert!(text.contains("look here"), "{source:?}: {text}");
    }
    let (map, file) = sources("");
    assert!(render(&error(Span::new(file, 0, 0)), &map, false).contains("demo.p4:1:1"));
}

#[test]
fn secondary_places_near_and_far() {
    let mut lines = String::new();
    for i in 0..5000 {
        lines.push_str(&format!("line{i:04}\n"));
    }
    let (map, file) = sources(&lines);
    let at = |line: u32| Span::new(file, line * 9, line * 9 + 8);
    let near = render(&error(at(2000)).with_secondary(at(1990), "the other"), &map, false);
    assert!(near.contains("demo.p4:2001:1") && near.contains("1991 │ line1990"), "{near}");
    let far = render(&error(at(4000)).with_secondary(at(2), "the other"), &map, false);
    assert!(far.contains("the other: dir/demo.p4:3:1"), "{far}");
}

#[test]
fn macros_and_includes_are_named() {
    let mut map = SourceMap::new();
    let main = map.add("main.p4", "#include <lib.p4>\n#define M 1 +\nM;\n", None).unwrap();
    let lib = map.add("lib.p4", "oops\n", Some(Span::new(main, 9, 17))).unwrap();
    let text = render(&error(Span::new(lib, 0, 4)), &map, false);
    assert!(text.contains("lib.p4:1:1") && text.contains("included from main.p4:1:10"), "{text}");
    let definition = Span::new(main, 26, 27);
    let expansion = map.add_expansion(crate::span::Expansion {
        name: "M".into(),
        definition,
        parent: crate::span::ExpansionId::NONE,
    });
    let text = render(&error(Span { expansion, ..Span::new(main, 32, 33) }), &map, false);
    assert!(text.contains("main.p4:3:1") && text.contains("in macro `M` defined here"), "{text}");
}

#[test]
fn line_directives_are_noted() {
    let (mut map, file) = sources("a\nb\n");
    map.mark_line(file, 2, 40, "other.p4".into());
    let text = render(&error(Span::new(file, 2, 3)), &map, false);
    assert!(text.contains("demo.p4:2:1") && text.contains("other.p4:40:1"), "{text}");
}

#[test]
fn strange_spans_do_no_harm() {
    let (map, file) = sources("é\r\n\u{2028}x\ty\n\nlast");
    let length = map.file(file).unwrap().text.len() as u32;
    for start in 0..length + 3 {
        for end in [0, start, start + 1, start + 2, length, u32::MAX] {
            let span = Span::new(file, start, end);
            let text = render(&error(span).with_secondary(Span::new(file, end, start), "other"), &map, false);
            assert!(text.contains("demo.p4:"), "{text}");
        }
    }
    assert!(render(&error(Span::new(FileId(9), 1, 2)), &map, false).contains("<unknown>:1:1"));
    assert!(render(&error(Span::default()), &SourceMap::new(), false).contains("something is wrong"));
    let (empty, file) = sources("");
    assert!(render(&error(Span::new(file, 0, 0)), &empty, false).contains("demo.p4:1:1"));
}

#[test]
fn long_lines_are_not_shown() {
    let (map, file) = sources(&"x ".repeat(100_000));
    let text = render(&error(Span::new(file, 1000, 1001)), &map, false);
    assert!(text.contains("demo.p4:1:1001") && text.len() < 500, "{text}");
}
