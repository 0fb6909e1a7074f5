// Package claim runs the attempts of one claim on a machine: it makes the claim's control
// group and starter, prepares each attempt, has it started, and cleans up after it.
//
// A Runner is a goroutine with the whole life of a claim. The startd's loop, which
// decides everything, sends it commands and never waits; the Runner posts events:
//
//	loop ──commands──▶ Runner ──▶ roost-starter ──▶ the task
//	     ◀──events──── (Host)  ◀── events
//
// The parts of a Runner with work of their own:
//
//	launcher      what an attempt needs before its start, and how the starter is told
//	checkpointer  when attempts are saved, how, and from what they are restored
//	taskSuspender when the processes of an attempt stand still for its schedd
//	siteScripts   the machine's prologue and epilogue
//	serviceRunner health checks of tasks of services, and the order in which they stop
//	claimDirs     the directories of the claim's attempts
//
// OwnerSuspension suspends a claim for the machine's owner; the loop uses it without
// waiting for the Runner, which may be busy. An Attempt is read by others, too, while
// files and streams go to and fro (package startd/streams). Machine is what all claims of
// a startd share, Checkpoints takes checkpoints of their attempts and has the images.
//
// An attempt goes through these states, of which each is a channel or a field of its own:
//
//	awaits input ──launched──▶ runs ──exit──▶ epilogue ──▶ ended ──acknowledged──▶ discarded
//	      └──────────── vacated, or cannot start ─────────────▲
//
// In the claim's directory lie the claim file, written before the schedd is told of the
// claim, and a record of the attempt that was started last. A startd that starts anew
// adopts both (Machine.Adopt), with the starter that still runs.
//
// A SpareStarter is made before there is a claim, under an id that the claim table has
// reserved. A directory without a claim file is that of a spare: no start of the startd
// adopts it.
package claim
