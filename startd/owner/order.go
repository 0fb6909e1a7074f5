package owner

// Order is something that is to be done now.
type Order interface{ order() }

// The orders. Those about one claim are done in their order.
type (
	// Freeze makes a task stand still at once.
	Freeze struct {
		ID     uint64
		Reason string
	}
	// Thaw lets it go on, as far as its owner's machine is concerned.
	Thaw struct{ ID uint64 }
	// FreeGPU takes the GPUs from a task that stands still: their state is saved, or the task leaves.
	FreeGPU struct {
		ID     uint64
		Reason string
	}
	// Shrink has a task that stands still give back what memory can be taken from it.
	Shrink struct{ ID uint64 }
	// Leave ends what runs on a claim, with a checkpoint where it can be saved, and then the claim.
	Leave struct {
		ID     uint64
		Reason string
		Still  bool // the task stands still and must not run again: it is saved as it stands, or killed
	}
	// Kill ends it at once, whatever is lost.
	Kill struct {
		ID     uint64
		Reason string
	}
	// Moved is for the log: a claim, or with ID 0 the machine, has changed its state.
	Moved struct {
		ID       uint64
		From, To string // "Claimed/Busy"
		Cause    string
	}
	// Complain is for the log: an expression says neither true nor false.
	Complain struct{ What string }
)

func (Freeze) order()   {}
func (Thaw) order()     {}
func (FreeGPU) order()  {}
func (Shrink) order()   {}
func (Leave) order()    {}
func (Kill) order()     {}
func (Moved) order()    {}
func (Complain) order() {}
