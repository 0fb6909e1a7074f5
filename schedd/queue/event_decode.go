package queue

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// encodedField is one field of a message on disk: a number or a piece of bytes.
type encodedField struct {
	number protowire.Number
	value  uint64
	bytes  []byte
}

// eachField calls f with each field of a message.
func eachField(b []byte, f func(encodedField) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		got := encodedField{number: num}
		switch kind {
		case protowire.VarintType:
			got.value, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			got.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(got); err != nil {
			return err
		}
	}
	return nil
}

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
		}
		return nil
	})
	if err == nil && (e.Type == 0 || int(e.Type) >= len(eventTypeNames) || e.Index < 0) {
		err = fmt.Errorf("event of kind %d, index %d", e.Type, e.Index)
	}
	if err != nil {
		return JobEvent{}, fmt.Errorf("event of the job log: %w: %w", roost.Invalid, err)
	}
	return e, nil
}

// EncodedJob is the job that an encoded event is about, found without reading the rest; 0
// for what is no event.
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

func decodeRange(b []byte) (r IndexRange, err error) {
	err = eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			r.First = int(f.value)
		case 2:
			r.Last = int(f.value)
		}
		return nil
	})
	return r, err
}

func (x *AttemptExit) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			x.Code = int32(f.value)
		case 2:
			x.Signal = int32(f.value)
		case 3:
			x.Core = f.value != 0
		case 4:
			x.Cause = ExitCause(f.value)
		case 5:
			x.Reason = string(f.bytes)
		case 6:
			x.Wall = int64(f.value)
		case 7:
			x.User = int64(f.value)
		case 8:
			x.System = int64(f.value)
		case 9:
			x.MaxRSS = int64(f.value)
		case 10:
			x.Used.Peak = int64(f.value)
		case 11:
			x.Used.Read = int64(f.value)
		case 12:
			x.Used.Written = int64(f.value)
		case 13:
			x.Used.PeakGPU = int64(f.value)
		case 14:
			x.Used.Disk = int64(f.value)
		}
		return nil
	})
}

func (s *SubmittedJob) decode(b []byte) error {
	return eachField(b, func(f encodedField) (err error) {
		switch f.number {
		case 1:
			s.Key = string(f.bytes)
		case 2:
			s.PartIndex = int(f.value)
		case 3:
			s.PartCount = int(f.value)
		case 4:
			s.Owner = string(f.bytes)
		case 5:
			s.UID = uint32(f.value)
		case 6:
			s.GID = uint32(f.value)
		case 7:
			s.Ad = string(f.bytes)
		case 8:
			s.Count = int(f.value)
		case 9:
			var c jobad.TaskColumn
			c, err = decodeColumn(f.bytes)
			s.Columns = append(s.Columns, c)
		case 10:
			var w JobDependency
			err = w.decode(f.bytes)
			s.Dependencies = append(s.Dependencies, w)
		case 11:
			s.Secret = append([]byte(nil), f.bytes...)
		case 12:
			s.DeferredAdmission = f.value != 0
		}
		return err
	})
}

func decodeColumn(b []byte) (c jobad.TaskColumn, err error) {
	err = eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			c.Name = string(f.bytes)
		case 2:
			c.Values = append(c.Values, string(f.bytes))
		}
		return nil
	})
	return c, err
}
