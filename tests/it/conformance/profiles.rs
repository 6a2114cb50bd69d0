//! Section 9.2: members, groups, one-shot sets.

use super::tables::{bare_forward, entry};
use super::{Code, E, Program, Row, delete, insert, kept, modify, read, write};
use ringpath::p4runtime::proto::p4::config::v1::action_profile::{
    SelectorSizeSemantics, SumOfMembers,
};

const SHARED: u32 = 0x1100_0001;
const MEMBERS: u32 = 0x1100_0002;
const UNBOUNDED: u32 = 0x1100_0003;

fn action() -> String {
    format!("action {{ {} }}", bare_forward("'\\x1'"))
}

fn member(owner: u32, id: u32, rest: &str) -> String {
    format!("action_profile_member {{ action_profile_id: {owner} member_id: {id} {rest} }}")
}

fn group(owner: u32, size: u32, members: &str) -> String {
    format!(
        "action_profile_group {{ action_profile_id: {owner} group_id: 1 max_size: {size} {members} }}"
    )
}

fn of(id: u32, weight: i32) -> String {
    format!("members {{ member_id: {id} weight: {weight} }} ")
}

/// Members 1 and 2 of a profile.
fn two(owner: u32) -> Vec<String> {
    (1..=2).map(|id| insert(&member(owner, id, &action()))).collect()
}

/// An entry of `route_a`.
fn route(action: &str) -> String {
    entry(
        0x0200_0007,
        &format!(
            "match {{ field_id: 1 lpm {{ value: '\\x0a\\0\\0\\0' prefix_len: 8 }} }} {action}"
        ),
    )
}

fn set(rest: &str) -> String {
    route(&format!("action {{ action_profile_action_set {{ {rest} }} }}"))
}

fn shot(weight: i32, rest: &str) -> String {
    format!("action_profile_actions {{ {} weight: {weight} {rest} }} ", action())
}

pub fn rows() -> Vec<Row> {
    [members(), groups(), sizes(), one_shots(), semantics()].into_iter().flatten().collect()
}

#[rustfmt::skip] // one row a line reads as a table
fn members() -> Vec<Row> {
    use Code::*;
    let indirect = |id: u32| entry(0x0200_0009, &format!("priority: 1 match {{ field_id: 1 ternary {{ value: '\\x1' mask: '\\x1' }} }} action {{ action_profile_member_id: {id} }}"));
    let four: Vec<_> = (1..=4).map(|id| insert(&member(MEMBERS, id, &action()))).collect();
    let used = [two(MEMBERS), vec![insert(&indirect(1))]].concat();
    vec![
        write("9.2.1", "INSERT of a member", insert(&member(MEMBERS, 1, &action())), Ok),
        write("9.2.1", "INSERT of a member twice", insert(&member(MEMBERS, 1, &action())), AlreadyExists).after(&two(MEMBERS)),
        write("9.2.1", "INSERT of a member without action", insert(&member(MEMBERS, 1, "")), InvalidArgument),
        write("9.2.1", "INSERT of member 0", insert(&member(MEMBERS, 0, &action())), InvalidArgument),
        write("9.2.1", "a member with an action of other tables", insert(&member(MEMBERS, 1, "action { action_id: 0x01000003 params { param_id: 1 value: '\\x1' } }")), InvalidArgument),
        write("9.2.1", "a member whose action lacks a parameter", insert(&member(MEMBERS, 1, "action { action_id: 0x01000001 params { param_id: 1 value: '\\x1' } }")), InvalidArgument),
        write("9.2.1", "a member of a full profile", insert(&member(MEMBERS, 5, &action())), ResourceExhausted).after(&four).pi("UNKNOWN"),
        write("9.2.1", "MODIFY of a member", modify(&member(MEMBERS, 1, &format!("action {{ {} }}", bare_forward("'\\x9'")))), Ok).after(&two(MEMBERS)),
        write("9.2.1", "MODIFY of a member without action", modify(&member(MEMBERS, 1, "")), InvalidArgument).after(&two(MEMBERS)),
        write("9.2.1", "MODIFY of a member that is not there", modify(&member(MEMBERS, 1, &action())), NotFound),
        write("9.2.1", "DELETE of a member", delete(&member(MEMBERS, 1, "")), Ok).after(&two(MEMBERS)),
        write("9.2.1", "DELETE of a member with a nonsensical action", delete(&member(MEMBERS, 1, "action { action_id: 5 }")), Ok).after(&two(MEMBERS)),
        write("9.2.1", "DELETE of a member that is not there", delete(&member(MEMBERS, 1, "")), NotFound),
        write("9.2.1", "DELETE of a member that an entry names", delete(&member(MEMBERS, 1, "")), FailedPrecondition).after(&used).pi("UNKNOWN"),
        write("9.2.1", "DELETE of a member that an entry no longer names", delete(&member(MEMBERS, 1, "")), Ok).after(&used).after(&[modify(&indirect(2))]),
        write("9.2.1", "DELETE of a member in a group", delete(&member(SHARED, 1, "")), FailedPrecondition).after(&two(SHARED)).after(&[insert(&group(SHARED, 4, &of(1, 1)))]).pi("UNKNOWN"),
        write("9.2.1", "DELETE of a member that left its group", delete(&member(SHARED, 1, "")), Ok).after(&two(SHARED)).after(&[insert(&group(SHARED, 4, &of(1, 1))), modify(&group(SHARED, 4, &of(2, 1)))]),
        write("9.2.1", "a profile that does not exist", insert(&member(0x1100_00ff, 1, &action())), InvalidArgument),
        kept("9.2.1", "a member reads back", insert(&member(MEMBERS, 1, &action())), "action_profile_member { }"),
        read("9.2.1", "all members of all profiles", "action_profile_member { }", "OK, 4 entities").after(&two(MEMBERS)).after(&two(SHARED)),
        read("9.2.1", "all members of one profile", "action_profile_member { action_profile_id: 0x11000001 }", "OK, 2 entities").after(&two(MEMBERS)).after(&two(SHARED)),
        read("9.2.1", "one member", "action_profile_member { action_profile_id: 0x11000001 member_id: 2 }", "OK, 1 entity").after(&two(SHARED)),
        read("9.2.1", "members of a profile that does not exist", "action_profile_member { action_profile_id: 0x110000ff }", "INVALID_ARGUMENT"),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn groups() -> Vec<Row> {
    use Code::*;
    let there = [two(SHARED), vec![insert(&group(SHARED, 4, &of(1, 1)))]].concat();
    let named = [there.clone(), vec![insert(&route("action { action_profile_group_id: 1 }"))]].concat();
    let watch = |port: &str| insert(&group(SHARED, 4, &format!("members {{ member_id: 1 weight: 1 watch_port: {port} }}")));
    vec![
        write("9.2.2", "INSERT of a group", insert(&group(SHARED, 4, &(of(1, 1) + &of(2, 3)))), Ok).after(&two(SHARED)),
        write("9.2.2", "INSERT of an empty group", insert(&group(SHARED, 4, "")), Ok),
        write("9.2.2", "INSERT of a group twice", insert(&group(SHARED, 4, &of(1, 1))), AlreadyExists).after(&there),
        write("9.2.2", "a member and a group of one id", insert(&group(SHARED, 4, &of(2, 1))), Ok).after(&two(SHARED)),
        write("9.2.2", "group 0", insert(&group(SHARED, 4, &of(1, 1)).replace("group_id: 1", "group_id: 0")), InvalidArgument).after(&two(SHARED)),
        write("9.2.2", "a group with a member that does not exist", insert(&group(SHARED, 4, &of(9, 1))), NotFound).after(&two(SHARED)),
        write("9.2.2", "a group with a member twice", insert(&group(SHARED, 4, &(of(1, 1) + &of(1, 1)))), InvalidArgument).after(&two(SHARED)),
        write("9.2.2", "a member with weight 0", insert(&group(SHARED, 4, &of(1, 0))), InvalidArgument).after(&two(SHARED)),
        write("9.2.2", "a member with a negative weight", insert(&group(SHARED, 4, &of(1, -2))), InvalidArgument).after(&two(SHARED)),
        write("9.2.2", "a group of a profile without selector", insert(&group(MEMBERS, 0, &of(1, 1))), InvalidArgument).after(&two(MEMBERS)),
        write("9.2.2", "a watch port", watch("'\\x4'"), Ok).after(&two(SHARED)),
        write("9.2.2", "an empty watch port", watch("''"), Ok).after(&two(SHARED)),
        write("9.2.2", "a watch port that does not exist", watch("'\\x2\\0'"), InvalidArgument).after(&two(SHARED)),
        write("9.2.2", "a watch port beyond 32 bits", watch("'\\x1\\0\\0\\0\\0'"), InvalidArgument).after(&two(SHARED)),
        kept("9.2.2", "a group with watch ports reads back", insert(&group(SHARED, 4, "members { member_id: 1 weight: 1 watch_port: '\\x4' } members { member_id: 2 weight: 2 }")), "action_profile_group { }").after(&two(SHARED)),
        write("9.2.2", "MODIFY of a group's members", modify(&group(SHARED, 4, &of(2, 3))), Ok).after(&there),
        write("9.2.2", "MODIFY of a group that is not there", modify(&group(SHARED, 4, &of(1, 1))), NotFound).after(&two(SHARED)),
        write("9.2.2", "MODIFY to a member that does not exist", modify(&group(SHARED, 4, &of(9, 1))), NotFound).after(&there),
        write("9.2.2", "MODIFY of max_size", modify(&group(SHARED, 3, &of(1, 1))), InvalidArgument).after(&there),
        write("9.2.2", "DELETE of a group", delete(&group(SHARED, 0, "")), Ok).after(&there),
        write("9.2.2", "DELETE of a group with nonsensical members and size", delete(&group(SHARED, 99, &of(77, -3))), Ok).after(&there),
        write("9.2.2", "DELETE of a group that is not there", delete(&group(SHARED, 0, "")), NotFound),
        write("9.2.2", "DELETE of a group that an entry names", delete(&group(SHARED, 0, "")), FailedPrecondition).after(&named).pi("UNKNOWN"),
        write("9.2.2", "an entry on a group", insert(&route("action { action_profile_group_id: 1 }")), Ok).after(&there),
        write("9.2.2", "an entry on a group that does not exist", insert(&route("action { action_profile_group_id: 2 }")), NotFound).after(&there),
        write("9.2.2", "an entry on a member of a selector", insert(&route("action { action_profile_member_id: 2 }")), Ok).after(&there),
        read("9.2.2", "all groups", "action_profile_group { }", "OK, 1 entity").after(&there),
        read("9.2.2", "all groups of one selector", "action_profile_group { action_profile_id: 0x11000003 }", "OK, 0 entities").after(&there),
        read("9.2.2", "one group", "action_profile_group { action_profile_id: 0x11000001 group_id: 1 }", "OK, 1 entity").after(&there),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn sizes() -> Vec<Row> {
    use Code::*;
    vec![
        write("9.2.2.1", "max_size above the program's", insert(&group(SHARED, 9, &of(1, 1))), InvalidArgument).after(&two(SHARED)),
        write("9.2.2.1", "max_size as large as the program's", insert(&group(SHARED, 8, &of(1, 1))), Ok).after(&two(SHARED)),
        write("9.2.2.1", "max_size left out where the program sets a limit", insert(&group(SHARED, 0, &of(1, 1))), InvalidArgument).after(&two(SHARED)),
        write("9.2.2.1", "a negative max_size", insert(&group(SHARED, 4, &of(1, 1)).replace("max_size: 4", "max_size: -4")), InvalidArgument).after(&two(SHARED)),
        write("9.2.2.1", "more weight than max_size", insert(&group(SHARED, 4, &of(1, 5))), ResourceExhausted).after(&two(SHARED)),
        write("9.2.2.1", "more weight than max_size by MODIFY", modify(&group(SHARED, 4, &of(1, 5))), ResourceExhausted).after(&two(SHARED)).after(&[insert(&group(SHARED, 4, &of(1, 1)))]),
        write("9.2.2.1", "max_size left out where the program sets none", insert(&group(UNBOUNDED, 0, &of(1, 1))), Ok).after(&two(UNBOUNDED)),
        write("9.2.2.1", "any max_size where the program sets none", insert(&group(UNBOUNDED, 1000, &of(1, 1))), Ok).after(&two(UNBOUNDED)),
        write("9.2.2.1", "a max_size that the switch cannot have", insert(&group(UNBOUNDED, 2_000_000_000, &of(1, 1))), ResourceExhausted).after(&two(UNBOUNDED)).pi("UNKNOWN"),
        write("9.2.2.1", "more weight than the switch can have", insert(&group(UNBOUNDED, 0, &of(1, 2_000_000_000))), ResourceExhausted).after(&two(UNBOUNDED)).pi("UNKNOWN"),
        write("9.2.2.1", "max_size given by MODIFY after it was left out", modify(&group(UNBOUNDED, 5, &of(1, 1))), InvalidArgument).after(&two(UNBOUNDED)).after(&[insert(&group(UNBOUNDED, 0, &of(1, 1)))]),
        write("9.2.2.1", "max_size left out by MODIFY after it was given", modify(&group(UNBOUNDED, 0, &of(1, 1))), InvalidArgument).after(&two(UNBOUNDED)).after(&[insert(&group(UNBOUNDED, 5, &of(1, 1)))]),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn one_shots() -> Vec<Row> {
    use Code::*;
    let one = insert(&set(&shot(1, "")));
    vec![
        write("9.2.3", "a one-shot set", insert(&set(&(shot(1, "") + &shot(2, "")))), Ok),
        write("9.2.3", "an empty one-shot set", insert(&set("")), Ok).pi("UNIMPLEMENTED"),
        kept("9.2.3", "a one-shot set reads back", insert(&set(&(shot(1, "watch_port: '\\x4'") + &shot(2, "")))), "table_entry { table_id: 0x02000007 }"),
        kept("9.2.3", "equal actions of a set are not merged", insert(&set(&(shot(2, "") + &shot(2, "") + &shot(1, "")))), "table_entry { table_id: 0x02000007 }"),
        kept("9.2.3", "a selection mode that repeats the selector's reads back", insert(&set(&format!("action_selection_mode: HASH size_semantics: SUM_OF_WEIGHTS {}", shot(1, "")))), "table_entry { table_id: 0x02000007 }"),
        write("9.2.3", "an action of the set with weight 0", insert(&set(&shot(0, ""))), InvalidArgument),
        write("9.2.3", "more weight than a group may hold", insert(&set(&shot(9, ""))), InvalidArgument),
        write("9.2.3", "as much weight as a group may hold", insert(&set(&shot(8, ""))), Ok),
        write("9.2.3", "a set with an action of other tables", insert(&set("action_profile_actions { action { action_id: 0x01000003 params { param_id: 1 value: '\\x1' } } weight: 1 }")), InvalidArgument),
        write("9.2.3", "a set with no action in it", insert(&set("action_profile_actions { weight: 1 }")), InvalidArgument),
        write("9.2.3", "a set with a watch port that does not exist", insert(&set(&shot(1, "watch_port: '\\x2\\0'"))), InvalidArgument),
        write("9.2.3", "random selection", insert(&set(&format!("action_selection_mode: RANDOM {}", shot(1, "")))), Unimplemented),
        write("9.2.3", "size by members where the selector says weights", insert(&set(&format!("size_semantics: SUM_OF_MEMBERS {}", shot(1, "")))), Unimplemented),
        write("9.2.3", "a group action, which no v1model action can be", insert(&set(&format!("group_{} {}", action(), shot(1, "")))), PermissionDenied),
        write("9.2.3", "a one-shot set beside members", one.clone(), InvalidArgument).after(&two(SHARED)),
        write("9.2.3", "a one-shot set beside an empty group", one.clone(), InvalidArgument).after(&[insert(&group(SHARED, 4, ""))]),
        write("9.2.3", "a member beside one-shot sets", insert(&member(SHARED, 1, &action())), InvalidArgument).after(std::slice::from_ref(&one)),
        write("9.2.3", "a group beside one-shot sets", insert(&group(SHARED, 4, "")), InvalidArgument).after(std::slice::from_ref(&one)),
        write("9.2.3", "a one-shot set beside another table's", insert(&entry(0x0200_0008, &format!("match {{ field_id: 1 exact {{ value: '\\x1' }} }} action {{ action_profile_action_set {{ {} }} }}", shot(1, "")))), Ok).after(std::slice::from_ref(&one)),
        write("9.2.3", "members of another selector beside one-shot sets", insert(&member(UNBOUNDED, 1, &action())), Ok).after(std::slice::from_ref(&one)),
        write("9.2.3", "members after the last one-shot set is gone", insert(&member(SHARED, 1, &action())), Ok).after(&[one.clone(), delete(&set(""))]),
        write("9.2.3", "MODIFY of a one-shot set", modify(&set(&(shot(3, "") + &shot(4, "")))), Ok).after(&[one]),
        write("9.2.3.1", "a group of members with different actions", insert(&group(SHARED, 4, &(of(1, 1) + &of(2, 1)))), Ok).after(&[insert(&member(SHARED, 1, &action())), insert(&member(SHARED, 2, "action { action_id: 0x01000002 }"))]),
    ]
}

/// p4c cannot say these; a P4Info may.
const BY_MEMBERS: Program = Program {
    change: |info| {
        let by = SumOfMembers { max_member_weight: 100 };
        info.action_profiles.iter_mut().for_each(|profile| {
            if profile.with_selector {
                profile.selector_size_semantics = Some(SelectorSizeSemantics::SumOfMembers(by));
            }
        });
    },
    ..E
};

const NO_WEIGHTS: Program = Program {
    change: |info| {
        info.action_profiles.iter_mut().for_each(|profile| profile.weights_disallowed = true)
    },
    ..E
};

#[rustfmt::skip] // one row a line reads as a table
fn semantics() -> Vec<Row> {
    use Code::*;
    let nine: String = (0..9).map(|_| shot(1, "")).collect();
    vec![
        write("9.2.3", "by members: weights do not count against the size", insert(&set(&(shot(100, "") + &shot(100, "")))), Ok).with(BY_MEMBERS),
        write("9.2.3", "by members: a weight above the most of one member", insert(&set(&shot(101, ""))), InvalidArgument).with(BY_MEMBERS),
        write("9.2.3", "by members: more actions than a group holds", insert(&set(&nine)), InvalidArgument).with(BY_MEMBERS),
        write("9.2.2.1", "by members: a group's weights do not count against max_size", insert(&group(SHARED, 2, &(of(1, 50) + &of(2, 50)))), Ok).with(BY_MEMBERS).after(&two(SHARED)),
        write("9.2.2.1", "by members: more members than max_size", insert(&group(SHARED, 1, &(of(1, 1) + &of(2, 1)))), ResourceExhausted).with(BY_MEMBERS).after(&two(SHARED)),
        write("9.2.2", "without weights: a weight", insert(&group(SHARED, 4, &of(1, 1))), InvalidArgument).with(NO_WEIGHTS).after(&two(SHARED)),
        kept("9.2.2", "without weights: a group reads back with weight 0", insert(&group(SHARED, 4, "members { member_id: 1 } members { member_id: 2 }")), "action_profile_group { }").with(NO_WEIGHTS).after(&two(SHARED)),
        write("9.2.3", "without weights: a set with a weight", insert(&set(&shot(1, ""))), InvalidArgument).with(NO_WEIGHTS),
        kept("9.2.3", "without weights: a set reads back with weight 0", insert(&set(&format!("action_profile_actions {{ {} }}", action()))), "table_entry { table_id: 0x02000007 }").with(NO_WEIGHTS),
    ]
}
