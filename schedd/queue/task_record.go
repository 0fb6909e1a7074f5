package queue

import "github.com/roost-batch/roost"

// taskRecord is what is known of a task beyond its state.
type taskRecord struct {
	attempt            roost.AttemptNumber
	node               string
	address            string
	claim              uint64
	placement          string // of the node, what it was given: see JobEvent.Placement
	assigned           int64
	started            int64
	ended              int64
	jobFailures        int   // attempts that failed by the job's own doing
	machineFailures    int   // attempts in a row that failed by a machine's
	lastMachineFailure int64 // when such a one last counted
	live               bool
	holdReason         string // why it is held, or will be when its attempt has ended
	holdWanted         bool   // desired: held
	requestedBy        string
	removeWanted       bool // desired: removed
	reason             string
	force              bool
	ownerReason        string // why it stands still for the owner of its machine; empty: it does not
	alsoByUser         bool   // and besides a user wants it to
	requeueWanted      bool   // desired: that the live attempt ends, and another begins
	exit               *AttemptExit
	checkpoints        *checkpoints // nil: no checkpoint of it was ever taken or tried
}

func (r *taskRecord) append(b []byte) []byte {
	b = appendNumber(b, 2, uint64(r.attempt))
	b = appendText(b, 3, r.node)
	b = appendText(b, 4, r.address)
	b = appendNumber(b, 5, r.claim)
	b = appendNumber(b, 6, uint64(r.assigned))
	b = appendNumber(b, 7, uint64(r.started))
	b = appendNumber(b, 8, uint64(r.ended))
	b = appendNumber(b, 9, uint64(r.jobFailures))
	b = appendNumber(b, 10, uint64(r.machineFailures))
	b = appendBool(b, 11, r.live)
	b = appendText(b, 12, r.holdReason)
	b = appendBool(b, 13, r.holdWanted)
	b = appendText(b, 14, r.requestedBy)
	b = appendBool(b, 15, r.removeWanted)
	b = appendText(b, 16, r.reason)
	b = appendBool(b, 17, r.force)
	if r.exit != nil {
		b = appendMessage(b, 18, r.exit.append)
	}
	if r.checkpoints != nil {
		b = appendMessage(b, 20, r.checkpoints.append)
	}
	b = appendText(b, 21, r.placement)
	b = appendText(b, 22, r.ownerReason)
	b = appendBool(b, 23, r.alsoByUser)
	b = appendBool(b, 24, r.requeueWanted)
	b = appendNumber(b, 25, uint64(r.lastMachineFailure))
	return b
}

func (r *taskRecord) decode(f encodedField) error {
	switch f.number {
	case 2:
		r.attempt = roost.AttemptNumber(f.value)
	case 3:
		r.node = string(f.bytes)
	case 4:
		r.address = string(f.bytes)
	case 5:
		r.claim = f.value
	case 6:
		r.assigned = int64(f.value)
	case 7:
		r.started = int64(f.value)
	case 8:
		r.ended = int64(f.value)
	case 9:
		r.jobFailures = int(f.value)
	case 10:
		r.machineFailures = int(f.value)
	default:
		return r.decodeWanted(f)
	}
	return nil
}

// decodeWanted reads what was wanted of the task, and how its attempt ended.
func (r *taskRecord) decodeWanted(f encodedField) error {
	switch f.number {
	case 11:
		r.live = f.value != 0
	case 12:
		r.holdReason = string(f.bytes)
	case 13:
		r.holdWanted = f.value != 0
	case 14:
		r.requestedBy = string(f.bytes)
	case 15:
		r.removeWanted = f.value != 0
	case 16:
		r.reason = string(f.bytes)
	case 17:
		r.force = f.value != 0
	case 18:
		r.exit = &AttemptExit{}
		return r.exit.decode(f.bytes)
	case 21:
		r.placement = string(f.bytes)
	case 22:
		r.ownerReason = string(f.bytes)
	case 23:
		r.alsoByUser = f.value != 0
	case 24:
		r.requeueWanted = f.value != 0
	case 25:
		r.lastMachineFailure = int64(f.value)
	case 20:
		r.checkpoints = &checkpoints{}
		return r.checkpoints.decode(f.bytes)
	}
	return nil
}

// newestImage is the image to go on from, nil for none.
func (r *taskRecord) newestImage() *CheckpointImage {
	if r == nil || r.checkpoints == nil || len(r.checkpoints.images) == 0 {
		return nil
	}
	return &r.checkpoints.images[len(r.checkpoints.images)-1]
}

// ownCheckpoints is what is known of a task's checkpoints, to be written to.
func (r *taskRecord) ownCheckpoints() *checkpoints {
	if r.checkpoints == nil {
		r.checkpoints = &checkpoints{}
	}
	return r.checkpoints
}
