package sacct

import (
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/linetext"
)

// Options says how values are written.
type Options struct {
	Cluster   string         // name of the cluster; empty: the node of the job's schedd
	Location  *time.Location // of times
	UnixTimes bool           // times are seconds since 1970
}

// Field is something that can be printed about an attempt.
type Field struct {
	Name  string // as in the head of the table; lists name it in any case
	Width int    // columns in the table
	About string // one line for the manual

	append func(*rowWriter, []byte, *accounting.AttemptRecord) []byte
}

// rowWriter has what values need besides the row.
type rowWriter struct {
	Options
	names *linetext.Escaper
	hosts *linetext.Escaper // of lists of hosts, where commas and brackets have a meaning
	most  int               // bytes of a text
	part  Part
}

// Part says which part of a job a row is about. The zero value is a whole attempt in one
// row.
type Part struct {
	HasSteps bool   // steps have rows of their own, as in Slurm
	Step     string // of the step that the row is about; empty: of the job
	StepName string // its name; empty: that of the job
	Usage    *StepUsage
	Indexes  string // of tasks that share the row, as "[3-7]"; empty: it is one
	Number   uint64 // of the task, where it has one of its own; 0: that of its job
}

// StepUsage is what is known of the tasks of a step.
type StepUsage struct {
	Tasks, Nodes   int64
	Layout         string
	IsMeasured     bool    // the rest is known
	MaxRSS, MinCPU Extreme // bytes, milliseconds
	AveRSS, AveCPU int64
	Read, Written  int64 // bytes
}

// Extreme is the highest or lowest value among the tasks of a step, and which has it.
type Extreme struct {
	Value, Task int64
	Node        string
}

// hides reports whether a row has no value of a field because another row has it.
func (p *Part) hides(name string) bool {
	switch name {
	case "User", "UID", "Partition", "Timelimit", "TimelimitRaw", "QOS", "WorkDir", "SubmitLine":
		return p.Step != ""
	case "MaxRSS", "MaxDiskRead", "MaxDiskWrite":
		return p.HasSteps && (p.Step == "" || p.Usage != nil && !p.Usage.IsMeasured)
	case "ReqMem", "ReqTRES":
		return p.Usage != nil
	}
	return false
}

// appendField appends the value of a field.
func (w *rowWriter) appendField(b []byte, f *Field, r *accounting.AttemptRecord) []byte {
	if w.part.hides(f.Name) {
		return b
	}
	return f.append(w, b, r)
}

func newRowWriter(o Options, special string) rowWriter {
	return rowWriter{Options: o, names: linetext.NewEscaper(special), hosts: linetext.NewEscaper(special + ",[]"),
		most: maxText}
}

// maxText bounds one value, in bytes.
const maxText = 4096

type (
	rowNumber func(*accounting.AttemptRecord) int64
	rowText   func(*accounting.AttemptRecord) string
)

func textField(name string, width int, about string, value rowText) Field {
	return Field{name, width, about, func(w *rowWriter, b []byte, r *accounting.AttemptRecord) []byte {
		return w.names.Append(b, value(r), w.most)
	}}
}

func numberField(name string, width int, about string, value rowNumber) Field {
	return Field{name, width, about, func(_ *rowWriter, b []byte, r *accounting.AttemptRecord) []byte {
		return strconv.AppendInt(b, value(r), 10)
	}}
}

// elapsedField is a duration, from a value in seconds.
func elapsedField(name string, width int, about string, value rowNumber) Field {
	return Field{name, width, about, func(_ *rowWriter, b []byte, r *accounting.AttemptRecord) []byte {
		return appendElapsed(b, value(r))
	}}
}

// cpuTimeField is a duration, from a value in milliseconds.
func cpuTimeField(name string, about string, value rowNumber) Field {
	return Field{name, 10, about, func(_ *rowWriter, b []byte, r *accounting.AttemptRecord) []byte {
		return appendCPUTime(b, value(r))
	}}
}

func timeField(name string, about string, value func(*accounting.AttemptRecord) accounting.Millis) Field {
	return Field{name, 19, about, func(w *rowWriter, b []byte, r *accounting.AttemptRecord) []byte {
		return w.appendTime(b, value(r))
	}}
}

func sizeField(name string, about string, appendValue func([]byte, roost.Bytes) []byte,
	value func(*accounting.AttemptRecord) roost.Bytes,
) Field {
	return Field{name, 10, about, func(_ *rowWriter, b []byte, r *accounting.AttemptRecord) []byte {
		return appendValue(b, value(r))
	}}
}

func resourcesField(name string, about string, value func(*accounting.AttemptRecord) *roost.Resources) Field {
	return Field{name, 10, about, func(_ *rowWriter, b []byte, r *accounting.AttemptRecord) []byte {
		if amounts := value(r); amounts != nil {
			b = appendTRES(b, amounts)
		}
		return b
	}}
}
