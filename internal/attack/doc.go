// Package attack names what a hostile part of a pool does, so that tests can run real daemons that attack the others. In an ordinary build [Is] is false,
// and the compiler drops the condition and what it guards. A program built with -tags attacks does what ROOST_ATTACK names in its environment, names
// separated by commas: the daemons of one host attack, and those of every other host run the same program without the variable.
package attack

// Attack is one way in which a daemon misbehaves. Its first word is the part that attacks.
type Attack string

// The attacks.
const (
	ImpossibleUID Attack = "schedd.impossible-uid" // claims are asked for a uid that nobody can have
	OtherGID      Attack = "schedd.other-gid"      // claims are asked for in a group of the system's
	ExtraOutputs  Attack = "startd.extra-outputs"  // files that nobody has asked for come before the output of a task
)

// All lists the attacks, for tests that want each to have a place in the code and a case.
func All() []Attack {
	return []Attack{
		ImpossibleUID,
		OtherGID,
		ExtraOutputs,
	}
}
