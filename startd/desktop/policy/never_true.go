package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// unsatisfiable finds expressions that prevent every task. They are a start or continue
// that is never true, and a suspend or preempt that is always true.
//
// Only certain cases count: constants, and comparisons of one attribute with constants
// that contradict each other or the attribute's range.
func unsatisfiable(setting string, e classad.Expr) []LintFinding {
	switch setting {
	case "start", "continue":
		if word, why := neverTrue(e); why != "" {
			cure := "then nothing would ever run here: to lend nothing, take the startd block out, or use roost drain"
			if setting == "continue" {
				cure = "then no task that has stood still would ever go on"
			}
			return []LintFinding{{word, why, cure, false}}
		}
	case "suspend", "preempt":
		if isConstant(e) && classad.Eval(e, nil, nil, nil).IsTrue() {
			return []LintFinding{{"", "it is always true",
				"then no task would ever get on here: leave the line out, or name what it depends on, as in " +
					"KeyboardIdle < 60", false}}
		}
	}
	return nil
}

// isConstant reports whether an expression has the same value everywhere and always.
func isConstant(e classad.Expr) bool {
	my, target, unscoped := classad.References(e)
	if len(my)+len(target)+len(unscoped) > 0 {
		return false
	}
	src := strings.ToLower(e.String())
	// also matches currentTime, dayTime, evalInEachContext and similar functions
	for _, f := range []string{"time(", "random(", "eval("} {
		if strings.Contains(src, f) {
			return false
		}
	}
	return true
}

// attributeRanges returns the ranges of some attributes, including both ends; the others
// may have any value.
func attributeRanges() map[string]timeInterval {
	all := map[string]timeInterval{
		strings.ToLower(roost.AttrClockMin): {0, 24*60 - 1}, strings.ToLower(roost.AttrClockDay): {0, 6},
		strings.ToLower(roost.AttrMemoryPressure): {0, 100}, strings.ToLower(roost.AttrCpuPressure): {0, 100},
	}
	for _, name := range []string{roost.AttrKeyboardIdle, roost.AttrConsoleIdle, roost.AttrQuietTime,
		roost.AttrStateTimer, roost.AttrActivityTimer, roost.AttrLoadAvg,
		roost.AttrCondorLoad, roost.AttrForeignCpu, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus,
		roost.AttrWalltime, roost.AttrRequestCpus,
		roost.AttrRequestMemory, roost.AttrRequestDisk, roost.AttrRequestGpus} {
		all[strings.ToLower(name)] = timeInterval{0, math.Inf(1)}
	}
	return all
}

type timeInterval struct{ low, high float64 }

var comparison = lazyregexp.New(`^(?i:(MY|TARGET)\.)?([A-Za-z_]\w*) *(<=|>=|==|<|>|=\?=|is) *(.+)$`)

// neverTrue returns why an expression can never be true, and the word that causes it.
func neverTrue(e classad.Expr) (word, why string) {
	// the possible values of an attribute, and the conjunct that restricted them last
	domain, known := map[string]timeInterval{}, map[string]string{}
	for _, part := range classad.Conjuncts(e) {
		if isConstant(part) {
			v := classad.Eval(part, nil, nil, nil)
			if _, plain := part.Literal(); plain && !v.IsTrue() {
				return "", "it is never true: it says " + strings.ToLower(v.String())
			} else if !v.IsTrue() {
				return "", fmt.Sprintf("it is never true: %s is %s", part, strings.ToLower(v.String()))
			}
			continue
		}
		m := comparison().FindStringSubmatch(part.String())
		if m == nil {
			continue
		}
		right, err := classad.ParseExpr(m[4])
		if err != nil || !isConstant(right) {
			continue
		}
		value := classad.Eval(right, nil, nil, nil)
		name := strings.ToLower(m[2])
		if text, ok := value.Str(); ok {
			if list := possibleTexts(name); list != nil && !containsName(list, text) &&
				(m[3] == "==" || m[3] == "=?=" || m[3] == "is") {
				return m[2], fmt.Sprintf("it is never true: %s is one of %s", m[2], strings.Join(list, ", "))
			}
			continue
		}
		n, ok := value.Number()
		if !ok {
			continue
		}
		if strings.EqualFold(m[1], "TARGET") {
			name = "target." + name
		}
		d, ok := domain[name]
		if !ok {
			if d, ok = attributeRanges()[strings.ToLower(m[2])]; !ok {
				d = timeInterval{math.Inf(-1), math.Inf(1)}
			}
		}
		was := d
		d.intersect(m[3], n)
		if d.low > d.high {
			if before := known[name]; before != "" {
				return m[2], fmt.Sprintf("it is never true: %s contradicts %s", part, before)
			}
			return m[2], fmt.Sprintf("it is never true: %s is %s", m[2], was)
		}
		domain[name], known[name] = d, part.String()
	}
	return "", ""
}

// intersect restricts the interval to the values that satisfy a comparison.
func (d *timeInterval) intersect(op string, n float64) {
	switch op {
	case "<":
		d.high = min(d.high, math.Nextafter(n, math.Inf(-1)))
	case "<=":
		d.high = min(d.high, n)
	case ">":
		d.low = max(d.low, math.Nextafter(n, math.Inf(1)))
	case ">=":
		d.low = max(d.low, n)
	default:
		d.low, d.high = max(d.low, n), min(d.high, n)
	}
}

func (d timeInterval) String() string {
	switch {
	case math.IsInf(d.high, 1):
		return fmt.Sprintf("never less than %v", d.low)
	case math.IsInf(d.low, -1):
		return fmt.Sprintf("never more than %v", d.high)
	}
	return fmt.Sprintf("from %v to %v", d.low, d.high)
}

// possibleTexts returns the texts that an attribute can have; nil: any.
func possibleTexts(name string) []string {
	switch name {
	case strings.ToLower(roost.AttrState):
		// for machines whose daemons are stopped, and files written for HTCondor
		return append(slices.Clone(stateNames), "Drained")
	case strings.ToLower(roost.AttrActivity):
		return activityNames
	}
	return nil
}
