//! Port drivers behind one trait: pcap, packet, tap.
