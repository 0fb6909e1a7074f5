// Package transfer moves files of attempts between the submit side and nodes. It sends
// scripts, input files and images to a node before an attempt starts there, and fetches
// output and images of checkpoints.
//
// FileTransfers belongs to the schedd's loop: its methods that begin with On take in what
// a node says or what a transfer has come to. Each transfer runs in a goroutine of its
// own and ends as an event (InputSent, OutputStored, ImageStored) that the loop hands
// back:
//
//	node asks, or attempt ends ──▶ loop ──▶ transfer (slot, pace, user's rights)
//	                                 ▲                      │
//	                                 └──────── event ◀──────┘
//
// Transfers are bounded by slots, which users share, and one that makes no progress loses
// its try. Files of users are read and written by agents with the user's rights
// (UserAgents). Captured output without a place of its own goes to the spool (SpoolDir),
// scripts that are too large for an ad into ScriptStore. An attempt is recorded as ended
// only when its output is stored.
package transfer
