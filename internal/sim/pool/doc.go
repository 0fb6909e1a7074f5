// Package pool simulates a whole pool: schedds, machines and central managers. Clock,
// network, disks and tasks are simulated, and the production cores make all decisions, as
// in Borg's Fauxmaster (Verma et al., EuroSys 2015, §3.1). The same config gives the same
// run, event for event.
//
//	┌─ schedd ──────────┐        ┌─ central manager ─────┐        ┌─ machine ──────────┐
//	│ schedd.LoopCore   │ grants │ negotiator.LoopCore   │  ads   │ startd/slot        │
//	│  queue, dispatch  │ ◀────▶ │  match, fairshare,    │ ◀───── │ claim runners      │
//	│ journal on a disk │        │  ledger               │        │ starters and tasks │
//	└─────────┬─────────┘        │ collector/adstore     │        │  that outlive it   │
//	          │                  │ internal/sim/consensus│        └─────────┬──────────┘
//	          │                  └───────────────────────┘                  │
//	          └─────────────── sessions: claim, activate, renew, … ─────────┘
//
// # What is production code
//
// Negotiators and schedds run the loops of their daemons (negotiator.LoopCore,
// schedd.LoopCore), called by the simulator. So the real code decides what is requested
// and granted, which grants are pending, what a new leader inherits, what is written
// before it is sent, and how a session's welcome is compared with the claim table.
// Messages are those of the wire, events are encoded and decoded as in the log, grants
// carry real claim tokens, and ads are printed and parsed.
//
// A pool begins empty, or as a cell whose daemons have all just restarted: with a ledger,
// with jobs in the logs of schedds, and with claims that machines adopt
// (initial_state.go).
//
// # What is simulated
//
//   - The loop around startd/slot. Its messages and effects (startd_session.go,
//     machine_effects.go, machine_adopt.go) are written anew after package startd, which
//     is one with processes, control groups and files. The owner policy is production
//     code (startd/desktop/policy, startd/desktop); the guard (desktop_owner.go) only reports
//     observations. There are no checkpoints, node queues or scripts.
//   - The loop around the names of services at a collector, and the endpoints in the ads
//     of machines (service_names.go), after packages collector and startd. Which name
//     points to which attempt is decided by collector/names.
//   - The loop around a member of the cell's queue (cell_member.go), after package
//     schedd/cellqueue. Each member has a host of its own.
//   - Raft: internal/sim/consensus. A negotiator reads only the collector beside it,
//     while internal/adclient merges all of them.
//   - Finding the leader (schedd_session.go) follows schedd/negotiation/leader_tracker.go. Writing
//     batches and reading the log follows schedd/commit_batch.go and schedd/journal,
//     without bbolt: a write is on disk as a whole or not at all.
//   - A connection preserves order and loses nothing until it breaks, as gRPC's does.
//     What is sent during a partition waits; after 30 seconds of silence either side
//     gives up.
//   - A turn of a schedd or startd takes no time and a negotiator's cycle a fixed time,
//     unless a fault slows the node down.
package pool
