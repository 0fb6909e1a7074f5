// Package plan decides when a user's provisioner asks other batch systems for nodes, and
// when it takes a request back. It is pure: from the settings of the providers, the
// allocations that there are, the user's pilots and what waits in the queue it derives
// what to submit and what to cancel, and a reason for each decision.
//
// A provider is another batch system in which the user has an account. An allocation is a
// job there; it starts a pilot on each of its nodes. A pilot is a startd that belongs to
// the user and joins the pool for as long as the allocation lasts.
//
// The naive way is to ask for nodes as long as tasks are queued. It asks for nodes on
// which no queued task may run, again and again, and for a node per task of a second's
// length. So demand is what the pool's own matcher places on the nodes that a provider
// would give, and pilots that are there or about to come are counted first.
//
// # States of an allocation
//
//	Submitting --> Queued --> Running --> Ended
//	     |            |          |          ^
//	     +------------+----------+----------+
//
// Submitting: the journal has it, and the outer system has not answered. Queued: the
// outer system has given it an id. Running: the outer system says so, or a pilot of it
// has joined. A state only rises. An allocation whose cancelling was ordered stays in its
// state until the outer system says that it has ended.
//
// # Rules
//
// The rules have the numbers of the specification; R10 and R11 belong to the journal.
//
//	R1 queued allocations <= max_queued
//	R2 pilots <= max_pilots; the last allocation is made smaller to fit
//	R3 nothing is submitted but for tasks that fit on the node and into its time
//	R4 pilots that are there, and then those that are to come, are counted before
//	R5 if more than ten allocations are needed, a third of them in each round
//	R6 what waits for something else than a machine is no demand
//	R7 a gang is one allocation of several nodes
//	R8 demand goes to providers in their order, and no part of it to two
//	R9 queued allocations that nothing needs are cancelled after the idle time
//
// An allocation's cost is counted when it is asked for, with its whole walltime, and
// corrected when it ends. So in any 24 hours the node-hours stay below the bound,
// whenever the provisioner is killed.
package plan
