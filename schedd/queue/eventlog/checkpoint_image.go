package eventlog

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// CheckpointImage is a checkpoint of a task: internal/wire's Image in Go.
type CheckpointImage struct {
	Sequence       uint64 // rises within a task
	Attempt        roost.AttemptNumber
	Time           int64 // unix nanoseconds
	Size           int64 // bytes, as it travels
	RawSize        int64 // bytes before compression
	MAC            []byte
	CPUUsage              // that is in it, of its attempt and of those that that one went on from
	Server         string // address of the checkpoint server that has it; empty: the schedd's own disk
	Node           string // that it was taken on
	SelfCheckpoint bool   // the program's own files, not an image of its processes
	Frozen         int64  // nanoseconds for which the task stood still
	SlotUser       bool   // of a slot user's processes
	// the epoch of its gang that it is a part of; 0: its task is saved alone
	Epoch uint64
}

// CPUUsage is time that was spent, in nanoseconds.
type CPUUsage struct{ Wall, User, System int64 }

// CheckpointRecord is what is known of a task's checkpoints.
type CheckpointRecord struct {
	Images       []CheckpointImage // good ones, oldest first; at most MaxImages
	LastSequence uint64            // the highest sequence number that there was
	// of the image that the present or last attempt went on from; 0: it began from
	// nothing
	OriginSequence uint64
	OriginUsage    CPUUsage // that was in it
	// wall nanoseconds of base that do not count towards the walltime: it began anew with
	// a retry
	UncountedWall int64
	Frozen        bool   // the present attempt has been suspended, and may be still
	LastFailure   string // why a checkpoint of the present attempt was not taken, the last time
	Failures      int    // how often that was told
	QuickRestarts int    // attempts in a row that asked to be started again at once
	// attempts that could not be restored from the newest image
	RestoreFailures int
	// an image of the present or last attempt, which counts when all of its gang have one
	Staged      *CheckpointImage
	OriginEpoch uint64 // of the image that the present or last attempt went on from
}

// MaxImages is how many images of a task are stored. The second is for when the last one
// turns out to be bad.
const MaxImages = 2

// FindImage finds a good image by its number.
func (s *CheckpointRecord) FindImage(sequence uint64) *CheckpointImage {
	for i := range s.Images {
		if s.Images[i].Sequence == sequence {
			return &s.Images[i]
		}
	}
	return nil
}

// OriginBefore is the epoch that the attempt which makes an epoch went on from; 0 for
// nothing. A job that was altered meanwhile counts its epochs anew, and has none before.
func (s *CheckpointRecord) OriginBefore(epoch uint64) uint64 {
	if s.OriginEpoch >= epoch {
		return 0
	}
	return s.OriginEpoch
}

// Describe tells people which image it is.
func (m *CheckpointImage) Describe() string {
	s := fmt.Sprintf("checkpoint %d of attempt %d", m.Sequence, m.Attempt)
	if m.Node != "" {
		s += ", taken on " + m.Node
	}
	if m.Wall > 0 {
		s += fmt.Sprintf(", %v of work kept", time.Duration(m.Wall).Round(time.Second))
	}
	return s
}

func (m *CheckpointImage) append(b []byte) []byte {
	b = appendNumber(b, 1, m.Sequence)
	b = appendNumber(b, 2, uint64(m.Attempt))
	b = appendNumber(b, 3, uint64(m.Time))
	b = appendNumber(b, 4, uint64(m.Size))
	b = appendNumber(b, 5, uint64(m.RawSize))
	b = appendText(b, 6, string(m.MAC))
	b = m.CPUUsage.append(b, 7)
	b = appendText(b, 10, m.Server)
	b = appendText(b, 11, m.Node)
	b = appendBool(b, 12, m.SelfCheckpoint)
	b = appendNumber(b, 13, uint64(m.Frozen))
	return appendNumber(appendBool(b, 14, m.SlotUser), 15, m.Epoch)
}

func (w CPUUsage) append(b []byte, first protowire.Number) []byte {
	b = appendNumber(b, first, uint64(w.Wall))
	b = appendNumber(b, first+1, uint64(w.User))
	return appendNumber(b, first+2, uint64(w.System))
}

func (w *CPUUsage) decode(f encodedField, first protowire.Number) {
	switch f.number {
	case first:
		w.Wall = int64(f.value)
	case first + 1:
		w.User = int64(f.value)
	case first + 2:
		w.System = int64(f.value)
	}
}

func (m *CheckpointImage) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			m.Sequence = f.value
		case 2:
			m.Attempt = roost.AttemptNumber(f.value)
		case 3:
			m.Time = int64(f.value)
		case 4:
			m.Size = int64(f.value)
		case 5:
			m.RawSize = int64(f.value)
		case 6:
			m.MAC = append([]byte(nil), f.bytes...)
		case 10:
			m.Server = string(f.bytes)
		case 11:
			m.Node = string(f.bytes)
		case 12:
			m.SelfCheckpoint = f.value != 0
		case 13:
			m.Frozen = int64(f.value)
		case 14:
			m.SlotUser = f.value != 0
		case 15:
			m.Epoch = f.value
		default:
			m.CPUUsage.decode(f, 7)
		}
		return nil
	})
}

func (s *CheckpointRecord) append(b []byte) []byte {
	for i := range s.Images {
		b = appendMessage(b, 1, s.Images[i].append)
	}
	b = appendNumber(b, 2, s.LastSequence)
	b = appendNumber(b, 3, s.OriginSequence)
	b = s.OriginUsage.append(b, 4)
	b = appendNumber(b, 7, uint64(s.UncountedWall))
	b = appendBool(b, 8, s.Frozen)
	b = appendText(b, 9, s.LastFailure)
	b = appendNumber(b, 10, uint64(s.Failures))
	b = appendNumber(b, 11, uint64(s.QuickRestarts))
	b = appendNumber(b, 12, uint64(s.RestoreFailures))
	if s.Staged != nil {
		b = appendMessage(b, 13, s.Staged.append)
	}
	return appendNumber(b, 14, s.OriginEpoch)
}

func (s *CheckpointRecord) decode(b []byte) error {
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			var m CheckpointImage
			err := m.decode(f.bytes)
			s.Images = append(s.Images, m)
			return err
		case 2:
			s.LastSequence = f.value
		case 3:
			s.OriginSequence = f.value
		case 7:
			s.UncountedWall = int64(f.value)
		case 8:
			s.Frozen = f.value != 0
		case 9:
			s.LastFailure = string(f.bytes)
		case 10:
			s.Failures = int(f.value)
		case 11:
			s.QuickRestarts = int(f.value)
		case 12:
			s.RestoreFailures = int(f.value)
		case 13:
			s.Staged = &CheckpointImage{}
			return s.Staged.decode(f.bytes)
		case 14:
			s.OriginEpoch = f.value
		default:
			s.OriginUsage.decode(f, 4)
		}
		return nil
	})
	if err == nil && len(s.Images) > MaxImages {
		err = fmt.Errorf("%d images of one task", len(s.Images))
	}
	return err
}
