package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// Job is one line of a log. Unknown values are -1. Times are in seconds.
type Job struct {
	Line                int   // line in the log, from 1; 0: not from a log
	ID                  int64 // field 1
	Submit              int64 // field 2: submission, since the start of the log
	Wait                int64 // field 3: wait
	RunTime             int64 // field 4: run time
	Processors          int64 // field 5: processors allocated
	CPU                 int64 // field 6: mean CPU time used on each processor, rounded down
	Memory              int64 // field 7: mean memory used on each processor, in KiB, rounded down
	RequestedProcessors int64 // field 8: processors requested
	RequestedTime       int64 // field 9: run time requested
	RequestedMemory     int64 // field 10: memory requested on each processor, in KiB
	Status              int64 // field 11: 1 completed, 0 failed, 5 cancelled
	User                int64 // field 12
	Group               int64 // field 13
	Program             int64 // field 14
	Queue               int64 // field 15
	Partition           int64 // field 16
	PrecedingJob        int64 // field 17: id of the job that it depends on
	ThinkTime           int64 // field 18: from the end of PrecedingJob to the submission
}

// HeaderField is a field of a log's header.
type HeaderField struct{ Name, Value string }

// Log is a log with its jobs in the order of the lines.
type Log struct {
	Headers []HeaderField
	Jobs    []Job
}

// fieldCount is the number of fields in a line.
const fieldCount = 18

// maxLine bounds a line, in bytes.
const maxLine = 1 << 20

// Read reads a log. An error has the line. Duplicate job numbers are no error, since
// archives have them.
func Read(r io.Reader) (*Log, error) {
	log := &Log{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if comment, ok := strings.CutPrefix(text, ";"); ok {
			if h, ok := parseHeader(comment); ok && len(log.Jobs) == 0 {
				log.Headers = append(log.Headers, h)
			}
			continue
		}
		job, err := parseJob(text)
		if err != nil {
			if !lines.Scan() && lines.Err() != nil { // the line is the rest of a truncated one
				n--
				break
			}
			return nil, fmt.Errorf("line %d: %w: %w", n, roost.Invalid, err)
		}
		job.Line = n
		log.Jobs = append(log.Jobs, job)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: %w: it is longer than %d bytes; is this a log of jobs?", n+1,
			roost.Invalid, maxLine)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("after line %d: %w: the file is cut off", n, roost.Invalid)
	case err != nil:
		return nil, fmt.Errorf("after line %d: %w", n, err)
	case len(log.Jobs) == 0:
		return nil, fmt.Errorf("%w: it has no jobs, of %d lines", roost.Invalid, n)
	}
	return log, nil
}

// parseHeader splits a comment like "MaxProcs: 100".
func parseHeader(comment string) (HeaderField, bool) {
	name, value, ok := strings.Cut(comment, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	return HeaderField{name, value}, ok && name != "" && !strings.ContainsAny(name, " \t")
}

// Header returns the last value of a header field, "" if there is none.
func (l *Log) Header(name string) (value string) {
	for _, h := range l.Headers {
		if strings.EqualFold(h.Name, name) {
			value = h.Value
		}
	}
	return value
}

// Processors returns the number of processors of the machine, from the header.
func (l *Log) Processors() (int64, error) {
	text := l.Header("MaxProcs")
	if text == "" {
		return 0, fmt.Errorf("header: %w: no line says \"; MaxProcs: N\"", roost.NotFound)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxProcs {
		return 0, fmt.Errorf("header: MaxProcs: %w: %q is no number of processors", roost.Invalid, text)
	}
	return n, nil
}

// maxProcs and maxSeconds are more than any real machine or job has.
const (
	maxProcs   = 1 << 30
	maxSeconds = 1 << 32
)

// fields returns pointers to the fields in order.
func (j *Job) fields() [fieldCount]*int64 {
	return [fieldCount]*int64{
		&j.ID, &j.Submit, &j.Wait, &j.RunTime, &j.Processors, &j.CPU, &j.Memory, &j.RequestedProcessors,
		&j.RequestedTime, &j.RequestedMemory, &j.Status, &j.User, &j.Group, &j.Program,
		&j.Queue, &j.Partition, &j.PrecedingJob, &j.ThinkTime,
	}
}

func parseJob(text string) (j Job, err error) {
	n, place := 0, j.fields()
	for word := range strings.FieldsSeq(text) {
		if n < fieldCount {
			if *place[n], err = parseNumber(word); err != nil {
				return j, fmt.Errorf("field %d: %w", n+1, err)
			}
		}
		n++
	}
	if n != fieldCount {
		return j, fmt.Errorf("it has %d fields, want %d", n, fieldCount)
	}
	for i, name := range [...]string{"a job's number", "the time of submission"} {
		if *place[i] < 0 {
			return j, fmt.Errorf("field %d: %s cannot be %d", i+1, name, *place[i])
		}
	}
	for _, p := range []struct {
		field int
		most  int64
		name  string
	}{{2, maxSeconds, "a time"}, {4, maxSeconds, "a time"}, {5, maxProcs, "a number of processors"},
		{8, maxProcs, "a number of processors"}, {9, maxSeconds, "a time"}} {
		if v := *place[p.field-1]; v > p.most {
			return j, fmt.Errorf("field %d: %d is too much for %s", p.field, v, p.name)
		}
	}
	return j, nil
}

// parseNumber reads an integer. Some logs have means with a fraction, which is cut off.
func parseNumber(word string) (int64, error) {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(word, 64)
	if err != nil || f != f || f < -1 || f > 1<<62 {
		return 0, fmt.Errorf("%q is no number", word)
	}
	return int64(f), nil
}

// Write writes a log.
func (l *Log) Write(w io.Writer) error {
	out := NewWriter(w)
	for _, h := range l.Headers {
		out.WriteHeader(h)
	}
	for i := range l.Jobs {
		out.WriteJob(&l.Jobs[i])
	}
	return out.Flush()
}

// Writer writes a log line by line. Its errors are those of Flush.
type Writer struct {
	out  *bufio.Writer
	line []byte
}

// NewWriter returns a Writer. The header fields come before the jobs.
func NewWriter(w io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(w, 64<<10)} }

// WriteHeader writes a header field. It is one line, so that line ends in it become
// blanks.
func (w *Writer) WriteHeader(h HeaderField) {
	value := strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(h.Value)
	fmt.Fprintf(w.out, "; %s: %s\n", h.Name, value)
}

// WriteJob writes a job. An error of the underlying writer comes now or from Flush.
func (w *Writer) WriteJob(j *Job) error {
	line := w.line[:0]
	for k, p := range j.fields() {
		if k > 0 {
			line = append(line, ' ')
		}
		line = strconv.AppendInt(line, *p, 10)
	}
	w.line = append(line, '\n')
	_, err := w.out.Write(w.line)
	return err
}

// Flush writes what is left.
func (w *Writer) Flush() error { return w.out.Flush() }
