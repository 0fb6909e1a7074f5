package export

import (
	"math"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Table is a kind of records with its columns. It is written as CSV or as JSON Lines,
// with the same names.
type Table[T any] struct {
	Name    string
	About   string
	Columns []Column[T]
}

// Column is a value of each record.
type Column[T any] struct {
	Name  string
	About string // one line for the manual

	value func(*T) cell
}

// cell is a value of a kind.
type cell struct {
	kind   cellKind
	number int64
	text   string
}

// cellKind says how a value is written.
type cellKind uint8

const (
	emptyCell cellKind = iota // nothing: the value is not known, or has not come
	textCell
	integerCell
	decimalCell // number is in thousandths
	timeCell    // number is in milliseconds since 1970
	boolCell    // number is 0 or 1
	floatCell   // number has the bits of a float64
)

func textOf(s string) cell {
	if s == "" {
		return cell{}
	}
	return cell{kind: textCell, text: s}
}

func integerOf[N ~int | ~int32 | ~int64 | ~uint32](n N) cell {
	return cell{kind: integerCell, number: int64(n)}
}

// thousandthsOf is seconds of milliseconds, or CPUs of milli-CPUs.
func thousandthsOf[N ~int64](n N) cell { return cell{kind: decimalCell, number: int64(n)} }

func timeOf(t accounting.Millis) cell {
	if t == 0 {
		return cell{}
	}
	return cell{kind: timeCell, number: int64(t)}
}

func floatOf(f float64) cell { return cell{kind: floatCell, number: int64(math.Float64bits(f))} }

func boolOf(b bool) cell {
	if b {
		return cell{kind: boolCell, number: 1}
	}
	return cell{kind: boolCell}
}

// appendPlain appends a value other than a text.
func (c *cell) appendPlain(b []byte) []byte {
	switch c.kind {
	case integerCell:
		return strconv.AppendInt(b, c.number, 10)
	case decimalCell:
		return appendThousandths(b, c.number)
	case timeCell:
		return time.UnixMilli(c.number).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	case floatCell:
		return strconv.AppendFloat(b, math.Float64frombits(uint64(c.number)), 'g', -1, 32)
	case boolCell:
		return strconv.AppendBool(b, c.number != 0)
	}
	return b
}

// appendThousandths appends n/1000 without zeros at the end.
func appendThousandths(b []byte, n int64) []byte {
	u := uint64(n)
	if n < 0 {
		b, u = append(b, '-'), -u
	}
	b = strconv.AppendUint(b, u/1000, 10)
	if u %= 1000; u == 0 {
		return b
	}
	b = append(b, '.', byte('0'+u/100))
	if u %= 100; u == 0 {
		return b
	}
	b = append(b, byte('0'+u/10))
	if u %= 10; u == 0 {
		return b
	}
	return append(b, byte('0'+u))
}

// jobID returns seq.host, or seq of a job that is not known.
func jobID(j *accounting.JobEntry) string {
	if j.Host == "" {
		return strconv.FormatUint(j.Seq, 10)
	}
	return roost.JobID{Seq: j.Seq, Host: j.Host}.String()
}

// resourceColumns are the columns of amounts of resources.
func resourceColumns[T any](prefix, whose string, amounts func(*T) *roost.Resources) []Column[T] {
	return []Column[T]{
		{prefix + "cpus", "CPUs that " + whose, func(r *T) cell { return thousandthsOf(amounts(r).CPU) }},
		{prefix + "memory_bytes", "memory that " + whose, func(r *T) cell { return integerOf(amounts(r).Memory) }},
		{prefix + "disk_bytes", "disk space that " + whose, func(r *T) cell { return integerOf(amounts(r).Disk) }},
		{prefix + "gpus", "GPUs that " + whose, func(r *T) cell { return integerOf(amounts(r).GPUs) }},
		{prefix + "gpu_memory_bytes", "memory of each GPU that " + whose + "; 0: whole GPUs",
			func(r *T) cell { return integerOf(amounts(r).GPUMemory) }},
	}
}
