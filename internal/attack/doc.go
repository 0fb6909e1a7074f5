// Package attack names what a hostile part of a pool does, so that tests can run real daemons that attack the others. In an ordinary build [Is] is false,
// and the compiler drops the condition and what it guards. A program built with -tags attacks does what ROOST_ATTACK names in its environment, names
// separated by commas: the daemons of one host attack, and those of every other host run the same program without the variable.
package attack

// AttackKind is one way in which a daemon misbehaves. Its first word is the part that attacks.
type AttackKind string

// The attacks.
const (
	ImpossibleUID      AttackKind = "schedd.impossible-uid"      // claims are asked for a uid that nobody can have
	SystemGID          AttackKind = "schedd.other-gid"           // claims are asked for in a group of the system's
	NoGrant            AttackKind = "schedd.no-grant"            // claims are asked for that were not granted
	UsedGrants         AttackKind = "schedd.used-grants"         // grants are used twice, and for more than they are
	OtherClaims        AttackKind = "schedd.other-claims"        // execute nodes are told what is to become of others' claims and attempts, and asked for their output
	OtherSchedd        AttackKind = "schedd.other-name"          // execute nodes and negotiators are greeted in the name of another submit node
	LongOrders         AttackKind = "schedd.long-orders"         // execute nodes are sent messages that have more bytes than they take
	EndlessOrders      AttackKind = "schedd.endless-orders"      // execute nodes are sent long and short messages without a pause
	LongRequests       AttackKind = "schedd.long-requests"       // the leader is told of a request that has more bytes than it takes
	ManyRequests       AttackKind = "schedd.many-requests"       // the leader is told of ever new requests without a pause
	HigherBand         AttackKind = "schedd.higher-band"         // requests are told of in a band for which the leader was not asked
	OtherJobs          AttackKind = "schedd.other-jobs"          // other submit nodes are asked to act on their users' jobs, and for what these alone may see
	ForgedUID          AttackKind = "startd.forged-uid"          // what is restored from images has root's uid
	ForgedCapabilities AttackKind = "startd.forged-capabilities" // what is restored from images has capabilities
	ExtraOutputs       AttackKind = "startd.extra-outputs"       // files that nobody has asked for come before the output of a task
	ForeignAttempts    AttackKind = "startd.other-attempts"      // submit nodes are told of attempts and claims that other nodes have, and welcomed twice
	ForeignName        AttackKind = "startd.other-name"          // submit nodes are welcomed in the name of another node, with what that has
	OversizedMessages  AttackKind = "startd.long-messages"       // submit nodes are told of ends that have more bytes than they take
	RepeatedEnds       AttackKind = "startd.repeated-ends"       // the end of an attempt is told again, as another end, and of attempts to come
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
