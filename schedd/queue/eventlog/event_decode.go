package eventlog

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// DecodeEvent reads what AppendEvent wrote.
func DecodeEvent(b []byte) (JobEvent, error) {
	var e JobEvent
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case fType:
			e.Type = EventType(f.value)
		case fTime:
			e.Time = int64(f.value)
		case fJob:
			e.Job = f.value
		case fRange:
			r, err := decodeRange(f.bytes)
			e.Ranges = append(e.Ranges, r)
			return err
		case fIndex:
			e.Index = int(f.value)
		case fAttempt:
			e.Attempt = roost.AttemptNumber(f.value)
		case fNode:
			e.Node = string(f.bytes)
		case fAddress:
			e.Address = string(f.bytes)
		case fClaim:
			e.Claim = f.value
		case fExit:
			e.Exit = &AttemptExit{}
			return e.Exit.decode(f.bytes)
		case fBy:
			e.RequestedBy = string(f.bytes)
		case fReason:
			e.Reason = string(f.bytes)
		case fForce:
			e.Force = f.value != 0
		case fSubmission:
			e.Submission = &SubmittedJob{}
			return e.Submission.decode(f.bytes)
		case fPlacement:
			e.Placement = string(f.bytes)
		case fRank:
			e.OrderRank = f.value
		case fSince:
			e.OrderTime = int64(f.value)
		case fSnapshot:
			e.Snapshot = append([]byte(nil), f.bytes...)
		case fHosts:
			e.Hosts = append(e.Hosts, string(f.bytes))
		case fImage:
			e.Image = &CheckpointImage{}
			return e.Image.decode(f.bytes)
		case fDisplaced:
			p, err := decodeParty(f.bytes)
			e.Displaced = append(e.Displaced, p)
			return err
		}
		return e.decodeServiceField(f)
	})
	if err == nil && (e.Type == 0 || int(e.Type) >= len(eventTypeNames) || e.Index < 0 || e.AllocIndex < 0 ||
		e.ServiceState > roost.ServiceLost) {
		err = fmt.Errorf("event of kind %d, index %d", e.Type, e.Index)
	}
	if err != nil {
		return JobEvent{}, fmt.Errorf("event of the job log: %w: %w", roost.Invalid, err)
	}
	return e, nil
}

// decodeServiceField takes in a field of the events of services and schedules.
func (e *JobEvent) decodeServiceField(f encodedField) error {
	switch f.number {
	case fServiceState:
		e.ServiceState = roost.ServiceState(f.value)
	case fHealthCheck:
		e.HealthCheck = string(f.bytes)
	case fInstant:
		e.Instant = int64(f.value)
	case fRun:
		e.Run = f.value
	case fUpdate:
		e.Update = &update.Update{}
		return decodeUpdate(f.bytes, e.Update)
	case fPlanned:
		e.Planned = f.value != 0
	case fAllocIndex:
		e.AllocIndex = int(f.value)
	case fAllocAttempt:
		e.AllocAttempt = roost.AttemptNumber(f.value)
	case fCountsRestart:
		e.CountsRestart = f.value != 0
	case fFlowEvents:
		return e.decodeFlow(f.bytes)
	case fEpoch:
		e.Epoch = f.value
	}
	return nil
}

// EncodedJob finds the job of an encoded event without reading the rest. It is 0 for what
// is no event.
func EncodedJob(b []byte) uint64 {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.VarintType || num > fJob {
			return 0
		}
		v, m := protowire.ConsumeVarint(b[n:])
		if m < 0 || num == fJob {
			return v
		}
		b = b[n+m:]
	}
	return 0
}
