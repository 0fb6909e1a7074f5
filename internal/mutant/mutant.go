// Package plant names bugs that are put into Roost on purpose, one for each promise at
// least, so that a test can prove that the simulator finds them. Each stands as one
// condition at its place in the code that runs: what the naive way would have been there.
// In an ordinary build [Active] is false, and the compiler drops the condition and what
// it guards; built with -tags plants, one of them at a time can be put in.
package mutant

// Mutant is one of them; 0 is none.
type Mutant uint8

// The bugs, with the promise that each breaks.
const (
	AnsweredBeforeDurable Mutant = iota + 1 // P1: a user is answered before the log is on disk
	KeyForgotten                            // P2: a submit key is forgotten when its job has begun
	// P3: the end of an attempt is taken for that of whichever attempt is the present one
	StaleExitAccepted
	// P4: an attempt counts as gone when its lease ends, without the time to kill it
	LeaseWithoutKillMargin
	LeasesExpireOnRestart // P4: a schedd that starts again takes the leases of what runs for over
	// P4: a renewal counts from when the node reads it, and not from when it was sent
	RenewalCountedOnReceipt
	// P4: whichever machine answers at an address is taken for the one that was wanted
	NodeNotVerified
	// P4: a job of whose record a disk has lost something runs again beside an attempt
	// that is not on record
	UnrecordedAttemptIgnored
	// P5: what a claim holds is given to others when its attempt is told to end
	RoomFreedBeforeExit
	RoomForgottenOnRestart // P5: a startd that starts again gives away what those hold that run on
	ChargedTwice           // P6: a new leader charges the last seconds of the old one again
	MapOrder               // P7: the grants of an entry are applied in the order of a map
	// P7: a damaged log of a replica is taken for what was written (in package consensus
	// of the simulator, which stands for the real log)
	LogUnchecked
	HoldIgnored      // P8: a hold waits for the attempt that is to come
	LeaderNotUpdated // P9: a new leader is not told what is wanted already
	LeaseAdded       // P10: a renewal is added to what is left of a lease
	EndBeforeOutput  // P11: the end of an attempt is recorded while its output is on its way
	OutputUnchecked  // P11: whatever a node sends as output is stored
	ResumesOnRestart // to owners: a startd that starts again lets go on all that stood still
	IgnoresLostGuard // to owners: a machine is lent on when nothing is heard of its guard
	mutantCount      = iota
)

var mutantNames = [...]string{
	AnsweredBeforeDurable: "answer-early", KeyForgotten: "key-forgotten", StaleExitAccepted: "old-news",
	LeaseWithoutKillMargin: "no-drift", LeasesExpireOnRestart: "lost-lease", RenewalCountedOnReceipt: "late-renewal",
	NodeNotVerified: "any-node", UnrecordedAttemptIgnored: "unrecorded", RoomFreedBeforeExit: "early-room",
	RoomForgottenOnRestart: "forgotten-room", ChargedTwice: "charged-twice", MapOrder: "map-order",
	LogUnchecked: "unchecked", HoldIgnored: "deaf-hold", LeaderNotUpdated: "unannounced",
	LeaseAdded: "lease-added", EndBeforeOutput: "early-end", OutputUnchecked: "any-output",
	ResumesOnRestart: "restless", IgnoresLostGuard: "trusting",
}

// guarantees are the numbers of those that the bugs break; 12 is what is promised to
// owners of machines.
var guarantees = [...]int{
	AnsweredBeforeDurable: 1, KeyForgotten: 2, StaleExitAccepted: 3, LeaseWithoutKillMargin: 4,
	LeasesExpireOnRestart: 4, RenewalCountedOnReceipt: 4, NodeNotVerified: 4, UnrecordedAttemptIgnored: 4,
	RoomFreedBeforeExit: 5, RoomForgottenOnRestart: 5, ChargedTwice: 6, MapOrder: 7, LogUnchecked: 7, HoldIgnored: 8,
	LeaderNotUpdated: 9, LeaseAdded: 10, EndBeforeOutput: 11, OutputUnchecked: 11, ResumesOnRestart: 12,
	IgnoresLostGuard: 12,
}

// All lists the bugs.
func All() []Mutant {
	all := make([]Mutant, 0, mutantCount)
	for b := AnsweredBeforeDurable; int(b) <= mutantCount; b++ {
		all = append(all, b)
	}
	return all
}

// String names a bug, in words of small letters.
func (b Mutant) String() string { return mutantNames[b] }

// Guarantee is the number of the promise that the bug breaks.
func (b Mutant) Guarantee() int { return guarantees[b] }
