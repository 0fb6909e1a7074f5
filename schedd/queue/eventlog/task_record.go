package eventlog

import "github.com/roost-batch/roost"

// TaskRecord is what is known of a task beyond its state.
type TaskRecord struct {
	Attempt            roost.AttemptNumber
	Node               string
	Address            string
	Claim              uint64
	Placement          string // of the node, what it was given: see JobEvent.Placement
	Assigned           int64
	Started            int64
	Ended              int64
	JobFailures        int   // attempts that failed by the job's own doing
	MachineFailures    int   // attempts in a row that failed by a machine's
	LastMachineFailure int64 // when such a one last counted
	Live               bool
	HoldReason         string // why it is held, or will be when its attempt has ended
	HoldWanted         bool   // desired: held
	RequestedBy        string
	RemoveWanted       bool // desired: removed
	Reason             string
	Force              bool
	OwnerReason        string // why it stands still for the owner of its machine; empty: it does not
	AlsoByUser         bool   // and besides a user wants it to
	RequeueWanted      bool   // desired: that the live attempt ends, and another begins
	Exit               *AttemptExit
	Checkpoints        *CheckpointRecord // nil: no checkpoint of it was ever taken or tried
	Suspended          *SuspendedSpans   // of the live attempt; nil: it was never suspended
	Service            *ServiceRecord    // nil: the task is of no service, or never had an attempt
	// of a task inside an alloc set: the alloc of its last attempt, and which attempt
	// held that; 0: it had none
	AllocIndex   int
	AllocAttempt roost.AttemptNumber
	// what the live attempt is to have instead of what it began with; nil: it was not
	// asked for, or the attempt has it
	Resize *ResizeRecord
	Policy *PolicyRecord // nil: the job has no conditions, or nothing has happened yet
}

// PolicyRecord is what the conditions of a job ask for of one of its tasks.
type PolicyRecord struct {
	Entered     int64 // when it came into its state, in unix nanoseconds
	Completions int   // attempts whose program ended by itself
	Holds       int   // how often it was held
	RunTime     int64 // of the attempts that have ended, in nanoseconds
}

func (p *PolicyRecord) append(b []byte) []byte {
	b = appendNumber(appendNumber(b, 1, uint64(p.Entered)), 2, uint64(p.Completions))
	return appendNumber(appendNumber(b, 3, uint64(p.Holds)), 4, uint64(p.RunTime))
}

func (p *PolicyRecord) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			p.Entered = int64(f.value)
		case 2:
			p.Completions = int(f.value)
		case 3:
			p.Holds = int(f.value)
		case 4:
			p.RunTime = int64(f.value)
		}
		return nil
	})
}

// OwnPolicy is what the conditions of its job ask for of the task, to be written to.
func (r *TaskRecord) OwnPolicy() *PolicyRecord {
	if r.Policy == nil {
		r.Policy = &PolicyRecord{}
	}
	return r.Policy
}

func (r *TaskRecord) append(b []byte) []byte {
	b = appendNumber(b, 2, uint64(r.Attempt))
	b = appendText(b, 3, r.Node)
	b = appendText(b, 4, r.Address)
	b = appendNumber(b, 5, r.Claim)
	b = appendNumber(b, 6, uint64(r.Assigned))
	b = appendNumber(b, 7, uint64(r.Started))
	b = appendNumber(b, 8, uint64(r.Ended))
	b = appendNumber(b, 9, uint64(r.JobFailures))
	b = appendNumber(b, 10, uint64(r.MachineFailures))
	b = appendBool(b, 11, r.Live)
	b = appendText(b, 12, r.HoldReason)
	b = appendBool(b, 13, r.HoldWanted)
	b = appendText(b, 14, r.RequestedBy)
	b = appendBool(b, 15, r.RemoveWanted)
	b = appendText(b, 16, r.Reason)
	b = appendBool(b, 17, r.Force)
	if r.Exit != nil {
		b = appendMessage(b, 18, r.Exit.append)
	}
	if r.Checkpoints != nil {
		b = appendMessage(b, 20, r.Checkpoints.append)
	}
	b = appendText(b, 21, r.Placement)
	b = appendText(b, 22, r.OwnerReason)
	b = appendBool(b, 23, r.AlsoByUser)
	b = appendBool(b, 24, r.RequeueWanted)
	b = appendNumber(b, 25, uint64(r.LastMachineFailure))
	if r.Suspended != nil {
		b = appendMessage(b, 26, r.Suspended.append)
	}
	if r.Service != nil {
		b = appendMessage(b, 27, r.Service.append)
	}
	if r.Resize != nil {
		b = appendMessage(b, 30, r.Resize.append)
	}
	if r.Policy != nil {
		b = appendMessage(b, 31, r.Policy.append)
	}
	return appendNumber(appendNumber(b, 28, uint64(r.AllocIndex)), 29, uint64(r.AllocAttempt))
}

func (r *TaskRecord) decode(f encodedField) error {
	switch f.number {
	case 2:
		r.Attempt = roost.AttemptNumber(f.value)
	case 3:
		r.Node = string(f.bytes)
	case 4:
		r.Address = string(f.bytes)
	case 5:
		r.Claim = f.value
	case 6:
		r.Assigned = int64(f.value)
	case 7:
		r.Started = int64(f.value)
	case 8:
		r.Ended = int64(f.value)
	case 9:
		r.JobFailures = int(f.value)
	case 10:
		r.MachineFailures = int(f.value)
	default:
		return r.decodeWanted(f)
	}
	return nil
}

// decodeWanted reads what was wanted of the task, and how its attempt ended.
func (r *TaskRecord) decodeWanted(f encodedField) error {
	switch f.number {
	case 11:
		r.Live = f.value != 0
	case 12:
		r.HoldReason = string(f.bytes)
	case 13:
		r.HoldWanted = f.value != 0
	case 14:
		r.RequestedBy = string(f.bytes)
	case 15:
		r.RemoveWanted = f.value != 0
	case 16:
		r.Reason = string(f.bytes)
	case 17:
		r.Force = f.value != 0
	case 18:
		r.Exit = &AttemptExit{}
		return r.Exit.decode(f.bytes)
	case 21:
		r.Placement = string(f.bytes)
	case 22:
		r.OwnerReason = string(f.bytes)
	case 23:
		r.AlsoByUser = f.value != 0
	case 24:
		r.RequeueWanted = f.value != 0
	case 25:
		r.LastMachineFailure = int64(f.value)
	case 20:
		r.Checkpoints = &CheckpointRecord{}
		return r.Checkpoints.decode(f.bytes)
	case 26:
		r.Suspended = &SuspendedSpans{}
		return r.Suspended.decode(f.bytes)
	case 27:
		r.Service = &ServiceRecord{}
		return r.Service.decode(f.bytes)
	case 28:
		r.AllocIndex = int(f.value)
	case 29:
		r.AllocAttempt = roost.AttemptNumber(f.value)
	case 30:
		r.Resize = &ResizeRecord{}
		return r.Resize.decode(f.bytes)
	case 31:
		return r.OwnPolicy().decode(f.bytes)
	}
	return nil
}

// NewestImage is the image to go on from, nil for none.
func (r *TaskRecord) NewestImage() *CheckpointImage {
	if r == nil || r.Checkpoints == nil || len(r.Checkpoints.Images) == 0 {
		return nil
	}
	return &r.Checkpoints.Images[len(r.Checkpoints.Images)-1]
}

// OwnCheckpoints is what is known of a task's checkpoints, to be written to.
func (r *TaskRecord) OwnCheckpoints() *CheckpointRecord {
	if r.Checkpoints == nil {
		r.Checkpoints = &CheckpointRecord{}
	}
	return r.Checkpoints
}
