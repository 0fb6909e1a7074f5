package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// Decode reads what Encode wrote. Fields that are not known are skipped.
func Decode(buf []byte) (*Entry, error) {
	e := &Entry{}
	err := fields(buf, func(f protowire.Number, v uint64, b []byte) (err error) {
		switch f {
		case eAt:
			e.At = int64(v)
		case eEpoch:
			e.Epoch = v
		case eLead:
			e.Lead = string(b)
		case eHold:
			e.Holds, err = grow(e.Holds, b, (*Hold).decode)
		case eGrant:
			e.Grants, err = grow(e.Grants, b, (*Grant).decode)
		case eEnded:
			e.Ended = append(e.Ended, v)
		case ePair:
			e.Pairs, err = grow(e.Pairs, b, (*Pair).decode)
		case eCommand:
			e.Commands, err = grow(e.Commands, b, (*Command).decode)
		case eAccount:
			e.Accounts, err = grow(e.Accounts, b, decodeAccount)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("entry of the ledger: %w", err)
	}
	return e, nil
}

// grow adds what decode reads from b to a list.
func grow[T any](list []T, b []byte, decode func(*T, []byte) error) ([]T, error) {
	list = append(list, *new(T))
	return list, decode(&list[len(list)-1], b)
}

func decodeAccount(a *share.Account, buf []byte) error {
	return fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1, 2:
			whose(&a.Submitter, f-1, b)
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
		}
		return nil
	})
}

func (h *Hold) decode(buf []byte) error {
	return fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1, 2:
			whose(&h.Submitter, f-1, b)
		case 3:
			h.Cores = math.Float64frombits(v)
		}
		return nil
	})
}

func (g *Grant) decode(buf []byte) error {
	return fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			g.ID = v
		case 2:
			g.Units = int(min(v, mostCount))
		case 3:
			g.Schedd = string(b)
		case 4:
			g.Request = v
		case 5, 6:
			whose(&g.Submitter, f-5, b)
		case 7:
			g.Band = roost.Band(v)
		case 8:
			g.Machine = string(b)
		case 9:
			g.Started = int64(v)
		case 10, 11, 12, 13, 14:
			dimension(&g.Resources, f-10, int64(v))
		case 15:
			g.Stream = v != 0
		case 16:
			g.Waiting = v != 0
		case 17:
			g.Unit = int(min(v, mostCount))
		case 18:
			var u Use
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

func (u *Use) decode(buf []byte) error {
	return fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			u.Limit = string(b)
		case 2:
			u.Count = int64(v)
		}
		return nil
	})
}

func (p *Pair) decode(buf []byte) error {
	return fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			p.Task = string(b)
		case 2:
			p.Machine = string(b)
		case 3:
			p.Until = instant(int64(v))
		case 4:
			p.Reason = string(b)
		}
		return nil
	})
}

func (c *Command) decode(buf []byte) error {
	return fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			c.Who = string(b)
		case 2:
			c.Trusted = v != 0
		case 3:
			c.Verb = Verb(b)
		case 4:
			c.Kind = Kind(b)
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

func whose(s *share.Submitter, which protowire.Number, b []byte) {
	if which == 0 {
		s.Owner = string(b)
	} else {
		s.Group = string(b)
	}
}

func dimension(r *roost.Resources, which protowire.Number, v int64) {
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

// nanos is a time in unix nanoseconds, and instant the way back. The zero time and the epoch are both 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// fields calls see for each field: with a number, or with bytes, which are buf's own.
func fields(buf []byte, see func(f protowire.Number, v uint64, b []byte) error) error {
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
