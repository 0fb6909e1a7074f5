package codec

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// formatVersion is the version of the form. A program refuses entries of a later one.
const formatVersion = 1

// The kinds of entries. The numbers are on disk.
const (
	kindJob = iota + 1
	kindAttempt
	kindAction
	kindUsage
)

// fieldMonth is the month of a job, in entries of other kinds than those of the job
// itself. There it follows from when the job was submitted.
const fieldMonth = 30

// MaxEntry bounds an entry in bytes. The texts of an entry are cut to maxText.
const (
	MaxEntry = 64 << 10
	maxText  = 4 << 10
)

// AppendEntry adds the form of an entry to b. Texts that are longer than 4 KiB are cut.
func AppendEntry(b []byte, e *accounting.FeedEntry) []byte {
	switch {
	case e.Job != nil:
		return appendJob(append(b, formatVersion, kindJob), e.Job)
	case e.Attempt != nil:
		return appendAttempt(append(b, formatVersion, kindAttempt), e.Attempt)
	case e.Action != nil:
		return appendAction(append(b, formatVersion, kindAction), e.Action)
	case e.Usage != nil:
		return appendUsage(append(b, formatVersion, kindUsage), e.Usage)
	}
	panic("accounting: an entry of nothing")
}

// Origin is what all entries of a feed have in common.
type Origin struct {
	Source accounting.SourceID
	Host   string // of the schedd
}

// DecodeEntry reads what AppendEntry wrote.
func DecodeEntry(b []byte, number uint64, from Origin) (e accounting.FeedEntry, err error) {
	e.Number = number
	switch {
	case len(b) < 2 || len(b) > MaxEntry:
		return e, fmt.Errorf("entry %d of a feed: %w: it has %d bytes", number, roost.Invalid, len(b))
	case b[0] != formatVersion:
		return e, fmt.Errorf("entry %d of a feed: %w: its format is %d, and this program knows %d: a newer version "+
			"of Roost wrote it, and is needed to read it", number, roost.BadConfig, b[0], formatVersion)
	}
	switch body := b[2:]; b[1] {
	case kindJob:
		e.Job = &accounting.JobEntry{JobKey: accounting.JobKey{Source: from.Source}, Host: from.Host}
		err = decodeJob(body, e.Job)
		e.Job.Month = accounting.MonthOf(e.Job.Submitted)
	case kindAttempt:
		e.Attempt = &accounting.AttemptEntry{}
		e.Attempt.Source = from.Source
		err = decodeAttempt(body, e.Attempt)
	case kindAction:
		e.Action = &accounting.JobAction{JobKey: accounting.JobKey{Source: from.Source}}
		err = decodeAction(body, e.Action)
	case kindUsage:
		e.Usage = &accounting.UsageHour{}
		e.Usage.Source = from.Source
		err = decodeUsage(body, e.Usage)
	default:
		err = fmt.Errorf("its kind is %d", b[1])
	}
	if err != nil {
		return e, fmt.Errorf("entry %d of a feed: %w: %w", number, roost.Invalid, err)
	}
	return e, nil
}

// cutText bounds a text that came from a user or a node. Databases refuse a text with a
// zero byte, or one that is not UTF-8.
func cutText(s string) string {
	s = s[:min(len(s), maxText)]
	if strings.Contains(s, "\x00") {
		s = strings.ReplaceAll(s, "\x00", "?")
	}
	return strings.ToValidUTF8(s, "?")
}

func appendAction(b []byte, a *accounting.JobAction) []byte {
	b = appendNumber(appendNumber(b, 1, a.Seq), 2, a.Time)
	b = appendNumber(b, 3, a.Index+1)
	b = appendText(appendText(b, 4, cutText(a.What)), 5, cutText(a.By))
	return appendNumber(appendText(b, 6, cutText(a.Reason)), fieldMonth, a.Month)
}

func decodeAction(b []byte, a *accounting.JobAction) error {
	a.Index = -1
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			a.Seq = f.value
		case 2:
			a.Time = accounting.Millis(f.value)
		case 3:
			return decodeIndex(f.value, 1, &a.Index)
		case 4:
			a.What = string(f.bytes)
		case 5:
			a.By = string(f.bytes)
		case 6:
			a.Reason = string(f.bytes)
		case fieldMonth:
			a.Month = accounting.Month(f.value)
		}
		return nil
	})
}

// decodeIndex reads the index of a task, to which an offset was added.
func decodeIndex(value uint64, offset int, to *int) error {
	if value > roost.MaxTasks {
		return fmt.Errorf("task %d of at most %d", value, roost.MaxTasks)
	}
	*to = int(value) - offset
	return nil
}
