//! What a plugin is given and what becomes of its answers, on a program whose parser stops in the middle of a byte.

use millrace_interp::{Context, Effects, Ending, Interp, Unobserved, World};
use millrace_pipeline::*;
use millrace_state::{PluginAnswer, PluginCaller, PluginHost, State};
use std::sync::{Arc, Mutex};

const PROGRAM: &str = "program plugins architecture test
    errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
    ingress (p, c, d)
    intrinsic parser_error = perr metadata perr: bit<16>
    header h: h_t { a: bit<12> }
    metadata len: bit<32> metadata drop: bit<1> metadata x: bit<8> metadata y: bit<64>
    plugin reader plugin writer rewrites
    body parser p { block0: extract h end }
    body control c {
    block0:
        branch eq(h.a, 12w0xfff), block1, block2
    block1:
        call drop, reader, (h.a, 64w0xffffffffffffffff), 2
        call_result x, 0
        call_result y, 1
        end
    block2:
        call drop, writer, (), 0
        len = packet_length
        end
    }
    body deparser d { block0: emit h end }";

/// What callers are given, and a caller that answers as it is told.
#[derive(Debug, Default)]
struct Script {
    given: Vec<(Vec<u64>, Vec<u8>)>,
    drop: bool,
    payload: Option<(usize, Vec<u8>)>,
    reply: Option<Vec<u8>>,
}

#[derive(Clone, Debug, Default)]
struct Host(Arc<Mutex<Script>>);

#[derive(Debug)]
struct Caller(Host, Script);

impl PluginHost for Host {
    fn bind(&self, _plugin: &Plugin) -> Result<Box<dyn PluginCaller>, String> {
        Ok(Box::new(Caller(self.clone(), Script::default())))
    }
}

impl PluginCaller for Caller {
    fn call(&mut self, args: &[u64], results: &mut [u64], payload: &[u8]) -> PluginAnswer<'_> {
        let mut script = self.0.0.lock().unwrap();
        script.given.push((args.to_vec(), payload.to_vec()));
        results.iter_mut().zip([0x1ff, u64::MAX]).for_each(|(result, gives)| *result = gives);
        self.1 = Script {
            drop: script.drop,
            payload: script.payload.clone(),
            reply: script.reply.clone(),
            ..Script::default()
        };
        PluginAnswer {
            drop: self.1.drop,
            payload: self.1.payload.as_ref().map(|(replaced, bytes)| (*replaced, bytes.as_slice())),
            reply: self.1.reply.as_deref(),
        }
    }
}

/// Runs a packet; gives its context, and packets of plugins.
fn run(host: &Host, packet: &[u8]) -> (Arc<Program>, Context, Vec<Vec<u8>>) {
    let program = Arc::new(text::parse(PROGRAM).unwrap());
    verify::verify(&program).unwrap();
    let mut state = State::new(Arc::clone(&program)).unwrap();
    state.set_plugins(&(Arc::new(host.clone()) as Arc<dyn PluginHost>)).unwrap();
    let interp = Interp::new(Arc::clone(&program));
    let mut context = Context::new(&program, packet.to_vec());
    let mut effects = Effects::default();
    for body in &program.ingress {
        let mut world =
            World { state: &mut state, now_ns: 0, effects: &mut effects, observer: &mut Unobserved };
        assert_eq!(interp.run(*body, &mut context, &mut world), Ending::Done);
    }
    (program, context, effects.take_answers())
}

fn read(program: &Program, context: &Context, name: &str) -> u64 {
    let (slot, _) = program.slots.iter().find(|(_, slot)| slot.name == name).unwrap();
    context.phv.read(program, slot).as_bits().to_u64_saturating()
}

#[test]
fn a_plugin_gets_words_and_whole_bytes_and_its_results_are_cut() {
    let host = Host::default();
    host.0.lock().unwrap().reply = Some(vec![1, 2, 3]);
    let (program, context, answers) = run(&host, &[0xff, 0xf9, 0xab, 0xcd]);
    assert_eq!(host.0.lock().unwrap().given, [(vec![0xfff, u64::MAX], vec![0xab, 0xcd])]);
    assert_eq!(read(&program, &context, "x"), 0xff);
    assert_eq!(read(&program, &context, "y"), u64::MAX);
    assert_eq!(read(&program, &context, "drop"), 0);
    assert_eq!(answers, [vec![1, 2, 3]]);
    assert_eq!(context.bytes, [0xff, 0xf9, 0xab, 0xcd]);
}

#[test]
fn only_a_plugin_that_may_changes_the_payload() {
    let host = Host::default();
    *host.0.lock().unwrap() = Script { drop: true, payload: Some((1, vec![7, 8, 9])), ..Script::default() };
    let (program, context, _) = run(&host, &[0xff, 0xf9, 0xab, 0xcd]);
    assert_eq!((read(&program, &context, "drop"), context.bytes), (1, vec![0xff, 0xf9, 0xab, 0xcd]));
    // The first byte of the payload became three, and the rest of the byte that the header shares stayed.
    let (program, context, _) = run(&host, &[0xff, 0x09, 0xab, 0xcd]);
    assert_eq!(context.bytes, [0xff, 0x09, 7, 8, 9, 0xcd]);
    assert_eq!(read(&program, &context, "len"), 6);
    // More than there is cannot be replaced.
    host.0.lock().unwrap().payload = Some((3, vec![7]));
    assert_eq!(run(&host, &[0xff, 0x09, 0xab, 0xcd]).1.bytes, [0xff, 0x09, 0xab, 0xcd]);
}
