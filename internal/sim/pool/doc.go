// Package pool is a simulated pool: schedds, machines and central managers with a virtual
// clock, a simulated network, simulated disks and simulated tasks, that are driven by
// what runs a real one (Verma et al., EuroSys 2015, §3.1: Fauxmaster). The same config is
// the same run, event for event.
//
//	┌─ schedd ────────────────┐        ┌─ central manager ───────────┐        ┌─ machine ───────────────┐
//	│ schedd.LoopCore             │ grants │ negotiator.LoopCore             │  ads   │ startd/slot             │
//	│  queue, dispatch        │ ◀────▶ │  match, share, ledger       │ ◀───── │ hands, starters, tasks  │
//	│ journal on a disk       │        │ collector/adstore           │        │  that outlive it        │
//	└───────────┬─────────────┘        │ log: internal/sim/consensus │        └───────────┬─────────────┘
//	            │                      └─────────────────────────────┘                    │
//	            └──────────────────── sessions: claim, activate, renew, … ────────────────┘
//
// # What is real
//
// A negotiator and a schedd are the loops of their daemons, turned by hand
// (negotiator.LoopCore, schedd.LoopCore), with all that they decide: what is wanted, what
// is granted, what counts as pending, what a new leader inherits, what is written before
// it is said, how a session's welcome is compared with the books. Messages are those of
// the wire, events are encoded and decoded as in the log, grants carry real capabilities,
// ads are printed and parsed.
//
// A pool begins empty, or as a cell does whose daemons are all started again: with a
// ledger, with jobs in the logs of schedds, and with claims that machines adopt
// (before.go).
//
// # What stands for something else
//
//   - The loop around startd/slot: what it hears, says and does (handleSchedd.go,
//     perform.go, adopt.go) is written anew after package startd, as that is one with
//     hands
//     of processes, files and groups. What owners of machines make of claims is startd's own (startd/desktop/policy, startd/desktop); the guard that
//     sees them (desktopPool.go) says only what is new. No checkpoints, queues on the node or scripts.
//   - Raft: internal/sim/consensus. A negotiator reads the collector beside it only, not
//     all of them merged (internal/adclient).
//   - How a schedd finds the leader (reach.go) follows
//     schedd/negotiation/leader_tracker.go, and the writing of batches and the reading of
//     its log schedd/commit_batch.go and schedd/journal, without bbolt: a write is on disk as a whole, or not at all.
//   - A connection keeps the order and loses nothing until it breaks, as gRPC's. What is
//     sent while the way is cut waits; after 30 seconds of silence either
//     side gives up.
//   - A turn of a schedd or a startd takes no time, a negotiator's cycle a fixed one,
//     unless a node is made slow.
package pool
