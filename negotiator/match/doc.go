// Package match is the negotiator's mind: a pure function from a snapshot of the pool to
// a plan of who gets what, with the reasons for whatever has to wait.
//
// # The order
//
// Bands go from high to low; a band sees what the higher ones have left. Within a band
// submitters take turns by fair share ([fairshare.TurnQueue]). Within a submitter the
// request with the highest priority goes first, then the oldest; one that finds no
// machine does not block those behind it. Stream requests come before the batch of their
// band, the oldest first, and take no turns: see stream.go.
//
// Where there are groups with quotas, the bands below prod are held to them: see
// [fairshare.DivideQuotas]. Groups are served one after the other, the one that has least
// of its quota first, and their submitters take turns inside them. A submitter below its
// floor goes before the others, and none gets past its ceiling.
//
// # Where
//
// A machine is feasible for a request if the request's Requirements hold with the machine
// as TARGET, the machine's Requirements (or its Start, where it has none) hold with the
// request as TARGET, and the resources are free. Of the feasible ones the best has
//
//	the highest Rank
//	then the most expressions of Prefer that hold
//	then the fewest PreferredPackages missing
//	then the fewest units of the job in its failure domain, which is the machine's value of the attribute that Spread names
//	then the least score: stranded resources, and half-used machines (see [score]); where there are GPUs, those that become useless (see [fragmentScore])
//	then the first name
//
// Another score may be asked for: see [Score].
//
// As many units of the turn as fit go to that machine, then the next best is looked for;
// of a job that is to be spread, and where there are GPUs, it is one at a time.
//
// What is free is a vector of sums on a machine of one resource unit without devices. On
// any other machine it is asked of package gpu, by unit and by device, as its startd
// would: whether a request fits, and on which cards. A stream request finds its processor
// time beside that of batch.
//
// A machine that reclaims says besides what its tasks are expected to leave (Borg §5.5).
// Production is placed by limits, batch and free by that: what they get beyond what is
// free they may have to give back. See machine_reclaim.go.
//
// # Limits
//
// A unit takes of the licences that its request names, and of the run limits of its user
// and its queue; one that nothing is left of waits, and does not block those behind it.
// What takes licences never waits in a machine's queue.
//
// # Gangs, and the time to come
//
// A gang is placed whole or not at all. Its units may ask for different things (see
// parts.go), and want a machine each. Who finds no room has it held from the time on at
// which it fits (see [Backfill]); reservations and drains are holds, too. Where something
// is held, others take only what is free beside it for as long as they run (package
// forecast).
//
// Its machines may have to have something in common: see together.go. A unit, of a gang
// or not, may want its machine alone, and then takes all of it: see onlyConjunct.go.
//
// # Preemption
//
// A unit that finds no room when its turn comes may displace claims of lower bands
// ([Preemption]): see preemptForUnit.go. A gang does so as a whole, or not at all: see
// displace.go.
//
// # Waiting on a machine
//
// When all that can start has been placed, batch units that found no room anywhere get
// the places that machines offer in the queues of their units, the shortest predicted
// wait first (HRM §4.2), by the same order.
//
// # How it is fast
//
// Requirements, on both sides, and Rank are not evaluated machine by machine: the
// machines' ads are kept in a [classad.Table], for which a request is compiled once.
// Asking all machines costs a few nanoseconds each; a machine that has changed is written
// into the table's columns.
//
// How the machines stand is kept from plan to plan (see [ground]): those whose ad, or
// what is promised of them, has changed begin anew, and no others. A request that found
// no machine in the last plan is asked of these alone (see [barren]). So a cycle costs
// what has changed.
//
// Candidates are kept in a heap for each request, of about as many as it wants (see
// [candidates]). When a unit is placed, the one machine that it went to is noted in a
// log, and each heap looks at what the log has gained since it last did before it gives
// its best: so its best is always exact.
//
// 2026-11-22: relaxed randomisation (Borg §3.4), which looks at machines in a random
// order until there are enough feasible ones, was tried and not kept. From scratch it
// took 61 ms in place of 124 ms with 10,000 machines and 100 classes, and 1.5 s in place
// of 3.6 s with 100,000 and 1,000; after one change it took the same 40 µs and 0.3 ms,
// for then few machines are looked at anyway. It gives up that the best Rank wins and
// that the naive matcher can say what is right, to save a second of what happens when a
// new leader begins.
package match
