package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/checksum"
	"github.com/roost-batch/roost/schedd/queue"
)

// Each event of a batch has its own checksum in addition to that of the batch. A flipped
// bit then damages one event of one job, and not the whole batch.

// eventSumSize is the size of that checksum in bytes.
const eventSumSize = checksum.Size

// errDamaged reports an event with a wrong checksum.
var errDamaged = errors.New("its checksum is wrong")

func appendEvent(batch, raw []byte) []byte {
	batch = binary.AppendUvarint(batch, uint64(len(raw)))
	return append(binary.BigEndian.AppendUint32(batch, checksum.Of(raw)), raw...)
}

// eachEvent calls f with each event of a batch.
func eachEvent(batch []byte, f func(raw []byte) error) error {
	return eachPiece(batch, eventSumSize, func(sum, raw []byte) error {
		if binary.BigEndian.Uint32(sum) != checksum.Of(raw) {
			return fmt.Errorf("event of job %d: %w", queue.EncodedJob(raw), errDamaged)
		}
		return f(raw)
	})
}

// eachPiece calls f with each piece of a batch, and with the bytes between its length and
// itself.
func eachPiece(batch []byte, between int, f func(before, raw []byte) error) error {
	for len(batch) > 0 {
		n, used := binary.Uvarint(batch)
		if used <= 0 || n > uint64(len(batch)) || uint64(len(batch)-used) < n+uint64(between) {
			return fmt.Errorf("a batch of %d bytes ends in the middle of an event", len(batch))
		}
		before, raw := batch[used:used+between], batch[used+between:]
		if err := f(before, raw[:n]); err != nil {
			return err
		}
		batch = raw[n:]
	}
	return nil
}

// salvagedBatch contains the readable part of a damaged batch.
type salvagedBatch struct {
	events    [][]byte // intact or corrected events
	corrected []uint64 // jobs of the corrected events
	// an event is lost whose job is unknown, as the flipped bits may be in the job number
	unknownLost bool
}

func salvageBatch(batch []byte) (s salvagedBatch) {
	err := eachPiece(batch, eventSumSize, func(sum, raw []byte) error {
		event, one := correctEvent(binary.BigEndian.Uint32(sum)^checksum.Of(raw), raw)
		switch {
		case event == nil:
			s.unknownLost = true
			return nil
		case one:
			s.corrected = append(s.corrected, queue.EncodedJob(event))
		}
		s.events = append(s.events, event)
		return nil
	})
	s.unknownLost = s.unknownLost || err != nil // the start of the next event is unknown
	return s
}

// correctEvent returns an event with a flipped bit corrected. Difference is the
// difference between the actual and the recorded checksum; 0 returns the event itself. It
// returns nil if there is more damage than one bit.
func correctEvent(difference uint32, raw []byte) (event []byte, corrected bool) {
	if difference == 0 {
		return raw, false
	}
	at, one := checksum.FlippedBit(difference, len(raw))
	if !one {
		return nil, false
	}
	event = cloneBytes(raw)
	if at >= 0 {
		event[at/8] ^= 1 << (at % 8)
	}
	if _, err := queue.DecodeEvent(event); err != nil {
		return nil, false
	}
	return event, true
}

// fileKind describes the log of a schedd to package boltfile.
func fileKind(host string) boltfile.ContentKind {
	return boltfile.ContentKind{
		Description: "job log", InitialMap: initialMap, Format: logFormat,
		Buckets: []string{string(bucketLog), string(bucketJobs), string(bucketEvents), string(bucketCounters)},
		Name:    func(d *boltfile.DamageFinding) string { return damageName(host, d) },
		Convert: convertRecord,
	}
}

// convertRecord converts a record of format 1 to the current one. In format 1 events had
// no checksums, and the counters were in the bucket of the format version.
func convertRecord(bucket string, key, value []byte, put func(bucket string, key, value []byte)) error {
	switch bucket {
	case "meta":
		put(string(bucketCounters), key, value)
	case string(bucketLog):
		var batch []byte
		if err := eachPiece(value, 0, func(_, raw []byte) error {
			batch = appendEvent(batch, raw)
			return nil
		}); err != nil {
			return err
		}
		put(bucket, key, batch)
	default:
		put(bucket, key, value)
	}
	return nil
}

// damageName names the damaged part.
func damageName(host string, d *boltfile.DamageFinding) string {
	job := func(seq uint64) string { return "job " + roost.JobID{Seq: seq, Host: host}.String() }
	switch d.Bucket {
	case string(bucketJobs):
		first, last, some := jobRange(d)
		switch {
		case !some:
			return "jobs"
		case first == last:
			return job(first)
		case last == 0:
			return "all jobs from " + job(first) + " on"
		}
		return fmt.Sprintf("%s to %s", job(first), job(last))
	case string(bucketEvents):
		if first, last, some := jobRange(d); some && first == last {
			return "what happened to " + job(first)
		}
		return "what happened to jobs"
	case string(bucketLog):
		name := "the newest events"
		switch {
		case len(d.From) == 8 && !d.IsRange:
			name = fmt.Sprintf("batch %d of the newest events", binary.BigEndian.Uint64(d.From))
		case len(d.From) == 8 && len(d.To) == 8:
			return fmt.Sprintf("batches %d to %d of the newest events", binary.BigEndian.Uint64(d.From),
				binary.BigEndian.Uint64(d.To)-1)
		}
		if d.Corrected {
			return name
		}
		s := salvageBatch(d.Raw)
		var hit []string
		for _, seq := range s.corrected {
			hit = append(hit, job(seq))
		}
		if s.unknownLost {
			hit = append(hit, "an unknown job")
		}
		if len(hit) > 0 {
			name += ", an event of " + strings.Join(hit, ", ")
		}
		return name
	}
	return ""
}

// jobRange returns the range of jobs that a damage affects. If last is 0 the range has no
// end; some is false if the range is unknown.
func jobRange(d *boltfile.DamageFinding) (first, last uint64, some bool) {
	number := func(key []byte) uint64 {
		if len(key) < 8 {
			return 0
		}
		return binary.BigEndian.Uint64(key)
	}
	switch {
	case !d.IsRange:
		return number(d.From), number(d.From), true
	case d.From == nil && d.To == nil:
		return 0, 0, false
	}
	first, last = max(1, number(d.From)), number(d.To)
	if len(d.To) == 8 && last > first { // the end of the range is exclusive
		last--
	}
	return first, last, true
}
