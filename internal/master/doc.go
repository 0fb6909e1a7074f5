// Package master starts the daemons that a node file names, each in a process of its own,
// watches them, and restarts those that die. It also makes and runs a whole pool on one
// machine.
//
// The life of one daemon, as its master sees it:
//
//	             what it needs serves          reports that it serves
//	Waiting ────────────────────▶ Starting ──────────────────▶ Serving
//	                                ▲   │ dies                    │ dies
//	                   delay is over│   ▼                         │
//	                                Resting ◀─────────────────────┘
//
//	any of them ── the master is stopping ──▶ Stopping ── reaped ──▶ Gone
//	            ── the master reloads ──────▶ Stopping ── reaped ──▶ Resting, or Gone
//
// A daemon never outlives its master: the kernel kills it with SIGKILL when the master
// dies (prctl(2), PR_SET_PDEATHSIG), so that a new master never meets unknown daemons.
// Starters are not daemons and live on; the master is their subreaper, so that starters
// whose startd has died do not become children of init.
package master
