//! The links of the ports of the machine. The kernel says when one has changed: drivers look at theirs then, on their lanes, and follow its MTU, or find that
//! it is gone; the log has what is new.

use crate::failure::Failure;
use millrace_backplane::Backplane;
use millrace_device_file::Port;
use millrace_drivers::{LinkNews, LinkWatch, Links, PortSpec};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::thread;
use tracing::{error, info};

/// Watches links until it is dropped.
pub(crate) struct Watched {
    links: Links,
    /// Its thread ends when this is closed.
    _stop: UnixStream,
}

impl Watched {
    /// Watches the links of a device, of which it has none yet.
    pub(crate) fn start(backplane: &Arc<Backplane>) -> Result<Watched, Failure> {
        let links = Links::default();
        let watch = LinkWatch::new(links.clone()).map_err(Failure::failed)?;
        let (stop, stopped) = UnixStream::pair().map_err(Failure::failed)?;
        let (of, backplane) = (links.clone(), Arc::downgrade(backplane));
        let thread = thread::Builder::new().name("links".into());
        thread.spawn(move || tell(watch, &of, &stopped, &backplane)).map_err(Failure::failed)?;
        Ok(Watched { links, _stop: stop })
    }

    /// A port of the machine is there from now on.
    pub(crate) fn add(&self, number: u16, port: &Port) {
        // One that somebody else has opened may be anything.
        let Ok(interface) = port.device.parse() else { return };
        self.links.add(&PortSpec { port: number, interface });
    }

    /// It is not there any more.
    pub(crate) fn remove(&self, number: u16) {
        self.links.remove(number);
    }
}

/// Tells of links that change, until the other end of `stopped` is gone.
fn tell(watch: LinkWatch, links: &Links, stopped: &UnixStream, backplane: &Weak<Backplane>) {
    let name = |number| links.of_port(number).map_or_else(String::new, |port| port.spec.to_string());
    let tell = |news| match news {
        LinkNews::State(number, is_up) => info!(port = name(number), is_up, "link"),
        LinkNews::Mtu(number, mtu) => info!(port = name(number), mtu, "link"),
    };
    let look = || backplane.upgrade().inspect(|backplane| backplane.look_at_ports()).is_some();
    if let Err(error) = watch.follow(stopped, tell, look) {
        error!(%error, "links are not watched any more");
    }
}
