// Package attack names what a hostile part of a pool does, so that tests can run real
// daemons that attack the others. In an ordinary build [Is] is false, and the compiler
// drops the condition and what it guards. A program built with -tags attacks does what
// ROOST_ATTACK names in its environment, names separated by commas: the daemons of one
// host attack, and those of every other host run the same program without the variable.
package attack

// AttackKind is one way in which a daemon misbehaves. Its first word is the part that
// attacks.
type AttackKind string

// The attacks.
const (
	ImpossibleUID AttackKind = "schedd.impossible-uid" // claims are asked for a uid that nobody can have
	SystemGID     AttackKind = "schedd.other-gid"      // claims are asked for in a group of the system's
	NoGrant       AttackKind = "schedd.no-grant"       // claims are asked for that were not granted
	UsedGrants    AttackKind = "schedd.used-grants"    // grants are used twice, and for more than they are
	// execute nodes are told what is to become of others' claims and attempts, and asked
	// for their output
	OtherClaims AttackKind = "schedd.other-claims"
	// execute nodes and negotiators are greeted in the name of another submit node
	OtherSchedd AttackKind = "schedd.other-name"
	// execute nodes are sent messages that have more bytes than they take
	LongOrders AttackKind = "schedd.long-orders"
	// execute nodes are sent long and short messages without a pause
	EndlessOrders AttackKind = "schedd.endless-orders"
	// the leader is told of a request that has more bytes than it takes
	LongRequests AttackKind = "schedd.long-requests"
	// the leader is told of ever new requests without a pause
	ManyRequests AttackKind = "schedd.many-requests"
	// requests are told of in a band for which the leader was not asked
	HigherBand AttackKind = "schedd.higher-band"
	// other submit nodes are asked to act on their users' jobs, and for what these alone
	// may see
	OtherJobs          AttackKind = "schedd.other-jobs"
	ForgedUID          AttackKind = "startd.forged-uid"          // what is restored from images has root's uid
	ForgedCapabilities AttackKind = "startd.forged-capabilities" // what is restored from images has capabilities
	// files that nobody has asked for come before the output of a task
	ExtraOutputs AttackKind = "startd.extra-outputs"
	// submit nodes are told of attempts and claims that other nodes have, and welcomed
	// twice
	ForeignAttempts AttackKind = "startd.other-attempts"
	// submit nodes are welcomed in the name of another node, with what that has
	ForeignName AttackKind = "startd.other-name"
	// submit nodes are told of ends that have more bytes than they take
	OversizedMessages AttackKind = "startd.long-messages"
	// the end of an attempt is told again, as another end, and of attempts to come
	RepeatedEnds AttackKind = "startd.repeated-ends"
)

// All lists the attacks, for tests that want each to have a place in the code and a case.
func All() []AttackKind {
	return []AttackKind{
		ImpossibleUID,
		SystemGID,
		NoGrant,
		UsedGrants,
		OtherClaims,
		OtherSchedd,
		LongOrders,
		EndlessOrders,
		LongRequests,
		ManyRequests,
		HigherBand,
		OtherJobs,
		ForgedUID,
		ForgedCapabilities,
		ExtraOutputs,
		ForeignAttempts,
		ForeignName,
		OversizedMessages,
		RepeatedEnds,
	}
}
