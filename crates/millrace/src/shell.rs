//! `millrace shell`.

use crate::cli::ShellArgs;
use crate::findings::Failure;
use millrace_printable::Printable;
use millrace_shell::{Shell, Trouble, script, terminal};
use std::io::{ErrorKind, IsTerminal, Write};

pub(crate) fn shell(args: &ShellArgs) -> Result<(), Failure> {
    let (host, port) = (args.thrift_ip.as_str(), args.thrift_port);
    let mut shell = Shell::connect(host, port).map_err(|error| {
        Failure::Failed(format!("no switch has its Thrift server at {host}:{port}: {error} (`millrace run --thrift {port}` starts one)"))
    })?;
    // Names and answers come from the switch.
    let mut out = Printable(std::io::stdout().lock());
    let ended = commands(&mut shell, args, &mut out);
    match ended {
        // Whoever reads has read enough.
        Err(Trouble::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(trouble) => Err(Failure::Failed(trouble.to_string().trim_start_matches("Error: ").to_owned())),
        Ok(()) => Ok(()),
    }
}

fn commands(shell: &mut Shell, args: &ShellArgs, out: &mut dyn Write) -> Result<(), Trouble> {
    shell.load(args.json.as_deref(), out)?;
    writeln!(out, "Control utility for runtime P4 table manipulation")?;
    match std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        true => terminal(shell, out),
        false => script(shell, std::io::stdin().lock(), out),
    }
}
