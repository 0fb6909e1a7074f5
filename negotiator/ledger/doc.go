// Package ledger is what the negotiators of a cell must not forget, as one state machine:
// each replica applies the same entries in the same order and is then the same, bit for
// bit. What can be learnt anew from the collectors and the schedds is not in here.
//
// # Description it holds
//
//   - the accounts of fair share ([fairshare.Accountant]), and who leads: the epoch,
//     which every grant carries;
//   - the grants that are in flight, for as long as a schedd may still act on them, so
//     that a new leader does not hand out the same room twice; those with
//     licences until the leader is certain what has become of them;
//   - the objects that administrators set: groups, quotas, limits, queues, capabilities,
//     settings, reservations, drains, factors of submitters;
//   - what had to go for others in the last hour, which is bounded by settings;
//   - tasks and machines that keep failing together, until they may be tried again.
//
// # How it changes
//
// An [LogEntry] is what one cycle of the leader decided, or what an administrator asked
// for. [Ledger.Apply] depends on the entry and on what was applied before, and on nothing
// else: time comes from the entry, maps are never ranged in their own order, floats are
// rounded as package share says. An entry of a leader that has been deposed changes
// nothing.
//
// A [AdminCommand] is refused by [Ledger.Check] with a sentence that says where, why, and
// what to do. The leader asks it before a command is proposed, and Apply asks it again,
// as another one may have come in between.
//
// # How versions mix
//
// Entries and the kept state are laid out as protobuf would lay them out, and what a
// version does not know in them it skips. Objects are JSON, and fields that a version
// does not know stay in them. A rule that refuses more than the version before must not
// come to bear on what replicas of both versions apply: the administrator changes
// settings before or after an upgrade, not during it.
package ledger
