package store

import (
	"encoding/binary"
	"errors"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// maxSegments bounds the segments of an attempt that are stored.
const maxSegments = 10_000

var errPacked = errors.New("packed amounts are damaged")

// unpacker reads numbers from bytes. After the end it reads 0 and has failed.
type unpacker struct {
	rest   []byte
	failed bool
}

func (u *unpacker) next() int64 {
	v, n := binary.Varint(u.rest)
	if n <= 0 {
		u.failed, u.rest = true, nil
		return 0
	}
	u.rest = u.rest[n:]
	return v
}

func appendNumbers(b []byte, values ...int64) []byte {
	for _, v := range values {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// packSegments returns nil for no segments, so that the column is NULL.
func packSegments(segments []accounting.Segment) any {
	if len(segments) == 0 {
		return nil
	}
	b := appendNumbers(nil, int64(len(segments)))
	for i := range segments {
		s := &segments[i]
		b = appendNumbers(b, int64(s.From), s.Wall, boolNumber(s.Suspended), int64(s.Held.CPU), int64(s.Held.Memory),
			int64(s.Held.Disk), int64(s.Held.GPUs), int64(s.Held.GPUMemory))
	}
	return b
}

func unpackSegments(b []byte) ([]accounting.Segment, error) {
	if len(b) == 0 {
		return nil, nil
	}
	u := &unpacker{rest: b}
	n := u.next()
	if n < 0 || n > maxSegments || n > int64(len(b)) {
		return nil, errPacked
	}
	segments := make([]accounting.Segment, n)
	for i := range segments {
		s := &segments[i]
		s.From, s.Wall, s.Suspended = accounting.Millis(u.next()), u.next(), u.next() != 0
		s.Held = roost.Resources{
			CPU: roost.MilliCPU(u.next()), Memory: roost.Bytes(u.next()), Disk: roost.Bytes(u.next()),
			GPUs: int(u.next()), GPUMemory: roost.Bytes(u.next()),
		}
	}
	if u.failed || len(u.rest) > 0 {
		return nil, errPacked
	}
	return segments, nil
}

// hasGPUs is set beside the bits of the windows if each sample ends with the mean of its
// GPUs.
const hasGPUs = 1 << 12

// packWindows writes a bit for each window that has a sample, then the samples.
func packWindows(windows *[12]accounting.UsageSample) []byte {
	var present int64
	for i := range windows {
		if windows[i] != (accounting.UsageSample{}) {
			present |= 1 << i
		}
		if windows[i].GPUMean != 0 {
			present |= hasGPUs
		}
	}
	b := appendNumbers(nil, present)
	for i := range windows {
		if w := &windows[i]; present&(1<<i) != 0 {
			b = appendNumbers(b, int64(w.CPUMean), int64(w.CPUMax), int64(w.MemoryMax), int64(w.Cache), int64(w.GPUMax),
				int64(w.Read), int64(w.Written))
			if present&hasGPUs != 0 {
				b = appendNumbers(b, w.GPUMean)
			}
		}
	}
	return b
}

func unpackWindows(b []byte) (windows [12]accounting.UsageSample, err error) {
	u := &unpacker{rest: b}
	present := u.next()
	for i := range windows {
		if present&(1<<i) == 0 {
			continue
		}
		windows[i] = accounting.UsageSample{
			CPUMean: roost.MilliCPU(u.next()), CPUMax: roost.MilliCPU(u.next()), MemoryMax: roost.Bytes(u.next()),
			Cache: roost.Bytes(u.next()), GPUMax: roost.Bytes(u.next()), Read: roost.Bytes(u.next()),
			Written: roost.Bytes(u.next()),
		}
		if present&hasGPUs != 0 {
			windows[i].GPUMean = u.next()
		}
	}
	if u.failed || len(u.rest) > 0 {
		return windows, errPacked
	}
	return windows, nil
}
