package policy

// Effect is something that is to be done now.
type Effect interface{ effect() }

// The orders. Those about one claim are done in their order.
type (
	// FreezeClaim makes a task stand still at once.
	FreezeClaim struct {
		ID     uint64
		Reason string
	}
	// ResumeClaim lets it go on, as far as its owner's machine is concerned.
	ResumeClaim struct{ ID uint64 }
	// FreeGPU takes the GPUs from a task that stands still: their state is saved, or the
	// task leaves.
	FreeGPU struct {
		ID     uint64
		Reason string
	}
	// TrimMemory has a task that stands still give back what memory can be taken from it.
	TrimMemory struct{ ID uint64 }
	// VacateClaim ends what runs on a claim, with a checkpoint where it can be saved, and
	// then the claim.
	VacateClaim struct {
		ID            uint64
		Reason        string
		AlreadyFrozen bool // the task stands still and must not run again: it is saved as it stands, or killed
	}
	// KillClaim ends it at once, whatever is lost.
	KillClaim struct {
		ID     uint64
		Reason string
	}
	// LogTransition is for the log: a claim, or with ID 0 the machine, has changed its
	// state.
	LogTransition struct {
		ID       uint64
		From, To string // "Claimed/Busy"
		Cause    string
	}
	// LogPolicyError is for the log: an expression says neither true nor false.
	LogPolicyError struct{ Message string }
)

func (FreezeClaim) effect()    {}
func (ResumeClaim) effect()    {}
func (FreeGPU) effect()        {}
func (TrimMemory) effect()     {}
func (VacateClaim) effect()    {}
func (KillClaim) effect()      {}
func (LogTransition) effect()  {}
func (LogPolicyError) effect() {}
