package queue

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// Image is a checkpoint of a task: internal/wire's Image in Go.
type Image struct {
	Sequence uint64 // rises within a task
	Attempt  roost.Attempt
	Time     int64 // unix nanoseconds
	Size     int64 // bytes, as it travels
	Raw      int64 // bytes before compression
	MAC      []byte
	Work            // that is in it, of its attempt and of those that that one went on from
	Server   string // address of the checkpoint server that has it; empty: the schedd's own disk
	Node     string // that it was taken on
	Self     bool   // the program's own files, not an image of its processes
	Frozen   int64  // nanoseconds for which the task stood still
	Slot     bool   // of a slot user's processes
}

// Work is time that was spent, in nanoseconds.
type Work struct{ Wall, User, System int64 }

// saves is what is known of a task's checkpoints.
type saves struct {
	images  []Image // good ones, oldest first; at most keptImages
	last    uint64  // the highest sequence number that there was
	from    uint64  // of the image that the present or last attempt went on from; 0: it began from nothing
	base    Work    // that was in it
	spent   int64   // wall nanoseconds of base that do not count towards the walltime: it began anew with a retry
	frozen  bool    // the present attempt has been suspended, and may be still
	failure string  // why a checkpoint of the present attempt was not taken, the last time
	failed  int     // how often that was told
	quick   int     // attempts in a row that asked to be started again at once
}

// keptImages is how many images of a task are kept: the last one, and the one before, should the last one turn out to be bad.
const keptImages = 2

// image finds a good image by its number.
func (s *saves) image(sequence uint64) *Image {
	for i := range s.images {
		if s.images[i].Sequence == sequence {
			return &s.images[i]
		}
	}
	return nil
}

// newest is the image to go on from, nil for none.
func (r *record) newest() *Image {
	if r == nil || r.saves == nil || len(r.saves.images) == 0 {
		return nil
	}
	return &r.saves.images[len(r.saves.images)-1]
}

// saved is what is known of a task's checkpoints, to be written to.
func (r *record) saved() *saves {
	if r.saves == nil {
		r.saves = &saves{}
	}
	return r.saves
}

// Stored is an image as it lies on a disk.
type Stored struct {
	Task roost.TaskID
	Image
}

// drop lets an image go.
func (q *Queue) drop(j *job, i int, m Image) {
	q.dropped = append(q.dropped, Stored{j.id(q.host).Task(i), m})
}

// dropAll lets all images of a task go.
func (q *Queue) dropAll(j *job, i int) {
	r := j.book.written(i)
	if r == nil || r.saves == nil {
		return
	}
	for _, m := range r.saves.images {
		q.drop(j, i, m)
	}
	r.saves.images = nil
	if r.saves.from == 0 && r.saves.spent == 0 {
		r.saves = nil // nothing of it will be asked for again
	}
}

// TakeDropped drains the images that no attempt will go on from any more: they can be deleted when what has been decided is on disk.
func (q *Queue) TakeDropped() []Stored {
	out := q.dropped
	q.dropped = nil
	return out
}

// Images calls f with every good image.
func (q *Queue) Images(f func(Stored)) {
	for _, j := range q.jobs {
		if len(j.book.own.items) == 0 {
			continue
		}
		for i := range j.state {
			if r := j.book.written(i); r != nil && r.saves != nil {
				for _, m := range r.saves.images {
					f(Stored{j.id(q.host).Task(i), m})
				}
			}
		}
	}
}

// Text tells people which image it is.
func (m *Image) Text() string {
	s := fmt.Sprintf("checkpoint %d of attempt %d", m.Sequence, m.Attempt)
	if m.Node != "" {
		s += ", taken on " + m.Node
	}
	if m.Wall > 0 {
		s += fmt.Sprintf(", %v of work kept", time.Duration(m.Wall).Round(time.Second))
	}
	return s
}

func (m *Image) append(b []byte) []byte {
	b = number(b, 1, m.Sequence)
	b = number(b, 2, uint64(m.Attempt))
	b = number(b, 3, uint64(m.Time))
	b = number(b, 4, uint64(m.Size))
	b = number(b, 5, uint64(m.Raw))
	b = text(b, 6, string(m.MAC))
	b = m.Work.append(b, 7)
	b = text(b, 10, m.Server)
	b = text(b, 11, m.Node)
	b = truth(b, 12, m.Self)
	b = number(b, 13, uint64(m.Frozen))
	return truth(b, 14, m.Slot)
}

func (w Work) append(b []byte, first protowire.Number) []byte {
	b = number(b, first, uint64(w.Wall))
	b = number(b, first+1, uint64(w.User))
	return number(b, first+2, uint64(w.System))
}

func (w *Work) decode(f field, first protowire.Number) {
	switch f.number {
	case first:
		w.Wall = int64(f.value)
	case first + 1:
		w.User = int64(f.value)
	case first + 2:
		w.System = int64(f.value)
	}
}

func (m *Image) decode(b []byte) error {
	return fields(b, func(f field) error {
		switch f.number {
		case 1:
			m.Sequence = f.value
		case 2:
			m.Attempt = roost.Attempt(f.value)
		case 3:
			m.Time = int64(f.value)
		case 4:
			m.Size = int64(f.value)
		case 5:
			m.Raw = int64(f.value)
		case 6:
			m.MAC = append([]byte(nil), f.bytes...)
		case 10:
			m.Server = string(f.bytes)
		case 11:
			m.Node = string(f.bytes)
		case 12:
			m.Self = f.value != 0
		case 13:
			m.Frozen = int64(f.value)
		case 14:
			m.Slot = f.value != 0
		default:
			m.Work.decode(f, 7)
		}
		return nil
	})
}

func (s *saves) append(b []byte) []byte {
	for i := range s.images {
		b = message(b, 1, s.images[i].append)
	}
	b = number(b, 2, s.last)
	b = number(b, 3, s.from)
	b = s.base.append(b, 4)
	b = number(b, 7, uint64(s.spent))
	b = truth(b, 8, s.frozen)
	b = text(b, 9, s.failure)
	b = number(b, 10, uint64(s.failed))
	return number(b, 11, uint64(s.quick))
}

func (s *saves) decode(b []byte) error {
	err := fields(b, func(f field) error {
		switch f.number {
		case 1:
			var m Image
			err := m.decode(f.bytes)
			s.images = append(s.images, m)
			return err
		case 2:
			s.last = f.value
		case 3:
			s.from = f.value
		case 7:
			s.spent = int64(f.value)
		case 8:
			s.frozen = f.value != 0
		case 9:
			s.failure = string(f.bytes)
		case 10:
			s.failed = int(f.value)
		case 11:
			s.quick = int(f.value)
		default:
			s.base.decode(f, 4)
		}
		return nil
	})
	if err == nil && len(s.images) > keptImages {
		err = fmt.Errorf("%d images of one task", len(s.images))
	}
	return err
}
