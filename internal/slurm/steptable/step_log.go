package steptable

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Record is what is known of a step. It stands in the log of the job's steps, where the
// last one of a number counts.
type Record struct {
	Number     uint32 `json:"n"`
	Name       string `json:"name,omitempty"`
	Began      int64  `json:"began,omitempty"` // unix nanoseconds
	Ended      int64  `json:"ended,omitempty"` // 0: it runs
	Code       int32  `json:"code,omitempty"`
	Signal     int32  `json:"signal,omitempty"`
	End        string `json:"end,omitempty"` // "cancelled", "timeout" or "node_fail"
	Tasks      uint32 `json:"tasks,omitempty"`
	CPUs       uint32 `json:"cpus,omitempty"`
	Nodes      uint32 `json:"nodes,omitempty"`
	NodeList   string `json:"list,omitempty"`
	UserCPU    int64  `json:"user,omitempty"` // nanoseconds of all tasks
	SystemCPU  int64  `json:"system,omitempty"`
	MaxRSS     int64  `json:"rss,omitempty"` // bytes of its largest process
	MaxRSSTask uint32 `json:"rss_task,omitempty"`
	MaxRSSNode string `json:"rss_node,omitempty"`
	MinCPU     int64  `json:"cpu,omitempty"` // nanoseconds of the task with the least
	MinCPUTask uint32 `json:"cpu_task,omitempty"`
	MinCPUNode string `json:"cpu_node,omitempty"`
	SumRSS     int64  `json:"sum_rss,omitempty"` // bytes
}

// How a step can end other than by itself.
const (
	EndCancelled = "cancelled"
	EndTimeout   = "timeout"
	EndNodeFail  = "node_fail"
)

// Bounds of the log: of a line and of what is read, in bytes, and of the steps that are
// read.
const (
	maxLogLine = 4 << 10
	maxLog     = 8 << 20
	MaxRecords = 1000
)

// maxText bounds a text of a record, in bytes.
const maxText = 256

// Log adds a record to the log of a job's steps. One write is one line.
func Log(path string, r *Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// LogReader follows the log of a job's steps. The job's user may write what it likes
// there, so all is bounded and made printable.
type LogReader struct {
	Path string

	offset  int64
	rest    []byte
	records []Record // in the order of their first lines
	places  map[uint32]int
	changed map[int]bool
}

// Changed returns the records that are new or other than when it was called last.
func (r *LogReader) Changed() (list []Record) {
	r.read()
	for i := range r.records {
		if r.changed[i] {
			list = append(list, r.records[i])
		}
	}
	r.changed = nil
	return list
}

// All returns all records.
func (r *LogReader) All() []Record {
	r.read()
	r.changed = nil
	return r.records
}

// read takes in the lines that are new.
func (r *LogReader) read() {
	f, err := os.OpenFile(r.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= r.offset || r.offset >= maxLog {
		return
	}
	text, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, r.offset, maxLog), maxLog-r.offset))
	if err != nil {
		return
	}
	r.offset += int64(len(text))
	text = append(r.rest, text...)
	end := bytes.LastIndexByte(text, '\n') + 1
	if r.rest = text[end:]; len(r.rest) > maxLogLine {
		r.rest = nil
	}
	for line := range bytes.Lines(text[:end]) {
		var one Record
		if len(line) <= maxLogLine && json.Unmarshal(line, &one) == nil {
			r.add(one)
		}
	}
}

// add takes in one record.
func (r *LogReader) add(one Record) {
	for _, text := range []*string{&one.Name, &one.End, &one.NodeList, &one.MaxRSSNode, &one.MinCPUNode} {
		*text = Printable(*text)
	}
	at, known := r.places[one.Number]
	switch {
	case known:
		r.records[at] = one
	case len(r.records) >= MaxRecords:
		return
	default:
		if r.places == nil {
			r.places = map[uint32]int{}
		}
		at = len(r.records)
		r.places[one.Number] = at
		r.records = append(r.records, one)
	}
	if r.changed == nil {
		r.changed = map[int]bool{}
	}
	r.changed[at] = true
}

// Printable returns a text of a record that can be shown: it is short, and has no control
// characters.
func Printable(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
