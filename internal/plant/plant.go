// Package plant names bugs that are put into Roost on purpose, one for each promise at least, so that a test can prove that the simulator finds them. Each
// stands as one condition at its place in the code that runs: what the naive way would have been there. In an ordinary build [Is] is false, and the compiler
// drops the condition and what it guards; built with -tags plants, one of them at a time can be put in.
package plant

// Bug is one of them; 0 is none.
type Bug uint8

// The bugs, with the promise that each breaks.
const (
	AnswerEarly   Bug = iota + 1 // P1: a user is answered before the log is on disk
	KeyForgotten                 // P2: a submit key is forgotten when its job has begun
	OldNews                      // P3: the end of an attempt is taken for that of whichever attempt is the present one
	NoDrift                      // P4: an attempt counts as gone when its lease ends, without the time to kill it
	LostLease                    // P4: a schedd that starts again takes the leases of what runs for over
	LateRenewal                  // P4: a renewal counts from when the node reads it, and not from when it was sent
	AnyNode                      // P4: whichever machine answers at an address is taken for the one that was wanted
	Unrecorded                   // P4: a job of whose record a disk has lost something runs again beside an attempt that is not on record
	EarlyRoom                    // P5: what a claim holds is given to others when its attempt is told to end
	ForgottenRoom                // P5: a startd that starts again gives away what those hold that run on
	ChargedTwice                 // P6: a new leader charges the last seconds of the old one again
	MapOrder                     // P7: the grants of an entry are applied in the order of a map
	Unchecked                    // P7: a damaged log of a replica is taken for what was written (in package consensus of the simulator, which stands for the real log)
	DeafHold                     // P8: a hold waits for the attempt that is to come
	Unannounced                  // P9: a new leader is not told what is wanted already
	LeaseAdded                   // P10: a renewal is added to what is left of a lease
	EarlyEnd                     // P11: the end of an attempt is recorded while its output is on its way
	AnyOutput                    // P11: whatever a node sends as output is stored
	Restless                     // to owners: a startd that starts again lets go on all that stood still
	Trusting                     // to owners: a machine is lent on when nothing is heard of its guard
	bugs          = iota
)

var names = [...]string{
	AnswerEarly: "answer-early", KeyForgotten: "key-forgotten", OldNews: "old-news", NoDrift: "no-drift", LostLease: "lost-lease", LateRenewal: "late-renewal", AnyNode: "any-node", Unrecorded: "unrecorded", EarlyRoom: "early-room",
	ForgottenRoom: "forgotten-room", ChargedTwice: "charged-twice", MapOrder: "map-order", Unchecked: "unchecked", DeafHold: "deaf-hold", Unannounced: "unannounced",
	LeaseAdded: "lease-added", EarlyEnd: "early-end", AnyOutput: "any-output", Restless: "restless", Trusting: "trusting",
}

// promises are the numbers of those that the bugs break; 12 is what is promised to owners of machines.
var promises = [...]int{
	AnswerEarly: 1, KeyForgotten: 2, OldNews: 3, NoDrift: 4, LostLease: 4, LateRenewal: 4, AnyNode: 4, Unrecorded: 4, EarlyRoom: 5, ForgottenRoom: 5, ChargedTwice: 6, MapOrder: 7, Unchecked: 7, DeafHold: 8,
	Unannounced: 9, LeaseAdded: 10, EarlyEnd: 11, AnyOutput: 11, Restless: 12, Trusting: 12,
}

// All lists the bugs.
func All() []Bug {
	all := make([]Bug, 0, bugs)
	for b := AnswerEarly; int(b) <= bugs; b++ {
		all = append(all, b)
	}
	return all
}

// String names a bug, in words of small letters.
func (b Bug) String() string { return names[b] }

// Promise is the number of the promise that the bug breaks.
func (b Bug) Promise() int { return promises[b] }
