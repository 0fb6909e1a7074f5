package eventlog

import "fmt"

// GangEpoch is what is saved of a gang whose tasks save their own state together. Epochs
// of a gang are numbered from 1, and From < Last unless both are 0. Saved is Last, or 0
// once that is of no use.
type GangEpoch struct {
	Gang   int    // its number in the job
	Saved  uint64 // the epoch that the next attempts go on from; 0: there is none
	Last   uint64 // the highest epoch that was ever committed
	Time   int64  // when Last was committed, unix nanoseconds
	Failed bool   // one of the present attempts has ended without an image, so they make no epoch
	// The rest tells of Last. It is 0 if an earlier release committed it.
	Size  int64  // of its images together, bytes
	Tasks int    // that have an image of it
	Work  int64  // that the image of one task holds at most, nanoseconds
	From  uint64 // the epoch that the attempts which saved it went on from; 0: from nothing
}

func (g *GangEpoch) append(b []byte) []byte {
	b = appendNumber(appendNumber(b, 1, uint64(g.Gang)), 2, g.Saved)
	b = appendNumber(appendNumber(b, 3, g.Last), 4, uint64(g.Time))
	b = appendNumber(appendBool(b, 5, g.Failed), 6, uint64(g.Size))
	b = appendNumber(appendNumber(b, 7, uint64(g.Tasks)), 8, uint64(g.Work))
	return appendNumber(b, 9, g.From)
}

// decode reads an epoch of a gang of a job with so many tasks.
func (g *GangEpoch) decode(b []byte, tasks int) error {
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			g.Gang = int(f.value)
		case 2:
			g.Saved = f.value
		case 3:
			g.Last = f.value
		case 4:
			g.Time = int64(f.value)
		case 5:
			g.Failed = f.value != 0
		case 6:
			g.Size = int64(f.value)
		case 7:
			g.Tasks = int(f.value)
		case 8:
			g.Work = int64(f.value)
		case 9:
			g.From = f.value
		}
		return nil
	})
	if err == nil && (g.Gang < 0 || g.Gang >= tasks || g.Saved > g.Last || g.From > 0 && g.From >= g.Last) {
		err = fmt.Errorf("epoch %d of %d of gang %d, in a job of %d tasks", g.Saved, g.Last, g.Gang, tasks)
	}
	return err
}
