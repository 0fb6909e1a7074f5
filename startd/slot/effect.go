package slot

import "github.com/roost-batch/roost"

// EndCause is why an attempt is told to end. The numbers are those of wire.Cause.
type EndCause uint8

// The causes that a machine or a schedd can have.
const (
	Removed     EndCause = 2  // the user wants it gone
	Vacated     EndCause = 3  // the machine goes down, or out of its service
	LeaseOut    EndCause = 4  // nobody has renewed its lease
	Preempted   EndCause = 11 // its place is needed by somebody of a higher band, or with a better claim to it
	Machine     EndCause = 6  // it cannot be run here
	CPUOverused EndCause = 12 // its job has used more CPU time than it may, on all its machines together
)

// CauseFromWire returns the end cause that a schedd gives by its number on the wire. With
// any other number the attempt ends as Removed.
func CauseFromWire(number int32) EndCause {
	switch number {
	case int32(Vacated), int32(Preempted), int32(Machine), int32(CPUOverused):
		return EndCause(number)
	}
	return Removed
}

// Effect is something that is to be done now.
type Effect interface{ effect() }

// The effects. Those about one claim are done in their order.
type (
	// CreateClaim writes a new claim down and gets a starter for it; then the core is
	// told ClaimCreated or ClaimFailed.
	CreateClaim struct{ Claim *Claim }
	// RecordPlacement notes what a claim holds now that has waited: from now on a restart
	// finds it.
	RecordPlacement struct{ Claim *Claim }
	// ReportReady reports to the schedd that a claim that waited has its resources.
	ReportReady struct{ Claim *Claim }
	// CancelQueued ends an attempt that waited and will not start; ReportExited follows.
	CancelQueued struct {
		Claim   *Claim
		Attempt roost.AttemptID
		Cause   EndCause
		Reason  string
	}
	// AcceptClaim tells who asked that the claim is his, and whether it waits.
	AcceptClaim struct {
		Session uint64
		Claim   *Claim
	}
	// RejectClaim tells who asked that there will be no claim.
	RejectClaim struct {
		Session uint64
		Grant   roost.GrantID
		Reason  string
	}
	// StartAttempt runs an attempt on a claim; then the core is told Started and Ended,
	// or only Ended.
	StartAttempt struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	// RejectActivation tells the schedd that an attempt will not run here and left no
	// trace. When the claim is not there either, that is what it must be told, or it
	// would try the next attempt.
	RejectActivation struct {
		Schedd  string
		Claim   ClaimID
		NoClaim bool
		Attempt roost.AttemptID
		Reason  string
	}
	// VacateAttempt makes a live attempt end: after its notice period, or at once when
	// Fast.
	VacateAttempt struct {
		Claim   *Claim
		Attempt roost.AttemptID
		Cause   EndCause
		Fast    bool
		Reason  string
	}
	// ReportStarted and ReportExited report to the schedd of the claim, if it has a
	// session.
	ReportStarted struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	ReportExited struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	// ReportLost reports to the schedd that a claim is no more.
	ReportLost struct {
		Claim  *Claim
		Reason string
	}
	// RenewLease moves the deadline that the claim's starter enforces to Claim.Lease.
	RenewLease struct{ Claim *Claim }
	// DiscardAttempt drops what is kept of an attempt that has ended: its exit, its
	// output, its scratch directory.
	DiscardAttempt struct {
		Claim   *Claim
		Attempt roost.AttemptID
	}
	// ThrottleCPU limits the processor time of a claim in reclaimed room to Claim.CPUCap.
	// It also removes the limit again.
	ThrottleCPU struct{ Claim *Claim }
	// SetMemorySlack lets a claim use Claim.MemorySlack beyond its request.
	SetMemorySlack struct{ Claim *Claim }
	// ResizeClaim changes the limits of a claim whose attempt runs; then the core is told
	// ClaimResizes.Done. The books hold Held until then, the larger of both sizes.
	ResizeClaim struct {
		Claim    *Claim
		Attempt  roost.AttemptID
		Held, To roost.Resources
	}
	// ReportResized answers the schedd of an attempt whose claim was to be resized.
	ReportResized struct {
		Claim   *Claim
		Attempt roost.AttemptID
		To      roost.Resources // that were asked for
		Refusal string          // why the claim stays as it is; empty: it has them
	}
	// RemoveClaim removes a claim that is gone, with its starter and all it left.
	RemoveClaim struct{ Claim *Claim }
	// CloseSession closes a session that a newer one has ended.
	CloseSession struct{ Session uint64 }
)

func (CreateClaim) effect()      {}
func (SetMemorySlack) effect()   {}
func (RecordPlacement) effect()  {}
func (ReportReady) effect()      {}
func (CancelQueued) effect()     {}
func (AcceptClaim) effect()      {}
func (RejectClaim) effect()      {}
func (StartAttempt) effect()     {}
func (RejectActivation) effect() {}
func (VacateAttempt) effect()    {}
func (ReportStarted) effect()    {}
func (ReportExited) effect()     {}
func (ReportLost) effect()       {}
func (RenewLease) effect()       {}
func (DiscardAttempt) effect()   {}
func (ThrottleCPU) effect()      {}
func (ResizeClaim) effect()      {}
func (ReportResized) effect()    {}
func (RemoveClaim) effect()      {}
func (CloseSession) effect()     {}
