package codec

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// MaxSegments bounds the segments of an attempt.
const MaxSegments = 512

func appendKey(b []byte, k *accounting.AttemptKey) []byte {
	b = appendNumber(appendNumber(appendNumber(b, 1, k.Seq), 2, k.Index), 3, k.Attempt)
	return appendNumber(b, fieldMonth, k.Month)
}

// decodeKey reads the fields of a key, and reports whether f is one.
func decodeKey(f encodedField, k *accounting.AttemptKey) (is bool, err error) {
	switch f.number {
	case 1:
		k.Seq = f.value
	case 2:
		err = decodeIndex(f.value, 0, &k.Index)
	case 3:
		k.Attempt = roost.AttemptNumber(f.value)
	case fieldMonth:
		k.Month = accounting.Month(f.value)
	default:
		return false, nil
	}
	return true, err
}

func appendAttempt(b []byte, a *accounting.AttemptEntry) []byte {
	b = appendKey(b, &a.AttemptKey)
	b = appendText(appendText(b, 4, cutText(a.Node)), 5, cutText(a.AppClass))
	b = appendNumber(appendNumber(appendNumber(b, 6, a.Assigned), 7, a.Started), 8, a.Ended)
	b = appendResources(b, 9, &a.Held)
	b = appendNumber(appendNumber(appendNumber(b, 10, a.Wall), 11, a.UserCPU), 12, a.SystemCPU)
	b = appendNumber(appendNumber(b, 13, a.Suspended), 14, a.Useful)
	b = appendResources(b, 15, &a.Peak)
	b = appendNumber(appendNumber(b, 16, a.Read), 17, a.Written)
	b = appendNumber(appendNumber(appendNumber(b, 18, a.Cause), 19, uint32(a.ExitCode)), 20, uint32(a.Signal))
	b = appendText(b, 21, cutText(a.Reason))
	for i := range a.Segments[:min(len(a.Segments), MaxSegments)] {
		s := &a.Segments[i]
		m := appendNumber(appendNumber(nil, 1, s.From), 2, s.Wall)
		m = appendResources(appendBool(m, 3, s.Suspended), 4, &s.Held)
		b = protowire.AppendBytes(protowire.AppendTag(b, 22, protowire.BytesType), m)
	}
	return b
}

func decodeAttempt(b []byte, a *accounting.AttemptEntry) error {
	return eachField(b, func(f encodedField) error {
		if is, err := decodeKey(f, &a.AttemptKey); is {
			return err
		}
		switch f.number {
		case 4:
			a.Node = string(f.bytes)
		case 5:
			a.AppClass = string(f.bytes)
		case 6:
			a.Assigned = accounting.Millis(f.value)
		case 7:
			a.Started = accounting.Millis(f.value)
		case 8:
			a.Ended = accounting.Millis(f.value)
		case 9:
			return decodeResources(f.bytes, &a.Held)
		case 15:
			return decodeResources(f.bytes, &a.Peak)
		case 22:
			return decodeSegment(f.bytes, a)
		default:
			decodeMeasured(f, a)
		}
		return nil
	})
}

// decodeMeasured reads what was measured of an attempt, and how it ended.
func decodeMeasured(f encodedField, a *accounting.AttemptEntry) {
	switch f.number {
	case 10:
		a.Wall = int64(f.value)
	case 11:
		a.UserCPU = int64(f.value)
	case 12:
		a.SystemCPU = int64(f.value)
	case 13:
		a.Suspended = int64(f.value)
	case 14:
		a.Useful = int64(f.value)
	case 16:
		a.Read = int64(f.value)
	case 17:
		a.Written = int64(f.value)
	case 18:
		a.Cause = accounting.EndCause(f.value)
	case 19:
		a.ExitCode = int32(f.value)
	case 20:
		a.Signal = int32(f.value)
	case 21:
		a.Reason = string(f.bytes)
	}
}

func decodeSegment(b []byte, a *accounting.AttemptEntry) error {
	if len(a.Segments) == MaxSegments {
		return errors.New("it has too many segments")
	}
	var s accounting.Segment
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			s.From = accounting.Millis(f.value)
		case 2:
			s.Wall = int64(f.value)
		case 3:
			s.Suspended = f.value != 0
		case 4:
			return decodeResources(f.bytes, &s.Held)
		}
		return nil
	})
	a.Segments = append(a.Segments, s)
	return err
}

func appendUsage(b []byte, u *accounting.UsageHour) []byte {
	b = appendNumber(appendKey(b, &u.AttemptKey), 4, u.Hour)
	for i := range u.Windows {
		w := &u.Windows[i]
		if *w == (accounting.UsageSample{}) {
			continue
		}
		m := appendNumber(nil, 1, i)
		m = appendNumber(appendNumber(m, 2, w.CPUMean), 3, w.CPUMax)
		m = appendNumber(appendNumber(appendNumber(m, 4, w.MemoryMax), 5, w.Cache), 6, w.GPUMax)
		m = appendNumber(appendNumber(appendNumber(m, 7, w.Read), 8, w.Written), 9, w.GPUMean)
		b = protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), m)
	}
	return b
}

func decodeUsage(b []byte, u *accounting.UsageHour) error {
	return eachField(b, func(f encodedField) error {
		if is, err := decodeKey(f, &u.AttemptKey); is {
			return err
		}
		switch f.number {
		case 4:
			u.Hour = accounting.Millis(f.value)
		case 5:
			return decodeWindow(f.bytes, u)
		}
		return nil
	})
}

func decodeWindow(b []byte, u *accounting.UsageHour) error {
	at, w := uint64(0), accounting.UsageSample{}
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			at = f.value
		case 2:
			w.CPUMean = roost.MilliCPU(f.value)
		case 3:
			w.CPUMax = roost.MilliCPU(f.value)
		case 4:
			w.MemoryMax = roost.Bytes(f.value)
		case 5:
			w.Cache = roost.Bytes(f.value)
		case 6:
			w.GPUMax = roost.Bytes(f.value)
		case 7:
			w.Read = roost.Bytes(f.value)
		case 8:
			w.Written = roost.Bytes(f.value)
		case 9:
			w.GPUMean = int64(f.value)
		}
		return nil
	})
	if err == nil && at >= uint64(len(u.Windows)) {
		err = errors.New("an hour has 12 windows")
	}
	if err == nil {
		u.Windows[at] = w
	}
	return err
}
