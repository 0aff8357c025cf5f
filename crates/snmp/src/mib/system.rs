//! `system` and `snmp` (RFC 3418).

use super::Moment;
use crate::statistics::COUNTERS;
use crate::value::Value;
use crate::view::{Builder, Cell};
use std::sync::Arc;

const SYSTEM: [u32; 7] = [1, 3, 6, 1, 2, 1, 1];
const SNMP: [u32; 7] = [1, 3, 6, 1, 2, 1, 11];
/// `sysUpTime.0`.
pub(crate) const SYS_UP_TIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
/// `snmpTrapOID.0`.
pub(crate) const TRAP_OID: [u32; 11] = [1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
/// `snmpTraps`: `coldStart` is 1 there, `linkDown` 3, `linkUp` 4.
pub(crate) const TRAPS: [u32; 9] = [1, 3, 6, 1, 6, 3, 1, 1, 5];
/// `sysObjectID`: `millraceSwitch` of MILLRACE-AFDX-MIB. No number was assigned to the project, so it is in the experimental arc.
pub(crate) const SYS_OBJECT_ID: [u32; 7] = [1, 3, 6, 1, 3, 6647, 3];

/// A switch works at the data link layer: 2 to the power of that layer's number less one (RFC 3418, `sysServices`).
const DATA_LINK: i32 = 1 << 1;
/// `snmpEnableAuthenTraps`: disabled, as anybody could have the agent send traps by wrong communities.
const NO_AUTHENTICATION_TRAPS: i32 = 2;

/// The modules whose objects there are, with what they are (`sysORTable`).
const MODULES: [(&[u32], &str); 6] = [
    (&[1, 3, 6, 1, 6, 3, 1], "SNMPv2-MIB: the agent itself"),
    (&[1, 3, 6, 1, 2, 1, 31], "IF-MIB: the ports as interfaces"),
    (&[1, 3, 6, 1, 2, 1, 35], "EtherLike-MIB: what devices of ports have found wrong"),
    (&[1, 3, 6, 1, 2, 1, 16, 20, 8], "RMON-MIB: frames of ports by kind and size"),
    (&[1, 3, 6, 1, 3, 6647], "MILLRACE-AFDX-MIB: mode, configuration, virtual links, queues"),
    (&[1, 3, 6, 1, 6, 3, 1, 1, 5], "Traps coldStart, linkUp and linkDown, and of a change of mode"),
];

pub(super) fn add(builder: &mut Builder, moment: &Moment<'_>) {
    let identity = moment.identity;
    let name: Arc<[u32]> = SYS_OBJECT_ID[..].into();
    let objects: [(u32, Cell); 8] = [
        (1, Value::text(&identity.description).into()),
        (2, Value::Name(name).into()),
        (3, Cell::UpTime),
        (4, Value::text(&identity.contact).into()),
        (5, Value::text(&identity.name).into()),
        (6, Value::text(&identity.location).into()),
        (7, Value::Integer(DATA_LINK).into()),
        // The modules are the same from the start on.
        (8, Value::Ticks(0).into()),
    ];
    for (number, cell) in objects {
        builder.scalar(&[&SYSTEM[..], &[number]].concat(), Some(cell));
    }
    let rows: Vec<_> = (1..).zip(MODULES).map(|(index, module)| (vec![index], module)).collect();
    super::add_table(
        builder,
        &[&SYSTEM[..], &[9, 1]].concat(),
        &rows,
        &[
            (2, |(module, _)| Some(Value::Name((*module).into()).into())),
            (3, |(_, text)| Some(Value::text(text).into())),
            (4, |_| Some(Value::Ticks(0).into())),
        ],
    );
    for number in COUNTERS {
        builder.scalar(&[&SNMP[..], &[number]].concat(), Some(Cell::OfAgent(number)));
    }
    builder.scalar(&[&SNMP[..], &[30]].concat(), Some(Value::Integer(NO_AUTHENTICATION_TRAPS)));
}
