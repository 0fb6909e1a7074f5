// Package roost is the vocabulary of Roost: identifiers, states, resources, attribute
// names and kinds of error. Every other package uses it. Roost is a batch system for
// scientists in the line of HTCondor, PBS and Borg.
//
// # The system on one page
//
// A user writes a job file in HCL, or a PBS script, and submits it with roost submit or
// qsub. The command parses the file with the user's own rights ([internal/submit],
// [internal/pbs/qsub]) into a ClassAd, adds a random submit key, and sends both over a
// unix socket to the schedd of that machine. The schedd gets the owner from the peer
// credentials of the socket, appends the job to its log, forces the log to disk, and only
// then answers with the job id.
// groups similar tasks into requests and sends each change of a request to the negotiator
// at once. The collector ([collector]) holds the ads of all machines: every startd
// advertises its machine there as a ClassAd with a lease. The negotiator ([negotiator],
// its core in [negotiator/match]) watches the collector. Whenever something has changed,
// it computes a plan from a snapshot of requests and machines: grants for what can be
// placed, and counted reasons for what cannot.
//
// Each central manager runs a negotiator, and one of them is the leader. Usage, quotas
// and the other settings of administrators are in a ledger ([negotiator/ledger]), which a
// replicated log ([internal/replica]) makes equal on all of them. The leader commits a
// grant to that log before it sends the grant to a schedd, so a leader without a majority
// grants nothing.
//
// A grant is a hint. The schedd presents it to the startd ([startd], its claim table in
// [startd/slot]). The startd evaluates the Requirements of both sides and its own free
// resources once more and answers with a claim. The claim is the truth: a lease on a part
// of the machine, on which the schedd runs one task after another without asking the
// negotiator. Each claim has a starter ([startd/starterclient]), a small program of its
// own. The starter is the parent of the task's processes, outlives a restart of the
// startd, and stores the exit status until the schedd has it on disk.
//
// The startd cuts its machine into resource units ([gpu]) of cores, memory and GPUs; a
// task may have a part of a GPU's memory. Where the system allows it, the startd limits
// each claim with control groups ([internal/cgroup]), isolates each task in a sandbox of
// namespaces, and measures its usage. Tasks can wait in the node queue of a unit that is
// full.
//
// When a task has ended, its output is copied to the submit side first. Then the schedd
// records the completion, once, and then the starter may remove its state. The history
// ([schedd/history]) stores all events of ended jobs.
//
// Two more daemons only look, and nothing waits for them. The web daemon ([internal/web])
// shows pages and answers programs over HTTP. It has no rights of its own: each session
// is a login of its user, with whose key it asks the schedd. The accountant
// ([internal/accounting/accountant]) pulls a numbered feed of jobs and attempts from each
// schedd ([schedd/feed]) into a database, from which reports and charges are made. All
// daemons count what they do for Prometheus ([internal/metrics]).
//
// # One job, from qsub to its history
//
// The functions that a job of one task passes, in order:
//
//	parse      internal/pbs/qsub ParseQsub                 arguments and #PBS lines become an ad
//	send       internal/cli/jobs SubmitJobs                the ad and a submit key go to the schedd
//	submit     schedd/api Service.Submit                   the owner comes from the peer credentials
//	admit      schedd/queue submissionIndex.SubmitJobs     limits are checked; the event "submitted"
//	store      schedd/journal Journal.Append               the event is on disk; then the id is printed
//	request    schedd/queue requestIndex.joinRequest       tasks that are alike share a request
//	announce   schedd/negotiation LeaderConn.SendRequestUpdates   the leader gets the request
//	plan       negotiator leaderState.runCycle             a snapshot becomes a plan
//	match      negotiator/match Matcher.Plan               machines, scores, preemption, backfill
//	commit     negotiator leaderState.recordGrant          the grant goes into the replicated log
//	grant      negotiator leaderState.sendCommitted        and then to the schedd
//	claim      schedd/dispatch Dispatcher.Granted          the grant becomes a claim request
//	decide     startd/slot ClaimTable.DecideClaim          both Requirements and what is free
//	start      schedd Schedd.activate                      the attempt goes to the claim
//	activate   startd/slot ClaimTable.Activate             the attempt number is compared
//	prepare    startd/claim launcher.prepareAttempt        scratch directory, input, limits
//	launch     startd/starter starterProcess.launchTask    the sandbox and the program
//	exit       startd/starter starterProcess.onFirstProcessExit   the status is in the starter's journal
//	report     startd/claim Runner.reportExit              the schedd hears of the end, until it has it
//	output     schedd/transfer FileTransfers.FetchOutputThenFinish   output comes to the submit side
//	record     schedd/queue attemptDecisions.RecordEnded   the event "ended", once
//	history    schedd jobArchive.archiveEnded              the job moves from the queue to the history
//
// A file has the name of its first declaration, so a function is found by its name.
//
// # What holds when things break
//
// An attempt is one execution of a task. Attempts are numbered, every message about an
// attempt has its number, and a message about an older attempt is dropped. A new attempt
// starts only after the node has reported the end of the old one, or after the lease last
// sent for it has certainly expired. Any daemon may be killed at any instant: the master
// restarts it, the schedd replays its log, the startd adopts its starters, and the two
// compare their states.
//
// A task in a sandbox can be checkpointed ([checkpoint], with CRIU in [checkpoint/criu]).
// The startd freezes it, writes its processes, files and captured output into one sealed
// image ([checkpoint/image]), and lets it run on. The schedd fetches the image. The next
// attempt, on any machine, goes on from the newest image that is whole.
//
// # How the code is laid out
//
// Commands are in the program roost, which starts in milliseconds and passes the command
// lines of others on: roost-node sets up, runs and examines a node, roost-daemon has the
// daemons and the master, roost-negotiator the negotiator, roost-sim the simulator. The
// PBS commands that scripts call often are in roost-q, too. It speaks to the schedd of
// this machine without gRPC, starts faster, and passes on to roost what it cannot do.
//
// Daemons never import each other; they exchange messages ([internal/wire]). Each daemon
// is an adapter around a pure core: one goroutine owns the state, Apply folds an event
// into it, Todo derives what should happen next, and the effects run outside and come
// back as events. Pure packages do no I/O, start no goroutine, read no clock and draw no
// random number. A test in internal/importlint checks the import order and this purity.
package roost
