package slot

import "github.com/roost-batch/roost"

// Cause is why an attempt is told to end. The numbers are those of wire.Cause.
type Cause uint8

// The causes that a machine or a schedd can have.
const (
	Removed   Cause = 2  // the user wants it gone
	Vacated   Cause = 3  // the machine goes down, or out of its service
	LeaseOut  Cause = 4  // nobody has renewed its lease
	Preempted Cause = 11 // its place is needed by somebody of a higher band, or with a better claim to it
	Machine   Cause = 6  // it cannot be run here
	Overspent Cause = 12 // its job has used more CPU time than it may, on all its machines together
)

// AskedCause is the cause that a schedd gives, by its number on the wire; whatever else it says, the attempt ends by its will.
func AskedCause(number int32) Cause {
	switch number {
	case int32(Vacated), int32(Preempted), int32(Machine), int32(Overspent):
		return Cause(number)
	}
	return Removed
}

// Effect is something that is to be done now.
type Effect interface{ effect() }

// The effects. Those about one claim are done in their order.
type (
	// Make writes a new claim down and gets a starter for it; then the core is told Made or Unmade.
	Make struct{ Claim *Claim }
	// Place notes what a claim holds now that has waited: from now on a restart finds it.
	Place struct{ Claim *Claim }
	// TellReady reports to the schedd that a claim that waited has its resources.
	TellReady struct{ Claim *Claim }
	// Withdraw ends an attempt that waited and will not start; TellExited follows.
	Withdraw struct {
		Claim   *Claim
		Attempt roost.AttemptID
		Cause   Cause
		Reason  string
	}
	// Answer tells who asked that the claim is his, and whether it waits.
	Answer struct {
		Session uint64
		Claim   *Claim
	}
	// Refuse tells who asked that there will be no claim.
	Refuse struct {
		Session uint64
		Grant   GrantID
		Reason  string
	}
	// Start runs an attempt on a claim; then the core is told Started and Ended, or only Ended.
	Start struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	// Decline tells the schedd that an attempt will not run here and left no trace. When the claim is not there either, that is what it must be
	// told, or it would try the next attempt.
	Decline struct {
		Schedd  string
		Claim   ClaimID
		NoClaim bool
		Attempt roost.AttemptID
		Reason  string
	}
	// Vacate makes a live attempt end: after its notice period, or at once when Fast.
	Vacate struct {
		Claim   *Claim
		Attempt roost.AttemptID
		Cause   Cause
		Fast    bool
		Reason  string
	}
	// TellStarted and TellExited report to the schedd of the claim, if it has a session.
	TellStarted struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	TellExited struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	// TellLost reports to the schedd that a claim is no more.
	TellLost struct {
		Claim  *Claim
		Reason string
	}
	// Renew moves the deadline that the claim's starter enforces to Claim.Lease.
	Renew struct{ Claim *Claim }
	// Forget drops what is kept of an attempt that has ended: its exit, its output, its scratch directory.
	Forget struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	// Squeeze holds the processor time of a claim in reclaimed room to Claim.Squeezed, or lets it have again what there is.
	Squeeze struct{ Claim *Claim }
	// Dismiss removes a claim that is gone, with its starter and all it left.
	Dismiss struct{ Claim *Claim }
	// Hang closes a session that a newer one has ended.
	Hang struct{ Session uint64 }
)

func (Make) effect()        {}
func (Place) effect()       {}
func (TellReady) effect()   {}
func (Withdraw) effect()    {}
func (Answer) effect()      {}
func (Refuse) effect()      {}
func (Start) effect()       {}
func (Decline) effect()     {}
func (Vacate) effect()      {}
func (TellStarted) effect() {}
func (TellExited) effect()  {}
func (TellLost) effect()    {}
func (Renew) effect()       {}
func (Forget) effect()      {}
func (Squeeze) effect()     {}
func (Dismiss) effect()     {}
func (Hang) effect()        {}
