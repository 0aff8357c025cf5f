//! A node as a device of the host link: its registers, and the frames of managers that answer from outside.

use crate::graph::Graph;
use crate::interface::Item;
use crate::limits::MAX_TURN;
use crate::model::NodeFile;
use crate::registers::{MAP_BYTES, served_name};
use millrace_drivers::wall_clock_ns;
use millrace_link::{Device, Event, Fault, Shape};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A node that runs, shared by who runs it and who serves it.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Graph>>);

/// The device of a node. The port of a frame is the number of the manager's block; its bytes are those of an [`Item`].
#[derive(Debug)]
pub struct NodeDevice {
    graph: Shared,
    name: String,
    blocks: u16,
}

impl Shared {
    /// Of a node.
    pub fn new(graph: Graph) -> Shared {
        Shared(Arc::new(Mutex::new(graph)))
    }

    /// The node, nobody else's meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Graph> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its device; the node is that of the file.
    pub fn device(&self, node: &NodeFile) -> NodeDevice {
        let name = served_name(&node.name, node);
        NodeDevice { graph: self.clone(), name, blocks: node.blocks.len() as u16 }
    }
}

impl Device for NodeDevice {
    fn shape(&self) -> Shape {
        Shape { name: self.name.clone(), bytes: MAP_BYTES, ports: self.blocks }
    }

    fn begin(&mut self) {
        self.graph.lock().begin();
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.graph.lock().end().map_err(Fault::new)
    }

    fn read(&mut self, address: u32) -> Result<u32, Fault> {
        Ok(self.graph.lock().read(address))
    }

    fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        self.graph.lock().put(address, word).map_err(Fault::new)
    }

    fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), Fault> {
        let item = Item::decode(frame).map_err(Fault::new)?;
        match self.graph.lock().answer(port.into(), item, wall_clock_ns()) {
            true => Ok(()),
            false => {
                Err(Fault::new(format_args!("block {port} is no manager that is answered from outside")))
            }
        }
    }

    fn ask(&mut self, part: u16, text: &str) -> Result<String, Fault> {
        self.graph.lock().command(part.into(), text).map_err(Fault::new)
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        let mut graph = self.graph.lock();
        for _ in 0..MAX_TURN {
            let Some((block, item)) = graph.ask_outside() else { break };
            tell(Event::Frame { port: block as u16, bytes: item.encode() });
        }
        Ok(())
    }
}
