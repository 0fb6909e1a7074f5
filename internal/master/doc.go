// Package master starts the daemons that a node file names, each in a process of its own,
// watches them, and restarts what dies. It also makes and runs a whole pool on one
// machine.
//
// The life of one daemon, as its master sees it:
//
//	             what it needs serves          says it serves
//	Waiting ────────────────────▶ Starting ──────────────────▶ Serving
//	                                ▲   │ dies                    │ dies
//	                     time is up │   ▼                         │
//	                                Resting ◀─────────────────────┘
//
//	any of them ── the master is stopping ──▶ Stopping ── reaped ──▶ Gone
//
// A daemon never outlives its master: the kernel kills it with SIGKILL when the master
// dies (prctl(2), PR_SET_PDEATHSIG), so that a new master never meets daemons that it
// does not know. Starters are no daemons and do live on; the master is their subreaper,
// which keeps those whose startd has died from being lost among the children of init.
package master
