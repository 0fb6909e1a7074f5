package ledger

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// CoreCount is a number of cores in objects: a JSON number with up to three decimals.
type CoreCount roost.MilliCPU

// MarshalJSON formats 1500 as 1.5.
func (c CoreCount) MarshalJSON() ([]byte, error) { return []byte(roost.MilliCPU(c).String()), nil }

// UnmarshalJSON reads a number of cores.
func (c *CoreCount) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.Abs(f) > math.MaxInt64/2000 {
		return fmt.Errorf("%s is not a number of cores", text)
	}
	if *c = CoreCount(math.Round(f * 1000)); math.Abs(f*1000-math.Round(f*1000)) > 1e-6 {
		return fmt.Errorf("%s cores: a thousandth of a core is the least", text)
	}
	return nil
}

// ResourceBounds is a vector of bounds; an absent dimension has no bound.
type ResourceBounds struct {
	CPUs   *CoreCount   `json:"cpus,omitempty"`
	Memory *roost.Bytes `json:"memory_bytes,omitempty"`
	Disk   *roost.Bytes `json:"disk_bytes,omitempty"`
	GPUs   *int64       `json:"gpus,omitempty"`
	Tasks  *int64       `json:"tasks,omitempty"`
}

// BoundedDimension is one dimension that has a bound, with its unit in Text.
type BoundedDimension struct {
	Name  string // "cpus", "memory", "disk", "gpus", "tasks"
	Value int64  // thousandths of cores, bytes, or a count
	Text  string
}

// Bounds lists the dimensions that have a bound, in a fixed order.
func (a ResourceBounds) Bounds() []BoundedDimension {
	var all []BoundedDimension
	add := func(name string, value int64, text string) { all = append(all, BoundedDimension{name, value, text}) }
	if a.CPUs != nil {
		add("cpus", int64(*a.CPUs), roost.MilliCPU(*a.CPUs).String())
	}
	if a.Memory != nil {
		add("memory", int64(*a.Memory), a.Memory.String())
	}
	if a.Disk != nil {
		add("disk", int64(*a.Disk), a.Disk.String())
	}
	if a.GPUs != nil {
		add("gpus", *a.GPUs, strconv.FormatInt(*a.GPUs, 10))
	}
	if a.Tasks != nil {
		add("tasks", *a.Tasks, strconv.FormatInt(*a.Tasks, 10))
	}
	return all
}

// allZero reports whether there are bounds and all of them are 0.
func (a ResourceBounds) allZero() bool {
	all := a.Bounds()
	return len(all) > 0 && !slices.ContainsFunc(all, func(d BoundedDimension) bool { return d.Value != 0 })
}

func (a ResourceBounds) String() string {
	var parts []string
	for _, d := range a.Bounds() {
		parts = append(parts, d.Text+" "+d.Name)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// maxAmount bounds each dimension, so that the sum of a million of them does not
// overflow.
const maxAmount = math.MaxInt64 / 1_000_000

// maxCount bounds counts of things: GPUs, tasks, units of concurrency limits.
const maxCount = 1_000_000_000

// check refuses amounts out of range.
func (a ResourceBounds) check() error {
	for _, d := range a.Bounds() {
		most := int64(maxAmount)
		if d.Name == "gpus" || d.Name == "tasks" {
			most = maxCount
		}
		if d.Value < 0 {
			return fmt.Errorf("%s is %s: write 0 for none at all, or leave it out for no bound", d.Name, d.Text)
		}
		if d.Value > most {
			return fmt.Errorf("%s is %s, which is more than can be counted: leave it out for no bound", d.Name, d.Text)
		}
	}
	return nil
}

// firstAbove names the first dimension in which a exceeds most. A dimension without a
// bound in most allows anything; one without a bound in a exceeds any.
func (a ResourceBounds) firstAbove(most ResourceBounds) (name, has, may string, over bool) {
	own := map[string]BoundedDimension{}
	for _, d := range a.Bounds() {
		own[d.Name] = d
	}
	for _, d := range most.Bounds() {
		mine, bounded := own[d.Name]
		if !bounded {
			return d.Name, "no bound", d.Text, true
		}
		if mine.Value > d.Value {
			return d.Name, mine.Text, d.Text, true
		}
	}
	return "", "", "", false
}

// Period is the time from From until Until. A zero From or Until means unbounded.
type Period struct {
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Contains reports whether t lies in the period; Until itself does not.
func (p Period) Contains(t time.Time) bool {
	return !t.Before(p.From) && (p.Until.IsZero() || t.Before(p.Until))
}

// overlaps reports whether two periods have an instant in common.
func (p Period) overlaps(q Period) bool {
	return (p.Until.IsZero() || q.From.Before(p.Until)) && (q.Until.IsZero() || p.From.Before(q.Until))
}

// isBounded reports whether the period has a From or an Until.
func (p Period) isBounded() bool { return !p.From.IsZero() || !p.Until.IsZero() }

// Text formats the period for messages.
func (p Period) Text() string {
	var s []string
	if !p.From.IsZero() {
		s = append(s, "from "+timeText(p.From))
	}
	if !p.Until.IsZero() {
		s = append(s, "until "+timeText(p.Until))
	}
	return strings.Join(s, " ")
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// check refuses periods that are empty, over, or outside the years 1970 to 2200.
func (p Period) check(now time.Time) error {
	for _, t := range []time.Time{p.From, p.Until} {
		if !t.IsZero() && (t.Unix() <= 0 || t.Unix() > maxTime/int64(time.Second)) {
			return fmt.Errorf("%s is not a time between 1970 and 2200", timeText(t))
		}
	}
	if p.Until.IsZero() {
		return nil
	}
	if !p.From.Before(p.Until) {
		return fmt.Errorf("it begins at %s and ends at %s, so it never holds: let it end later than it begins",
			timeText(p.From), timeText(p.Until))
	}
	if !now.Before(p.Until) {
		return fmt.Errorf("it ended at %s, and it is %s: give it an end that is still to come", timeText(p.Until),
			timeText(now))
	}
	return nil
}
