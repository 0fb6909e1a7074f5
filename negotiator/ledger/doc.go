// Package ledger is the replicated state machine of the negotiators of a cell. Every
// replica applies the same entries in the same order and reaches the same state, bit for
// bit. The ledger contains only state that cannot be rebuilt from the collectors and the
// schedds.
//
// # What it contains
//
//   - the accounts of fair share ([fairshare.Accountant]) and the leader with its epoch,
//     which every grant carries;
//   - the pending grants, for as long as a schedd may still claim them, so that a new
//     leader does not grant the same resources twice. Those with concurrency limits stay
//     until the leader knows their outcome;
//   - the objects that administrators set: groups, quotas, limits, queues, capabilities,
//     settings, reservations, drains, factors of submitters;
//   - the evictions of the last hour, which settings bound;
//   - pairs of a task and a machine that keep failing together, until the retry time.
//
// # How it changes
//
// A [LogEntry] contains the decisions of one cycle of the leader, or the commands of
// administrators. The result of [Ledger.Apply] depends only on the entry and on the
// entries before it: the time comes from the entry, no map is ranged over in its own
// order, and floats are rounded as package fairshare describes. An entry of a deposed
// leader changes nothing.
//
// [Ledger.Check] refuses an invalid [AdminCommand] with an error that names the place,
// the reason and the remedy. The leader calls Check before it proposes a command, and
// Apply checks again, as another command may have been applied in between.
//
// # How versions mix
//
// Entries and the saved state use the protobuf wire format, and a version skips the
// fields that it does not know. Objects are JSON and retain the fields that a version
// does not know. A rule that is stricter than in the version before must not affect what
// replicas of both versions apply: administrators change settings before or after an
// upgrade, not during it.
package ledger
