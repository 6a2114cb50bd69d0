//! Section 9.5: multicast groups and clone sessions.

use super::{Code, Row, delete, insert, kept, modify, read, write};

fn multicast(rest: &str) -> String {
    format!("packet_replication_engine_entry {{ multicast_group_entry {{ {rest} }} }}")
}

fn session(rest: &str) -> String {
    format!("packet_replication_engine_entry {{ clone_session_entry {{ {rest} }} }}")
}

fn copy(port: u32, instance: u32) -> String {
    format!("replicas {{ port: '\\x{port:x}' instance: {instance} }} ")
}

#[rustfmt::skip] // one row a line reads as a table
pub fn rows() -> Vec<Row> {
    use Code::*;
    let two = format!("{}{}", copy(1, 1), copy(2, 1));
    let group = [insert(&multicast(&format!("multicast_group_id: 1 {two}")))];
    let clone = [insert(&session(&format!("session_id: 5 {}", copy(1, 1))))];
    let backups = "multicast_group_id: 1 replicas { port: '\\x18' instance: 4 backup_replicas { port: '\\x19' instance: 8 } backup_replicas { port: '\\x1a' instance: 9 } backup_replicas { port: '\\x1b' instance: 10 } }";
    vec![
        write("9.5.1", "a group", insert(&multicast(&format!("multicast_group_id: 1 {two}"))), Ok),
        kept("9.5.1", "a group with metadata reads back", insert(&multicast(&format!("multicast_group_id: 1 {} metadata: 'm'", copy(1, 2)))), &multicast("")),
        kept("9.5.1", "backups read back in their order", insert(&multicast(backups)), &multicast("multicast_group_id: 1")),
        write("9.5.1", "a group without replicas", insert(&multicast("multicast_group_id: 1")), Ok),
        write("9.5.1", "a group by the older port field", insert(&multicast("multicast_group_id: 1 replicas { egress_port: 3 instance: 1 }")), Ok),
        write("9.5.1", "instance 0", insert(&multicast(&format!("multicast_group_id: 1 {}", copy(1, 0)))), Ok),
        write("9.5.1", "the largest instance", insert(&multicast(&format!("multicast_group_id: 1 {}", copy(1, 65535)))), Ok),
        write("9.5.1", "an instance beyond the switch's", insert(&multicast(&format!("multicast_group_id: 1 {}", copy(1, 65536)))), InvalidArgument),
        write("9.5.1", "one port with two instances", insert(&multicast(&format!("multicast_group_id: 1 {}{}", copy(1, 1), copy(1, 2)))), Ok),
        write("9.5.1", "port and instance twice", insert(&multicast(&format!("multicast_group_id: 1 {0}{0}", copy(1, 1)))), InvalidArgument),
        write("9.5.1", "a replica without port", insert(&multicast("multicast_group_id: 1 replicas { instance: 1 }")), InvalidArgument),
        write("9.5.1", "a replica on a port that does not exist", insert(&multicast("multicast_group_id: 1 replicas { port: '\\x2\\0' instance: 1 }")), InvalidArgument),
        write("9.5.1", "a backup on its replica's port", insert(&multicast("multicast_group_id: 1 replicas { port: '\\x1' backup_replicas { port: '\\x1' instance: 2 } }")), InvalidArgument),
        write("9.5.1", "a backup that repeats another replica", insert(&multicast(&format!("multicast_group_id: 1 {} replicas {{ port: '\\x2' backup_replicas {{ port: '\\x1' instance: 1 }} }}", copy(1, 1)))), InvalidArgument),
        write("9.5.1", "a backup on a port that does not exist", insert(&multicast("multicast_group_id: 1 replicas { port: '\\x1' backup_replicas { port: '\\x2\\0' instance: 2 } }")), InvalidArgument),
        write("9.5.1", "INSERT of a group that is there", insert(&multicast("multicast_group_id: 1")), AlreadyExists).after(&group),
        write("9.5.1", "MODIFY of a group", modify(&multicast(&format!("multicast_group_id: 1 {}", copy(7, 7)))), Ok).after(&group),
        write("9.5.1", "MODIFY of a group to a port and instance twice", modify(&multicast(&format!("multicast_group_id: 1 {0}{0}", copy(1, 1)))), InvalidArgument).after(&group),
        write("9.5.1", "MODIFY of a group that is not there", modify(&multicast("multicast_group_id: 1")), NotFound),
        write("9.5.1", "DELETE of a group", delete(&multicast("multicast_group_id: 1")), Ok).after(&group),
        write("9.5.1", "DELETE of a group with nonsensical replicas", delete(&multicast("multicast_group_id: 1 replicas { }")), Ok).after(&group),
        write("9.5.1", "DELETE of a group that is not there", delete(&multicast("multicast_group_id: 1")), NotFound),
        write("9.5.1.1", "group 0", insert(&multicast("")), InvalidArgument),
        write("9.5.1.1", "the largest group id", insert(&multicast("multicast_group_id: 32767")), Ok),
        write("9.5.1.1", "a group id beyond the switch's", insert(&multicast("multicast_group_id: 32768")), OutOfRange),
        read("9.5.1", "all groups", &multicast(""), "OK, 1 entity").after(&group).after(&clone),
        read("9.5.1", "one group, its other fields ignored", &multicast("multicast_group_id: 1 replicas { } metadata: 'other'"), "OK, 1 entity").after(&group),
        read("9.5.1", "a group that is not there", &multicast("multicast_group_id: 2"), "OK, 0 entities").after(&group),
        write("9.5.2", "a clone session", insert(&session(&format!("session_id: 5 {}", copy(1, 1)))), Ok),
        kept("9.5.2", "a clone session with length and class reads back", insert(&session(&format!("session_id: 5 packet_length_bytes: 64 class_of_service: 1 {}", copy(1, 2)))), &session("")).pi("UNIMPLEMENTED"),
        write("9.5.2", "a class of service that is no queue", insert(&session("session_id: 5 class_of_service: 99")), InvalidArgument).pi("UNIMPLEMENTED"),
        write("9.5.2", "a truncated clone", insert(&session(&format!("session_id: 5 packet_length_bytes: 64 {}", copy(1, 1)))), Ok).pi("UNKNOWN"),
        write("9.5.2", "a negative packet length", insert(&session("session_id: 5 packet_length_bytes: -1")), InvalidArgument),
        write("9.5.2", "a clone's instance beyond the switch's", insert(&session(&format!("session_id: 5 {}", copy(1, 65536)))), InvalidArgument),
        write("9.5.2", "a clone to a port that does not exist", insert(&session("session_id: 5 replicas { port: '\\x2\\0' }")), InvalidArgument),
        write("9.5.2", "INSERT of a session that is there", insert(&session("session_id: 5")), AlreadyExists).after(&clone),
        write("9.5.2", "MODIFY of a session", modify(&session(&format!("session_id: 5 {}", copy(2, 2)))), Ok).after(&clone),
        write("9.5.2", "MODIFY of a session that is not there", modify(&session("session_id: 5")), NotFound),
        write("9.5.2", "DELETE of a session", delete(&session("session_id: 5 class_of_service: 999 packet_length_bytes: -4")), Ok).after(&clone),
        write("9.5.2", "DELETE of a session that is not there", delete(&session("session_id: 5")), NotFound),
        write("9.5.2.1", "session 0", insert(&session("")), InvalidArgument),
        write("9.5.2.1", "MODIFY of session 0", modify(&session("")), InvalidArgument),
        write("9.5.2.1", "DELETE of session 0", delete(&session("")), InvalidArgument),
        read("9.5.2", "all sessions", &session(""), "OK, 1 entity").after(&group).after(&clone),
        read("9.5.2", "one session, its other fields ignored", &session("session_id: 5 class_of_service: 4"), "OK, 1 entity").after(&clone),
        write("9.5", "neither group nor session", insert("packet_replication_engine_entry { }"), InvalidArgument),
        read("9.5", "neither group nor session to read", "packet_replication_engine_entry { }", "INVALID_ARGUMENT"),
    ]
}
