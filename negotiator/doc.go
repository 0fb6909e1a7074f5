// Package negotiator is the daemon that decides who gets what. It watches the machines at
// the collectors, hears from every schedd what it wants, and whenever something has
// changed it makes a plan ([match]) by fair share ([share]) and sends grants. It runs on
// one, three or five central managers, of which one leads; what the next leader must know
// is in a [ledger] that all of them keep alike ([internal/replica]).
//
// # Who leads
//
//	            the replica leads: it             committed: its epoch
//	            proposes an entry that says so    comes back
//	┌───────────┐ ──────────────────────▶ ┌────────┐ ───────────────▶ ┌─────────┐
//	│ following │                         │ rising │                  │ leading │
//	└───────────┘ ◀────────────────────── └────────┘                  └─────────┘
//	      ▲                                                                │
//	      └── another leads, or nobody, or an entry was not committed ─────┘
//
// A negotiator that follows takes no schedd in, and says who leads (Negotiator.Watch). It
// keeps the ads of all machines parsed, so that it knows the pool the moment it leads.
// One that leads has a cell: conversations with schedds, their requests, the grants that
// are on their way. The cell begins with what the ledger says and with what the schedds,
// which come at once, say themselves; it is thrown away when the lead is lost.
//
// # Committed before it is sent
//
// A cycle's grants, and what submitters use by then, make one entry of the log, and they
// reach the schedds when it is committed; meanwhile the next cycle may plan, as it counts
// them as pending. So of two negotiators that both believe to lead no two grants clash:
//
//   - Every grant that was ever sent stands in the log, at a place before it was sent.
//   - A leader's epoch is made by an entry of its own, and is higher than all before;
//     entries of a lower epoch that come after it are void. So what an
//     older leader may still send stands before that entry, and the new leader has applied it when it begins: it counts it as taken.
//   - An older leader that is cut off gets nothing more committed, and so sends nothing
//     more.
//   - A machine refuses grants of an epoch lower than the highest that it has seen, and
//     judges each by what it has itself. So the worst that an old grant
//     which arrives late can do is to be refused, or to take room for which a newer one then is.
//
// # Licences
//
// A licence is of no machine, so the last of these points does not hold for it: here the
// leader alone prevents that it is used twice. What was granted counts until its schedd
// has said what became of it, also to a new leader when it joins, or until the machine's
// ad says that by its own clock the grant has ended: then it refuses the claim. Nobody
// compares the clocks of two machines, and that nothing was heard for a while proves
// nothing: a schedd may be stopped with a grant in hand, and go on. See limitUse.go.
//
// # Use
//
// What submitters use is told by the schedds and charged by entries of the log, at the
// latest a second after it has changed, each with the time of the leader's clock: so the
// accounts are the same everywhere, bit for bit. What tasks of a schedd hold that is away
// counts as it last said, for forty minutes; and of one that a new leader has not heard,
// as the machines' ads say.
package negotiator
