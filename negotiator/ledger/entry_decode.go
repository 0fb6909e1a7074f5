package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Decode reads what Encode wrote. It skips unknown fields.
func Decode(buf []byte) (*LogEntry, error) {
	e := &LogEntry{}
	err := eachField(buf, func(f protowire.Number, v uint64, b []byte) (err error) {
		switch f {
		case eAt:
			e.At = int64(v)
		case eEpoch:
			e.Epoch = v
		case eLead:
			e.Lead = string(b)
		case eUsage:
			e.Holds, err = appendDecoded(e.Holds, b, (*UsageUpdate).decode)
		case eGrant:
			e.Grants, err = appendDecoded(e.Grants, b, (*RecordedGrant).decode)
		case eResolved:
			e.Ended = append(e.Ended, v)
		case eAvoidPair:
			e.Pairs, err = appendDecoded(e.Pairs, b, (*AvoidPair).decode)
		case eCommand:
			e.Commands, err = appendDecoded(e.Commands, b, (*AdminCommand).decode)
		case eAccount:
			e.Accounts, err = appendDecoded(e.Accounts, b, decodeAccount)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("entry of the ledger: %w", err)
	}
	return e, nil
}

// appendDecoded appends to a list the element that decode reads from b.
func appendDecoded[T any](list []T, b []byte, decode func(*T, []byte) error) ([]T, error) {
	list = append(list, *new(T))
	return list, decode(&list[len(list)-1], b)
}

func decodeAccount(a *fairshare.SubmitterAccount, buf []byte) error {
	return eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1, 2:
			decodeSubmitter(&a.Submitter, f-1, b)
		case 3:
			a.Real = math.Float64frombits(v)
		case 4:
			a.Use = math.Float64frombits(v)
		case 5:
			a.Used = math.Float64frombits(v)
		case 6:
			a.Factor = math.Float64frombits(v)
		case 7:
			a.At = int64(v)
		case 8:
			a.UseElsewhere = math.Float64frombits(v)
		case 9:
			a.UsedElsewhere = math.Float64frombits(v)
		}
		return nil
	})
}

func (h *UsageUpdate) decode(buf []byte) error {
	return eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1, 2:
			decodeSubmitter(&h.Submitter, f-1, b)
		case 3:
			h.Cores = math.Float64frombits(v)
		case 4:
			h.Elsewhere = math.Float64frombits(v)
		}
		return nil
	})
}

func (g *RecordedGrant) decode(buf []byte) error {
	return eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			g.ID = v
		case 2:
			g.Units = int(min(v, maxCount))
		case 3:
			g.Schedd = string(b)
		case 4:
			g.Request = v
		case 5, 6:
			decodeSubmitter(&g.Submitter, f-5, b)
		case 7:
			g.Band = roost.PriorityBand(v)
		case 8:
			g.Machine = string(b)
		case 9:
			g.Started = int64(v)
		case 10, 11, 12, 13, 14:
			decodeDimension(&g.Resources, f-10, int64(v))
		case 15:
			g.Stream = v != 0
		case 16:
			g.Waiting = v != 0
		case 17:
			g.Unit = int(min(v, maxCount))
		case 18:
			var u LimitUse
			err := u.decode(b)
			g.Limits = append(g.Limits, u)
			return err
		case 19:
			g.Victims = append(g.Victims, v)
		case 20:
			g.ClaimBy = int64(v)
		case 21:
			g.Evicted = append(g.Evicted, string(b))
		}
		return nil
	})
}

func (u *LimitUse) decode(buf []byte) error {
	return eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			u.Limit = string(b)
		case 2:
			u.Count = int64(v)
		}
		return nil
	})
}

func (p *AvoidPair) decode(buf []byte) error {
	return eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			p.Task = string(b)
		case 2:
			p.Machine = string(b)
		case 3:
			p.Until = timeOfNanos(int64(v))
		case 4:
			p.Reason = string(b)
		}
		return nil
	})
}

func (c *AdminCommand) decode(buf []byte) error {
	return eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			c.Who = string(b)
		case 2:
			c.Trusted = v != 0
		case 3:
			c.Verb = CommandVerb(b)
		case 4:
			c.Kind = ObjectKind(b)
		case 5:
			c.Name = string(b)
		case 6:
			c.Object = json.RawMessage(append([]byte(nil), b...))
		case 7:
			c.Whole = v != 0
		case 8:
			c.Fresh = v != 0
		case 9:
			c.Unsure = v != 0
		case 10:
			c.Basis = bytes.Clone(b)
		}
		return nil
	})
}

func decodeSubmitter(s *fairshare.Submitter, which protowire.Number, b []byte) {
	if which == 0 {
		s.Owner = string(b)
	} else {
		s.Group = string(b)
	}
}

func decodeDimension(r *roost.Resources, which protowire.Number, v int64) {
	switch which {
	case 0:
		r.CPU = roost.MilliCPU(v)
	case 1:
		r.Memory = roost.Bytes(v)
	case 2:
		r.Disk = roost.Bytes(v)
	case 3:
		r.GPUs = int(v)
	case 4:
		r.GPUMemory = roost.Bytes(v)
	}
}

// unixNanos converts a time to unix nanoseconds. The zero time becomes 0, as does the
// unix epoch.
func unixNanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOfNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// eachField calls see for each field, with its number or with its bytes, which alias buf.
func eachField(buf []byte, see func(f protowire.Number, v uint64, b []byte) error) error {
	for len(buf) > 0 {
		f, form, n := protowire.ConsumeTag(buf)
		if n < 0 {
			return fmt.Errorf("%w: %w", roost.Invalid, protowire.ParseError(n))
		}
		buf = buf[n:]
		var v uint64
		var b []byte
		switch form {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(buf)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(buf)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(buf)
		default:
			n = protowire.ConsumeFieldValue(f, form, buf)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w: %w", f, roost.Invalid, protowire.ParseError(n))
		}
		buf = buf[n:]
		if err := see(f, v, b); err != nil {
			return err
		}
	}
	return nil
}
