//! A design without hierarchy: one list of values, with those of each instance after each other.
//!
//! A value of an instance has the number of its node after those of all instances before. An input of an instance, and what comes
//! out of it, is another value under a new number: an *alias*, which is resolved here, so that what runs has no trace of modules.

use crate::*;
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;

/// The number of a value of the flat design.
pub(crate) type Value = u32;

/// One instance of a module, the top included.
pub(crate) struct Scope<'d> {
    pub(crate) module: &'d Module,
    /// The number of its first value.
    base: Value,
    /// The names of the instances that it is in, and its own, each followed by a dot.
    pub(crate) path: String,
    /// The instance it is in, and what drives its inputs there.
    parent: Option<(usize, &'d Instance)>,
    /// The instances inside it, by number.
    children: Vec<usize>,
}

/// A design without hierarchy.
pub(crate) struct Flat<'d> {
    pub(crate) scopes: Vec<Scope<'d>>,
    pub(crate) count: usize,
}

impl<'d> Flat<'d> {
    /// Flattens a verified design.
    pub(crate) fn new(design: &'d Design, top: ModuleId) -> Flat<'d> {
        let mut flat = Flat { scopes: Vec::new(), count: 0 };
        flat.enter(design, &design.modules[top], String::new(), None);
        flat
    }

    /// Adds a module with all inside it. Modules are at most [`limits::MAX_DEPTH`] deep.
    fn enter(
        &mut self,
        design: &'d Design,
        module: &'d Module,
        path: String,
        parent: Option<(usize, &'d Instance)>,
    ) -> usize {
        let (scope, base) = (self.scopes.len(), self.count as Value);
        self.count += module.nodes.len();
        self.scopes.push(Scope { module, base, path: path.clone(), parent, children: Vec::new() });
        for instance in module.instances.values() {
            let path = format!("{path}{}.", instance.name);
            let child = self.enter(design, &design.modules[instance.module], path, Some((scope, instance)));
            self.scopes[scope].children.push(child);
        }
        scope
    }

    /// The number of a node of an instance, aliases resolved: of the node that makes the value.
    pub(crate) fn value(&self, scope: usize, node: NodeId) -> Value {
        let (mut scope, mut node) = (scope, node);
        loop {
            let at = &self.scopes[scope];
            match (&at.module.nodes[node].op, at.parent) {
                (Op::Input(input), Some((parent, instance))) => {
                    let driver = instance.inputs[input.index()].expand();
                    (scope, node) = (parent, driver.expect("a verified instance"));
                }
                (Op::Instance(instance, output), _) => {
                    let child = at.children[instance.index()];
                    let driver = self.scopes[child].module.outputs[*output].value.expand();
                    (scope, node) = (child, driver.expect("a verified output"));
                }
                _ => return at.base + node.as_u32(),
            }
        }
    }

    /// The instance and the node of a number.
    pub(crate) fn place(&self, value: Value) -> (usize, NodeId) {
        let scope = self.scopes.partition_point(|scope| scope.base <= value) - 1;
        (scope, NodeId::from_u32(value - self.scopes[scope].base))
    }

    /// The node of a number, which is no alias.
    pub(crate) fn node(&self, value: Value) -> (usize, &'d Node) {
        let (scope, node) = self.place(value);
        (scope, &self.scopes[scope].module.nodes[node])
    }

    /// The values that a value depends on within a cycle.
    fn operands(&self, value: Value, visit: &mut dyn FnMut(Value)) {
        let (scope, node) = self.node(value);
        if let Op::Read(memory, read) = &node.op {
            let port = &self.scopes[scope].module.memories[*memory].reads[*read];
            if let (Latency::Direct, Some(address)) = (port.latency, port.address.expand()) {
                visit(self.value(scope, address));
            }
        }
        node.op.operands(|operand| visit(self.value(scope, operand)));
    }

    /// What outputs of the top, registers, writes of memories and clocked reads take.
    pub(crate) fn roots(&self) -> Vec<Value> {
        let mut roots = Vec::new();
        for (scope, at) in self.scopes.iter().enumerate() {
            let mut root = |node: PackedOption<NodeId>| {
                roots.extend(node.expand().map(|node| self.value(scope, node)));
            };
            if scope == 0 {
                at.module.outputs.values().for_each(|port| root(port.value));
            }
            for register in at.module.registers.values() {
                root(register.next);
                root(register.enable);
            }
            for memory in at.module.memories.values() {
                for port in &memory.writes {
                    [port.address, port.data, port.enable].into_iter().for_each(|node| root(node.into()));
                    root(port.lanes);
                }
                for port in memory.reads.values() {
                    if let Latency::Clocked { enable } = port.latency {
                        root(port.address);
                        root(enable);
                    }
                }
            }
        }
        roots
    }

    /// The values that some need, each after what it depends on.
    pub(crate) fn sorted(&self, roots: &[Value]) -> Vec<Value> {
        let mut seen = vec![false; self.count];
        let mut order = Vec::new();
        // Twice on the stack: to look at its operands, and then, when those are done, to come after them.
        let mut stack = Vec::new();
        for root in roots {
            stack.push((*root, false));
            while let Some((value, done)) = stack.pop() {
                if done {
                    order.push(value);
                } else if !seen[value as usize] {
                    seen[value as usize] = true;
                    stack.push((value, true));
                    self.operands(value, &mut |operand| {
                        if !seen[operand as usize] {
                            stack.push((operand, false));
                        }
                    });
                }
            }
        }
        order
    }
}
