//! One running switch: worker, replication, clone, recirculate, digest, counters.
