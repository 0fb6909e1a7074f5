// Package flow runs flows: graphs of nodes in which each node may have a script before
// its job and one after it. It is the pure core. It decides what begins next, and its
// owner, the queue, records that and does it.
//
//	waiting ─▶ pre-ready ─▶ pre ─▶ job-ready ─▶ job ─▶ post-ready ─▶ post ─▶ done
//	   │           ▲         │                   │                    │
//	   │           └─ again ─┴───────────────────┴────────────────────┴────▶ failed
//	   └──▶ futile: an ancestor has failed, and the arcs from it are strong
//
// The part that ran last decides about a node. A node that failed is tried again as a
// whole, as often as it may be. The states and outcomes are those of DAGMan, HTCondor's
// manual, chapter DAGMan Workflows.
//
// The owner calls Next, makes an event of the answer, and applies it, until nothing is
// left to do. After a crash it applies the recorded events to a new Run, and goes on: a
// part that had begun is not begun again, because its event says so, and no part begins
// before its event is recorded.
//
// Invariants, which Check verifies: no part of a node begins before each parent over a
// strong arc is done and each over a weak arc was executed; the counters are those of a
// recount; no more parts run than the limits allow, unless the limits have become lower.
package flow
