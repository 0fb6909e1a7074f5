// Package roost is the vocabulary of Roost, a batch system for scientists in the line of
// Condor, PBS and Borg: the identifiers, states, resources, attribute names and kinds of
// error that every other package speaks of.
//
// # The system on one page
//
// A user writes a job file in HCL, or an old PBS script, and hands it to roost submit or
// qsub. The command parses it under the user's own rights ([internal/submit],
// [internal/pbs/qsub]) into a ClassAd, adds a submit key of its own making, and sends both
// over a unix socket to the schedd of that machine. The schedd learns the owner from the
// kernel's peer credentials, appends the job to its log, forces the log to disk and only
// then answers with the id.
//
// The schedd ([schedd], its queue in [schedd/queue]) owns the job from then on. It
// gathers tasks that are alike into requests and tells the negotiator of each change at
// once. The collector ([collector]) knows which machines exist, because every startd
// advertises itself there as a ClassAd with a lease; the negotiator ([negotiator], its
// mind in [negotiator/match]) watches the collector, and whenever something has changed
// it turns a snapshot of requests and machines into a plan: grants for what can be
// placed, counted reasons for what cannot.
//
// Of the negotiators, one on each central manager, one leads. What must not be forgotten,
// from what users have used to what administrators have set, is in a ledger
// ([negotiator/ledger]) that all of them keep alike by a replicated log
// ([internal/replica]); a grant stands in that log before any schedd hears of it, so a
// leader that is cut off from the others grants nothing.
//
// A grant is a hint. With it the schedd goes to the startd ([startd], its books in
// [startd/slot]), which weighs both sides' Requirements and its own free resources once
// more and answers with a claim. The claim is the truth: a lease on a part of the
// machine, on which the schedd runs one task after another without asking anybody. Each
// claim has a starter ([startd/starterclient], a program of its own), the small shim that
// is the parent of the task's processes, outlives a restart of the startd, and keeps the
// exit status until the schedd has it on disk.
//
// The startd cuts its machine into resource units ([gpu]): cores, memory, and GPUs, of
// which a task may have a share by the byte. Where it may, it holds each claim to its
// part with control groups ([internal/cgroup]), shuts each task in namespaces of its own,
// the box, and measures what is used. Tasks can wait on the machine for a unit that is
// full.
//
// When a task has ended, its output is brought back first, then its completion is
// recorded, once, and then the starter may forget it. What happened stays in the history
// ([schedd/history]).
//
// # What holds when things break
//
// An attempt is one execution of a task. Attempts are numbered, the number travels with
// every message, and news of an older attempt is dropped; a new attempt starts only after
// the node itself said that the old one is gone, or after the lease that was last sent to
// it has certainly run out. Any daemon may be killed at any instant: the master restarts
// it, the schedd replays its log, the startd finds its starters, and both compare notes.
//
// A task in a box can be checkpointed ([checkpoint], with CRIU in [checkpoint/criu]): the
// startd freezes it, writes its processes, its files and what it has printed into one
// sealed image ([checkpoint/image]), and lets it run on; the schedd brings the image
// home, and the next attempt, wherever it runs, goes on from the last one that is whole.
//
// # How the code is laid out
//
// Daemons never import each other; they meet on the wire ([internal/wire]). Each is a
// thin shell around a pure core: one goroutine owns the state, Apply folds an event into
// it, Todo says what should happen next, and the effects run outside and come back as
// events. Pure packages do no I/O, start no goroutine, read no clock and draw no random
// number. A test in internal/importlint holds the import order and this purity.
package roost
