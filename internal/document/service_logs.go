package document

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// ServiceLogs is how much captured output of the tasks of a service is kept.
type ServiceLogs struct {
	Size   int64   `json:"size_bytes"` // of a stream that is removed at once
	Files  int     `json:"files"`      // the most that stays, in units of Size
	Retain float64 `json:"keep"`       // in seconds
}

// ServiceLogsOf returns what the ad of a service says of its output. It is nil for a job
// that is none, and where the ad cannot be read.
func ServiceLogsOf(adText string) *ServiceLogs {
	ad, err := classad.Parse(adText)
	if err != nil || adText == "" {
		return nil
	}
	l, err := jobad.ReadLogs(ad)
	if l == nil || err != nil {
		return nil
	}
	return &ServiceLogs{int64(l.Size), l.Files, l.Retain.Seconds()}
}

// Text describes it in a line.
func (l *ServiceLogs) Text() string {
	return fmt.Sprintf("at most %v of a stream; of earlier attempts for %s", roost.Bytes(l.Size)*roost.Bytes(l.Files),
		SpanText(time.Duration(l.Retain*float64(time.Second))))
}
