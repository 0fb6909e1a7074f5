// Package attack names attacks of a hostile component of a pool, so that tests can run
// real daemons that attack the others. In an ordinary build [Is] is false, and the
// compiler drops the condition and the guarded code. A program built with -tags attacks
// makes the attacks in the environment variable ROOST_ATTACK, names separated by commas:
// the daemons of one host attack, and those of every other host run the same program
// without the variable.
package attack

// AttackKind is one attack of a daemon. The first word of its name is the attacking
// component.
type AttackKind string

// The attacks.
const (
	ImpossibleUID AttackKind = "schedd.impossible-uid" // claims are requested for an impossible uid
	SystemGID     AttackKind = "schedd.other-gid"      // claims are requested in a system group
	NoGrant       AttackKind = "schedd.no-grant"       // claims are requested without a grant
	UsedGrants    AttackKind = "schedd.used-grants"    // grants are used twice, and for more resources than granted
	// orders about others' claims and attempts are sent to startds, and their output is
	// requested
	OtherClaims AttackKind = "schedd.other-claims"
	// startds and negotiators get a hello with the name of another submit node
	OtherSchedd AttackKind = "schedd.other-name"
	// startds get messages above the size limit
	LongOrders AttackKind = "schedd.long-orders"
	// startds get long and short messages without a pause
	EndlessOrders AttackKind = "schedd.endless-orders"
	// the leader gets a request above the size limit
	LongRequests AttackKind = "schedd.long-requests"
	// the leader gets new requests without a pause
	ManyRequests AttackKind = "schedd.many-requests"
	// requests are sent in a band that the leader did not admit
	HigherBand AttackKind = "schedd.higher-band"
	// other schedds are asked to act on their users' jobs, and for data that only these
	// users may see
	OtherJobs          AttackKind = "schedd.other-jobs"
	ForgedUID          AttackKind = "startd.forged-uid"          // restored processes have root's uid
	ForgedCapabilities AttackKind = "startd.forged-capabilities" // restored processes have capabilities
	// files that were not requested precede the output of a task
	ExtraOutputs AttackKind = "startd.extra-outputs"
	// schedds get events of attempts and claims of other nodes, and two welcomes
	ForeignAttempts AttackKind = "startd.other-attempts"
	// schedds get a welcome in the name of another node, with that node's claims
	ForeignName AttackKind = "startd.other-name"
	// schedds get exit events above the size limit
	OversizedMessages AttackKind = "startd.long-messages"
	// the end of an attempt is sent again with another status, and ends of future
	// attempts
	RepeatedEnds AttackKind = "startd.repeated-ends"
)

// All lists the attacks, for tests that check that each has a place in the code and a
// test case.
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
