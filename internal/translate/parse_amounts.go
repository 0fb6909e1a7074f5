package translate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// durationText formats a duration as in job files: "1d12h", "1h30m", "90s".
func durationText(d time.Duration) string {
	secs := int64((d + time.Second - 1) / time.Second)
	if secs < 120 {
		return fmt.Sprintf("%ds", secs)
	}
	var b strings.Builder
	for _, u := range []struct {
		size int64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := secs / u.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			secs %= u.size
		}
	}
	return b.String()
}

// parseSlurmTime parses the value of --time. The forms are "minutes", "minutes:seconds",
// "hours:minutes:seconds", "days-hours", "days-hours:minutes" and
// "days-hours:minutes:seconds". none means no limit, which sbatch writes as 0, UNLIMITED
// or INFINITE.
func parseSlurmTime(s string) (d time.Duration, none, ok bool) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE", "-1":
		return 0, true, true
	}
	days, rest, dashed := strings.Cut(s, "-")
	if !dashed {
		days, rest = "0", s
	}
	fields := strings.Split(rest, ":")
	numbers := make([]int64, len(fields))
	for i, f := range append(fields, days) {
		n, err := strconv.ParseUint(f, 10, 24)
		if err != nil {
			return 0, false, false
		}
		if i < len(fields) {
			numbers[i] = int64(n)
			continue
		}
		var secs int64
		switch {
		case len(fields) > 3:
			return 0, false, false
		case dashed: // hours first
			for k, size := range []int64{3600, 60, 1}[:len(fields)] {
				secs += numbers[k] * size
			}
		case len(fields) == 3:
			secs = numbers[0]*3600 + numbers[1]*60 + numbers[2]
		case len(fields) == 2:
			secs = numbers[0]*60 + numbers[1]
		default:
			secs = numbers[0] * 60
		}
		d = time.Duration(int64(n)*86400+secs) * time.Second
	}
	return d, d == 0, true
}

// parseSlurmSize parses a size such as "4G", or "500" (MiB).
func parseSlurmSize(s string) (roost.Bytes, bool) { return parseSize(s, roost.MiB) }

// parseSize parses a size in powers of 1024; a bare number has the given unit. One letter
// is enough for a unit, and all spellings of PBS work: 4gb, 512MiB, 2kw (words of eight
// bytes).
func parseSize(s string, unit roost.Bytes) (roost.Bytes, bool) {
	end := strings.LastIndexAny(s, "0123456789.") + 1
	n, err := strconv.ParseFloat(s[:end], 64)
	if err != nil || n < 0 {
		return 0, false
	}
	scale := float64(unit)
	if name := strings.ToLower(strings.TrimSpace(s[end:])); name != "" {
		word := 1.0
		if strings.HasSuffix(name, "w") {
			name, word = name[:len(name)-1], 8
		} else {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "b"), "i")
		}
		power, ok := map[string]int{"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}[name]
		if !ok {
			return 0, false
		}
		scale = word
		for range power {
			scale *= 1024
		}
	}
	if n *= scale; n >= 1<<60 {
		return 0, false
	}
	return roost.Bytes(n), true
}

// sizeText formats a size as in job files, with a unit that leaves a whole number.
func sizeText(n roost.Bytes) string {
	units := []string{"", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for i < len(units)-1 && n%1024 == 0 && n > 0 {
		n, i = n/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%dKiB", (n+1023)/1024)
	}
	return fmt.Sprintf("%d%s", n, units[i])
}

// parseCount parses a number of at least 1; of a range such as "2-4" it takes the first.
// Slurm also writes 4k for 4096.
func parseCount(s string) (n int, ranged, ok bool) {
	low, _, ranged := strings.Cut(s, "-")
	times := 1
	if low != "" && (low[len(low)-1] == 'k' || low[len(low)-1] == 'K') {
		low, times = low[:len(low)-1], 1024
	}
	v, err := strconv.ParseUint(low, 10, 24)
	return int(v) * times, ranged, err == nil && v > 0
}

// arrayIndexes are the indexes of an array job in their written order, and its limit on
// running tasks.
type arrayIndexes struct {
	rows       []indexRange
	maxRunning int
}

// indexRange is first, first+step, … up to last.
type indexRange struct{ first, last, step int }

func (r indexRange) count() int { return (r.last-r.first)/r.step + 1 }

// maxIndexRanges bounds the parts of a list of indexes.
const maxIndexRanges = 10_000

// parseArray parses indexes such as "0-9", "1-99:2", "1,3,7-9" and "0-999%20".
func parseArray(s string) (arrayIndexes, bool) {
	s, most, limited := strings.Cut(s, "%")
	var a arrayIndexes
	if limited {
		n, err := strconv.ParseUint(most, 10, 24)
		if err != nil {
			return a, false
		}
		a.maxRunning = int(n) // 0 is no limit
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxIndexRanges {
		return a, false
	}
	total := 0
	for _, part := range parts {
		r, ok := parseIndexRange(strings.TrimSpace(part))
		if !ok {
			return a, false
		}
		if total += r.count(); total > roost.MaxTasks {
			return a, false
		}
		a.rows = append(a.rows, r)
	}
	return a, true
}

func parseIndexRange(s string) (indexRange, bool) {
	s, step, stepped := strings.Cut(s, ":")
	low, high, ranged := strings.Cut(s, "-")
	if !ranged {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 30)
	last, err2 := strconv.ParseUint(high, 10, 30)
	by := uint64(1)
	if stepped {
		var err error
		if by, err = strconv.ParseUint(step, 10, 30); err != nil || by == 0 {
			return indexRange{}, false
		}
	}
	return indexRange{int(first), int(last), int(by)}, err1 == nil && err2 == nil && last >= first
}

func (a arrayIndexes) taskCount() int {
	n := 0
	for _, r := range a.rows {
		n += r.count()
	}
	return n
}

func (a arrayIndexes) indexBounds() (least, most int) {
	least, most = a.rows[0].first, a.rows[0].first
	for _, r := range a.rows {
		least, most = min(least, r.first), max(most, r.first+(r.count()-1)*r.step)
	}
	return least, most
}

// indexesText returns the list in the form of the setting indexes.
func (a arrayIndexes) indexesText() string {
	parts := make([]string, len(a.rows))
	for i, r := range a.rows {
		switch {
		case r.first == r.last:
			parts[i] = strconv.Itoa(r.first)
		case r.step == 1:
			parts[i] = fmt.Sprintf("%d-%d", r.first, r.last)
		default:
			parts[i] = fmt.Sprintf("%d-%d:%d", r.first, r.last, r.step)
		}
	}
	return strings.Join(parts, ",")
}

// isPlainList reports whether job files accept the list.
func (a arrayIndexes) isPlainList() bool {
	_, err := roost.ParseArrayIndexes(a.indexesText())
	return err == nil
}

// elementsExpr returns the list of indexes as an expression.
func (a arrayIndexes) elementsExpr() string {
	var parts []string
	var numbers []string
	flush := func() {
		if len(numbers) > 0 {
			parts = append(parts, listSource(numbers))
			numbers = nil
		}
	}
	for _, r := range a.rows {
		n := r.count()
		if n <= 8 && len(a.rows) > 1 || n == 1 {
			for i := range n {
				numbers = append(numbers, strconv.Itoa(r.first+i*r.step))
			}
			continue
		}
		flush()
		last := r.first + (n-1)*r.step + 1
		if r.step == 1 {
			parts = append(parts, fmt.Sprintf("range(%d, %d)", r.first, last))
		} else {
			parts = append(parts, fmt.Sprintf("range(%d, %d, %d)", r.first, last, r.step))
		}
	}
	flush()
	if len(parts) == 1 {
		return parts[0]
	}
	return "concat(" + strings.Join(parts, ", ") + ")"
}

// maxComputedIndexes is the largest number of tasks whose indexes are computed one by
// one.
const maxComputedIndexes = 200_000

// setTasks sets the number of tasks and the expression of the index. Each array index has
// together tasks that start together. It returns false if the job would have too many.
func (j *jobBlock) setTasks(a *arrayIndexes, together int) bool {
	n := 1
	if a != nil {
		n = a.taskCount()
	}
	if n > roost.MaxTasks/together {
		return false
	}
	j.small = map[string]string{"count": strconv.Itoa(2 * together), "indexes": `"0-1"`}
	if together > 1 {
		j.gang = together
		j.setInt("gang", together)
	}
	switch {
	case a != nil:
		j.setIndexVariable(a, n, together)
	case together > 1:
		j.setInt("count", together)
		j.setSource("gang", "true")
		delete(j.small, "count")
	}
	return true
}

func (j *jobBlock) setIndexVariable(a *arrayIndexes, n, together int) {
	r := a.rows[0]
	number := "task.index"
	if together > 1 {
		number = fmt.Sprintf("floor(task.index / %d)", together)
	}
	plain := len(a.rows) == 1 && r.first == 0 && r.step == 1
	switch {
	case together == 1 && !plain && a.isPlainList():
		j.setText("indexes", a.indexesText())
		j.index = "each.value"
		return
	case plain && (together == 1 || n*together <= maxComputedIndexes):
		j.index = number
	case n*together > maxComputedIndexes:
	case len(a.rows) == 1 && r.step == 1:
		j.index = fmt.Sprintf("%d + %s", r.first, number)
	case len(a.rows) == 1:
		j.index = fmt.Sprintf("%d + %d * %s", r.first, r.step, number)
	default:
		j.index = fmt.Sprintf("element(%s, %s)", a.elementsExpr(), number)
	}
	j.setInt("count", n*together)
}

const (
	tooManyTasks = "A job has at most 10,000,000 tasks."
	noIndexes    = "The index of so many tasks is not computed one by one: in each of them $ROOST_TASK_INDEX " +
		"counts from 0."
)
