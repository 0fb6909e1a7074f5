package policy

// Effect is an action that is due now.
type Effect interface{ effect() }

// The effects. Those on one claim are performed in their order.
type (
	// FreezeClaim freezes a task at once.
	FreezeClaim struct {
		ID     uint64
		Reason string
	}
	// ResumeClaim resumes a task as far as the owner policy is concerned.
	ResumeClaim struct{ ID uint64 }
	// FreeGPU takes the GPUs from a frozen task: their state is saved, or the task is
	// vacated.
	FreeGPU struct {
		ID     uint64
		Reason string
	}
	// TrimMemory makes a frozen task return memory.
	TrimMemory struct{ ID uint64 }
	// VacateClaim ends the task on a claim, with a checkpoint if possible, and then the
	// claim.
	VacateClaim struct {
		ID            uint64
		Reason        string
		AlreadyFrozen bool // the task is frozen and must not run again: it is checkpointed as it is, or killed
	}
	// KillClaim ends a claim at once, with loss of its work.
	KillClaim struct {
		ID     uint64
		Reason string
	}
	// LogTransition logs a state change of a claim, or, with ID 0, of the machine.
	LogTransition struct {
		ID       uint64
		From, To string // "Claimed/Busy"
		Cause    string
	}
	// LogPolicyError logs that an expression is neither true nor false.
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
