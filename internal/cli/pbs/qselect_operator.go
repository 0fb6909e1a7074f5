package pbs

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
)

// qselectOperator is an operator of qselect.
type qselectOperator string

// isTrue reports whether a comparison is true of two things that compare like that: below
// 0, 0, or above 0.
func (c qselectOperator) isTrue(order int) bool {
	switch c {
	case "ne":
		return order != 0
	case "gt":
		return order > 0
	case "ge":
		return order >= 0
	case "lt":
		return order < 0
	case "le":
		return order <= 0
	}
	return order == 0
}

// cutOperator takes the operator off the beginning of a value; without one it is .eq.
func cutOperator(v string) (qselectOperator, string) {
	for _, op := range []string{"eq", "ne", "gt", "ge", "lt", "le"} {
		if rest, ok := strings.CutPrefix(v, "."+op+"."); ok {
			return qselectOperator(op), rest
		}
	}
	return "eq", v
}

// operatorSigns are OpenPBS's other spellings of the operators, the longer ones first.
var operatorSigns = [...]struct {
	sign string
	op   qselectOperator
}{{"!=", "ne"}, {">=", "ge"}, {"<=", "le"}, {"=", "eq"}, {">", "gt"}, {"<", "lt"}}

// addResourceConditions adds the conditions of -l: "ncpus.ge.4,mem<8gb".
func (w *qselectFilter) addResourceConditions(list string) *badOption {
	w.needsAds = true
	for item := range strings.SplitSeq(list, ",") {
		name, op, value, ok := parseComparison(strings.TrimSpace(item))
		if !ok {
			return &badOption{"illegal -l value", 2}
		}
		compare := compareText
		switch name {
		case "walltime", "cput":
			compare = compareDurations
		case "mem", "vmem", "pmem", "pvmem", "file", "gpu_mem", "scratch_local":
			compare = compareSizes
		case "ncpus", "ngpus", "nodect", "mpiprocs", "ompthreads":
			compare = compareNumbers
		case "select", "nodes", "place", "software", "nice", "arch", "host", "vnode", "app_class":
		default:
			return &badOption{"Unknown resource: " + name, pbsframe.UnknownResource}
		}
		if _, ok := compare(value, value); !ok || name != "software" && value == "" {
			return &badOption{"illegal -l value", 2}
		}
		w.addCondition(func(j *qselectJob) bool {
			has := j.attribute("Resource_List." + name)
			order, ok := compare(has, value)
			return has != "" && ok && op.isTrue(order)
		})
	}
	return nil
}

// parseComparison takes "mem.ge.4gb" or "mem>=4gb" apart.
func parseComparison(item string) (name string, op qselectOperator, value string, ok bool) {
	end := strings.IndexFunc(item, func(r rune) bool { return strings.ContainsRune(".!=<>", r) })
	if end <= 0 {
		return "", "", "", false
	}
	name = item[:end]
	for _, s := range operatorSigns {
		if rest, found := strings.CutPrefix(item[end:], s.sign); found {
			return name, s.op, rest, true
		}
	}
	op, value = cutOperator(item[end:])
	return name, op, value, value != item[end:]
}

func compareText(a, b string) (int, bool) { return strings.Compare(a, b), true }

func compareNumbers(a, b string) (int, bool) {
	x, err := strconv.ParseFloat(a, 64)
	y, yerr := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y), err == nil && yerr == nil
}

func compareSizes(a, b string) (int, bool) {
	x, err := roost.ParseBytes(a)
	y, yerr := roost.ParseBytes(b)
	return cmp.Compare(x, y), err == nil && yerr == nil
}

func compareDurations(a, b string) (int, bool) {
	x, ok := pbsDuration(a)
	y, yok := pbsDuration(b)
	return cmp.Compare(x, y), ok && yok
}

// pbsDuration reads seconds or [[hours:]minutes:]seconds, with fractions of a second.
func pbsDuration(text string) (d time.Duration, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return 0, false
	}
	for i, p := range parts {
		n, err := strconv.ParseFloat(p, 64)
		if err != nil || n < 0 || n > 1e9 || i < len(parts)-1 && n != float64(int64(n)) {
			return 0, false
		}
		d = 60*d + time.Duration(n*float64(time.Second))
	}
	return d, true
}
