// Package negotiator is the daemon that decides which request gets which resources. It
// watches the machines at the collectors, receives requests from every schedd, and
// whenever something has changed makes a plan ([match]) by fair share ([fairshare]) and
// sends grants. It runs on one, three or five central managers. One of them leads, and
// what the next leader must know is in a [ledger] that is replicated to all of them
// ([internal/replica]).
//
// # Who leads
//
//	            the replica leads: it             committed: its epoch
//	            proposes a leadership entry       comes back
//	┌───────────┐ ─────────────────▶ ┌───────────┐ ──────────▶ ┌─────────┐
//	│ following │                    │ proposing │             │ leading │
//	└───────────┘ ◀───────────────── └───────────┘             └─────────┘
//	      ▲                                                         │
//	      └── another or none leads, or an entry was not committed ─┘
//
// A negotiator that follows refuses schedds, and reports who leads (Negotiator.Watch). It
// parses the ads of all machines, so it knows the pool at the moment it becomes leader. A
// leader has leader state: sessions with schedds, their requests, and pending grants. It
// begins with the ledger and with what the schedds report when they connect, and is
// dropped when leadership is lost.
//
// # Committed before it is sent
//
// The grants of a cycle and the usage of submitters form one entry of the log. The grants
// are sent to the schedds when it is committed. Meanwhile the next cycle may plan, since
// it counts them as pending. So the grants of two negotiators that both believe to lead
// never conflict:
//
//   - Every grant that was ever sent was in the log before it was sent.
//   - A leader's epoch is made by an entry of its own, and is higher than all before.
//     Later entries of a lower epoch are void. So whatever an older leader may still send
//     is in the log before that entry. The new leader has applied it when it begins, and
//     counts it as pending.
//   - An older leader that is cut off cannot commit, so it sends nothing more.
//   - A machine refuses grants of an epoch lower than the highest that it has seen, and
//     checks each grant against its own resources. So an old grant that arrives late is
//     refused, or takes resources for which a newer grant is then refused.
//
// # Concurrency limits
//
// A concurrency limit belongs to no machine, so the last point does not protect it. The
// leader alone prevents that it is exceeded. A grant counts until its schedd has reported
// its outcome, also to a new leader when it connects, or until the machine's ad shows
// that by the machine's own clock the grant has expired: from then on it refuses the
// claim. Clocks of two machines are never compared, and silence proves nothing: a schedd
// may be stopped while it has a grant, and continue later. See limit_use.go.
//
// # Usage
//
// Schedds report the usage of their submitters. The leader charges it by entries of the
// log, at most a second after a change, each with the time of the leader's clock. So the
// accounts are the same on every replica, bit for bit. While a schedd is away, its tasks
// count as it last reported, for forty minutes. If a new leader has no report of it, they
// count as the machine ads show.
package negotiator
