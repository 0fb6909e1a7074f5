package document

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// CheckpointTimeline is what became of the work of a task, by its images. For it and for
// each attempt, Useful + Lost + Unsaved = Wall.
type CheckpointTimeline struct {
	Version  int               `json:"v"`
	ID       string            `json:"id"`
	State    string            `json:"state"`
	Wall     float64           `json:"wall_seconds"`    // of all attempts
	Useful   float64           `json:"useful_seconds"`  // that its results or its newest good image hold
	Lost     float64           `json:"lost_seconds"`    // of ended attempts
	Unsaved  float64           `json:"unsaved_seconds"` // of a running attempt, since its newest image
	Saved    float64           `json:"saved_seconds"`   // that attempts had not to repeat
	Frozen   float64           `json:"frozen_seconds"`  // for which images stopped it
	Restores int               `json:"restores"`
	Images   []TimelineImage   `json:"images"`            // oldest first
	Attempts []TimelineAttempt `json:"attempts"`          // oldest first
	Partial  bool              `json:"partial,omitempty"` // the oldest events are left out

	byNumber map[uint32]int      // index in Attempts
	origins  map[uint32]imageID  // what attempts went on from
	staged   *scheddapi.JobEvent // an image that counts when its gang is saved; nil: there is none
	fresh    uint32              // no attempt goes on from images of attempts before this one
}

// imageID identifies an image of a task, with the work that it holds.
type imageID struct {
	sequence uint64
	attempt  uint32
	wall     float64
}

// TimelineImage is one checkpoint.
type TimelineImage struct {
	Sequence uint64  `json:"sequence"`
	Attempt  uint32  `json:"attempt"` // that it was taken of
	Time     string  `json:"time"`
	Node     string  `json:"node,omitempty"`
	Method   string  `json:"method"` // image, of the processes; or self, of the program's own files
	Size     int64   `json:"size_bytes"`
	RawSize  int64   `json:"raw_bytes"` // before compression
	Frozen   float64 `json:"frozen_seconds"`
	Wall     float64 `json:"wall_seconds"` // of work that it holds, that of attempts before its own included
	Restores int     `json:"restores"`
	Saved    float64 `json:"saved_seconds"`
	Bad      string  `json:"bad,omitempty"` // why it cannot be used
	failures int     // attempts that could not be restored from it
	failure  string  // of the last of them
}

// TimelineAttempt is one execution of the task.
type TimelineAttempt struct {
	Attempt uint32  `json:"attempt"`
	Node    string  `json:"node,omitempty"`
	Started string  `json:"started,omitempty"`
	Ended   string  `json:"ended,omitempty"`
	Ending  string  `json:"ending,omitempty"`
	From    uint64  `json:"from,omitempty"` // sequence of the image that it went on from
	Wall    float64 `json:"wall_seconds"`
	Useful  float64 `json:"useful_seconds"`
	Lost    float64 `json:"lost_seconds"`
	Unsaved float64 `json:"unsaved_seconds,omitempty"`

	started  int64
	hasEnded bool
	hasLeft  bool // its program ended by itself
}

// CheckpointTimelineOf returns the timeline of a task from its row and its events, which
// are in their order. Events of the chunks of a gang behind the first are left out.
func CheckpointTimelineOf(row *scheddapi.JobStatus, events []*scheddapi.JobEvent, now time.Time) CheckpointTimeline {
	t := CheckpointTimeline{Version: Version, ID: row.GetId(), State: StateOf(row), Images: []TimelineImage{},
		Attempts: []TimelineAttempt{}, byNumber: map[uint32]int{}, origins: map[uint32]imageID{}}
	for _, e := range events {
		switch {
		case e.GetAttempt() != 0 && e.GetChunk() == 0:
			t.addEvent(e)
		case e.GetWhat() == "gang-saved" && t.staged != nil: // all of its gang have saved their state
			t.addImage(t.staged)
			t.staged = nil
		case e.GetWhat() == "retried" && len(t.Attempts) > 0: // it begins anew
			t.fresh = t.Attempts[len(t.Attempts)-1].Attempt + 1
		}
	}
	if n := len(t.Attempts); n > 0 {
		if a := &t.Attempts[n-1]; !a.hasEnded && a.started != 0 {
			a.Wall = max(now.Sub(TimeOfNanos(a.started)).Seconds(), 0)
			if wall := row.GetUsage().GetWall(); row.GetAttempt() == a.Attempt && wall > 0 {
				a.Wall = seconds(wall) // the node's clock counts
			}
		}
	}
	t.countUseful(IsFinal(row))
	t.sum()
	return t
}

func seconds(ns int64) float64 { return max(time.Duration(ns).Seconds(), 0) }

// attempt returns the attempt of that number, the last one if it is new.
func (t *CheckpointTimeline) attempt(number uint32) *TimelineAttempt {
	at, known := t.byNumber[number]
	if !known {
		at = len(t.Attempts)
		t.byNumber[number] = at
		t.Attempts = append(t.Attempts, TimelineAttempt{Attempt: number})
	}
	return &t.Attempts[at]
}

func (t *CheckpointTimeline) addEvent(e *scheddapi.JobEvent) {
	m := e.GetImage()
	if e.GetWhat() == "assigned" {
		t.staged = nil
	}
	switch what := e.GetWhat(); {
	case what == "checkpoint-bad":
		t.markBad(m.GetSequence(), e.GetText())
		return
	case what == "checkpointed" && m != nil:
		t.addImage(e)
	case what == "staged" && m != nil:
		t.staged = e
	case what == "assigned" && m != nil:
		t.rejectFailedAfter(m.GetSequence())
		t.origins[e.GetAttempt()] = imageID{m.GetSequence(), m.GetAttempt(), seconds(m.GetWall())}
		t.attempt(e.GetAttempt()).From = m.GetSequence()
	case what == "assigned":
		t.rejectFailedAfter(0)
		t.fresh = e.GetAttempt()
	case startOf(e) != 0 && t.attempt(e.GetAttempt()).started == 0:
		a := t.attempt(e.GetAttempt())
		a.started, a.Started = startOf(e), Timestamp(startOf(e))
		t.countRestore(e.GetAttempt())
	case what == "lost":
		a := t.attempt(e.GetAttempt())
		a.hasEnded, a.Ended, a.Ending = true, Timestamp(e.GetTime()), e.GetText()
		if a.started != 0 { // its node has told nothing: the schedd's clock is the best there is
			a.Wall = seconds(e.GetTime() - a.started)
		}
	}
	a := t.attempt(e.GetAttempt())
	if e.GetNode() != "" {
		a.Node = e.GetNode()
	}
	if x := e.GetExit(); x != nil {
		a.hasEnded, a.Ended, a.Ending, a.Wall = true, Timestamp(e.GetTime()), EndText(x), seconds(x.GetWall())
		a.hasLeft = x.GetCause() == scheddapi.Cause_CAUSE_EXITED
		if x.GetCause() == scheddapi.Cause_CAUSE_RESTORE {
			t.countFailedRestore(a.From, a.Ending)
		}
	}
}

func (t *CheckpointTimeline) addImage(e *scheddapi.JobEvent) {
	m := e.GetImage()
	one := TimelineImage{Sequence: m.GetSequence(), Attempt: e.GetAttempt(), Time: Timestamp(m.GetTime()),
		Node: t.attempt(e.GetAttempt()).Node, Method: "image", Size: m.GetSize(), RawSize: m.GetRawSize(),
		Frozen: seconds(m.GetFrozen()), Wall: seconds(m.GetWall())}
	if m.GetSelf() {
		one.Method = "self"
	}
	t.Images = append(t.Images, one)
}

// image returns the newest image of that sequence; nil for none.
func (t *CheckpointTimeline) image(sequence uint64) *TimelineImage {
	for i := range slices.Backward(t.Images) {
		if t.Images[i].Sequence == sequence {
			return &t.Images[i]
		}
	}
	return nil
}

func (t *CheckpointTimeline) markBad(sequence uint64, reason string) {
	if m := t.image(sequence); m != nil {
		if m.Bad = reason; reason == "" {
			m.Bad = "it could not be used"
		}
	}
}

// countFailedRestore counts that an attempt could not be restored from an image. After
// checkpoint.MaxRestoreFailures of them no other attempt will try it.
func (t *CheckpointTimeline) countFailedRestore(sequence uint64, reason string) {
	if m := t.image(sequence); m != nil {
		m.failure = reason
		if m.failures++; m.failures >= checkpoint.MaxRestoreFailures {
			t.markBad(sequence, reason)
		}
	}
}

// rejectFailedAfter marks the images that an attempt has passed over for an earlier one.
// Earlier releases did that after one failure.
func (t *CheckpointTimeline) rejectFailedAfter(sequence uint64) {
	for _, m := range t.Images {
		if m.Sequence > sequence && m.failures > 0 && m.Bad == "" {
			t.markBad(m.Sequence, m.failure)
		}
	}
}

// countRestore counts that an attempt runs with the work of the image that it went on
// from.
func (t *CheckpointTimeline) countRestore(attempt uint32) {
	origin, there := t.origins[attempt]
	if !there {
		return
	}
	t.Restores++
	t.Saved += origin.wall
	if m := t.image(origin.sequence); m != nil {
		m.Restores, m.Saved = m.Restores+1, m.Saved+origin.wall
	}
}

// countUseful divides the wall time of each attempt. It follows the images backward from
// what counts in the end: the results of the last attempt, or the image that the next
// attempt will go on from. Work that no image of this chain holds was lost.
func (t *CheckpointTimeline) countUseful(isFinal bool) {
	if len(t.Attempts) == 0 {
		return
	}
	last := &t.Attempts[len(t.Attempts)-1]
	head, found := t.newestGood()
	switch {
	case last.hasLeft && isFinal:
		last.Useful = last.Wall
		head, found = t.origins[last.Attempt]
	case !last.hasEnded && head.attempt != last.Attempt:
		head, found = t.origins[last.Attempt]
	}
	for limit := last.Attempt + 1; found && head.attempt < limit; { // numbers fall, so it ends
		limit = head.attempt
		origin, hasOrigin := t.origins[head.attempt]
		if at, known := t.byNumber[head.attempt]; known {
			a := &t.Attempts[at]
			a.Useful = min(max(head.wall-origin.wall, 0), a.Wall)
		}
		head, found = origin, hasOrigin
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		a.Lost = a.Wall - a.Useful
	}
	if !last.hasEnded {
		last.Lost, last.Unsaved = 0, last.Lost
	}
}

// newestGood returns the image that the next attempt will go on from; false for none.
func (t *CheckpointTimeline) newestGood() (imageID, bool) {
	for i := range slices.Backward(t.Images) {
		m := &t.Images[i]
		if m.Attempt < t.fresh {
			break
		}
		if m.Bad == "" {
			return imageID{m.Sequence, m.Attempt, m.Wall}, true
		}
	}
	return imageID{}, false
}

func (t *CheckpointTimeline) sum() {
	for i := range t.Attempts {
		a := &t.Attempts[i]
		t.Wall, t.Useful, t.Lost, t.Unsaved = t.Wall+a.Wall, t.Useful+a.Useful, t.Lost+a.Lost, t.Unsaved+a.Unsaved
	}
	for i := range t.Images {
		t.Frozen += t.Images[i].Frozen
	}
}

// Summary is the timeline in one line; empty for a task without images.
func (t *CheckpointTimeline) Summary() string {
	if len(t.Images) == 0 {
		return ""
	}
	span := func(s float64) string { return SpanText(time.Duration(s * float64(time.Second))) }
	text := fmt.Sprintf("%s: %s useful, %s lost", span(t.Wall), span(t.Useful), span(t.Lost))
	if t.Unsaved > 0 {
		text += fmt.Sprintf(", %s not saved yet", span(t.Unsaved))
	}
	return text + fmt.Sprintf("; %s, %s", Plural(len(t.Images), "checkpoint"), Plural(t.Restores, "restore"))
}
