package eventlog

import "github.com/roost-batch/roost"

// ResizeRecord is another size that the live attempt of a task is to have where it runs.
// Its machine is asked until it has answered.
type ResizeRecord struct {
	CPU      roost.MilliCPU
	Memory   roost.Bytes
	Revision uint32 // that the task is of when it has that size; 0: its job has none
	Asked    int64  // unix nanoseconds
	Tries    int    // how often it was asked for
	Refusal  string // of the machine; empty: it has not answered
}

// IsPending reports whether the machine has to answer yet.
func (r *ResizeRecord) IsPending() bool { return r != nil && r.Refusal == "" }

func (r *ResizeRecord) append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(r.CPU))
	b = appendNumber(b, 2, uint64(r.Memory))
	b = appendNumber(b, 3, uint64(r.Revision))
	b = appendNumber(b, 4, uint64(r.Asked))
	b = appendNumber(b, 5, uint64(r.Tries))
	return appendText(b, 6, r.Refusal)
}

func (r *ResizeRecord) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			r.CPU = roost.MilliCPU(f.value)
		case 2:
			r.Memory = roost.Bytes(f.value)
		case 3:
			r.Revision = uint32(f.value)
		case 4:
			r.Asked = int64(f.value)
		case 5:
			r.Tries = int(f.value)
		case 6:
			r.Refusal = string(f.bytes)
		}
		return nil
	})
}
