package document

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// GangEpoch is the saved work of a gang whose tasks save their state together. Epochs are
// numbered from 1.
type GangEpoch struct {
	Gang        uint32  `json:"gang"`  // its number in the job, from 0
	Epoch       uint64  `json:"epoch"` // the last one that was committed; 0: none
	Committed   string  `json:"committed,omitempty"`
	Size        int64   `json:"size_bytes"`   // of its images together
	Tasks       uint32  `json:"tasks"`        // that have an image of it
	Work        float64 `json:"work_seconds"` // that the image of one task holds at most
	From        uint64  `json:"from"`         // the epoch that it was made from; 0: from the beginning
	Usable      bool    `json:"usable"`       // the next attempts go on from it
	RunningFrom uint64  `json:"running_from"` // the epoch that the present attempts went on from
	Running     uint32  `json:"running"`      // tasks with a present attempt
	Open        uint32  `json:"open"`         // tasks that have not ended for good
	Staged      uint32  `json:"staged"`       // of these, how many have their files home for the next epoch
	Failed      bool    `json:"failed"`       // one of them has ended without files: the next epoch is of later attempts
}

// gangEpochsOf returns the saved work of the gangs of a job.
func gangEpochsOf(s *scheddapi.JobStatus) (list []GangEpoch) {
	for _, g := range s.GetEpochs() {
		list = append(list, GangEpochOf(g))
	}
	return list
}

// GangEpochOf returns the document of the saved work of a gang.
func GangEpochOf(g *scheddapi.GangEpoch) GangEpoch {
	return GangEpoch{Gang: g.GetGang(), Epoch: g.GetLast(), Committed: Timestamp(g.GetTime()), Size: g.GetSize(),
		Tasks: g.GetTasks(), Work: time.Duration(g.GetWork()).Seconds(), From: g.GetFrom(),
		Usable: g.GetSaved() > 0, RunningFrom: g.GetOrigin(), Running: g.GetLive(), Open: g.GetOpen(),
		Staged: g.GetStaged(), Failed: g.GetFailed()}
}

// Text says in a line what is saved. When is how long ago or at what time that was.
func (g *GangEpoch) Text(when string) string {
	text := "no epoch is saved yet"
	if g.Epoch > 0 {
		text = fmt.Sprintf("epoch %d, saved %s", g.Epoch, when)
		if g.Tasks > 0 { // a release before this one does not record the rest
			text += fmt.Sprintf(": %v of %s, %s of work, from %s", roost.Bytes(g.Size), Plural(int(g.Tasks), "task"),
				SpanText(time.Duration(g.Work*float64(time.Second))), epochName(g.From))
		}
		if !g.Usable {
			text += "; it is of no use any more, and the gang begins from nothing"
		}
	}
	if g.Running == 0 {
		return text
	}
	text += "; what runs went on from " + epochName(g.RunningFrom)
	switch {
	case g.Failed:
		text += ", and saves no epoch, as one of its tasks has ended without its files"
	case g.Staged > 0:
		text += fmt.Sprintf(", and for epoch %d the files of %d of %s are home", g.Epoch+1, g.Staged,
			Plural(int(g.Open), "task"))
	}
	return text
}

func epochName(epoch uint64) string {
	if epoch == 0 {
		return "the beginning"
	}
	return fmt.Sprintf("epoch %d", epoch)
}

// EpochNote names the saved epochs of a job in a few words; empty if there are none.
func EpochNote(s *scheddapi.JobStatus) string {
	low, high := uint64(0), uint64(0)
	for i, g := range s.GetEpochs() {
		n := g.GetSaved()
		if i == 0 {
			low = n
		}
		low, high = min(low, n), max(high, n)
	}
	switch {
	case high == 0:
		return ""
	case low == high:
		return fmt.Sprintf("epoch %d", high)
	}
	return fmt.Sprintf("epochs %d to %d", low, high)
}
