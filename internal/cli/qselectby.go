package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/pbs"
)

// selecting is what the options of qselect ask for (POSIX, qselect; OpenPBS, qselect(1B)).
type selecting struct {
	*call
	conditions []func(*candidate) bool
	at         string // the node at which they were submitted; empty for all
	dialect    roost.Dialect
	completed  bool // in Torque: those in state C, too
	ads        bool // the conditions look at more than the list tells
}

// misselected is an option that qselect cannot take.
type misselected struct {
	text string
	code int
}

func (m *misselected) Error() string { return m.text }

func (w *selecting) want(f func(*candidate) bool) { w.conditions = append(w.conditions, f) }

// read takes in all options. Of one that is given twice the last counts, and of -l all.
func (w *selecting) read(o options) *misselected {
	for _, letter := range []byte("aAchlNpPqrstu") {
		values := o.given[letter]
		if letter != 'l' && len(values) > 1 {
			values = values[len(values)-1:]
		}
		for _, v := range values {
			ok := v != ""
			if letter == 'l' && ok {
				if bad := w.byResources(v); bad != nil {
					return bad
				}
			} else if ok {
				ok = w.by(letter, v)
			}
			if !ok {
				return &misselected{fmt.Sprintf("illegal -%c value", letter), 2}
			}
		}
	}
	if o.has('J') {
		w.want(func(j *candidate) bool { return j.GetArray() || strings.Contains(j.GetId(), "[") })
	}
	return nil
}

// by adds the condition of one option; false when its value makes no sense.
func (w *selecting) by(letter byte, v string) bool {
	switch letter {
	case 'a':
		return w.byTime('a', v)
	case 't':
		return len(v) > 1 && w.byTime(v[0], v[1:])
	case 'A':
		w.ads = true
		w.want(func(j *candidate) bool { return j.of("Account_Name") == v })
	case 'P':
		w.ads = true
		w.want(func(j *candidate) bool { return projectOf(j) == v })
	case 'c':
		return w.byCheckpoint(v)
	case 'h':
		w.ads = true
		if strings.Trim(v, "uosp") != "" && v != "n" {
			return false
		}
		w.want(func(j *candidate) bool { return letters(j.of("Hold_Types")) == letters(v) })
	case 'N':
		w.want(func(j *candidate) bool { return oneWord(j.GetName()) == v })
		return len(v) <= longestName
	case 'p':
		op, text := operator(v)
		n, err := strconv.Atoi(text)
		w.want(func(j *candidate) bool { return op.holds(cmp.Compare(int(j.GetPriority()), n)) })
		return err == nil && n >= roost.MinPriority && n <= roost.MaxPriority
	case 'q':
		name, at, ok := pbs.Destination(v)
		w.at = at
		if name != "" {
			w.want(func(j *candidate) bool { return pbsQueue(j.JobStatus) == name })
		}
		return ok
	case 'r':
		w.ads = true
		w.want(func(j *candidate) bool { return (j.of("Rerunable") == "True") == (v == "y") })
		return v == "y" || v == "n"
	case 's':
		states := strings.ReplaceAll(strings.ToUpper(v), ",", "")
		known := "BEFHMQRSTUWX"
		if w.dialect == roost.Torque {
			known, w.completed = "CEHQRSTW", strings.Contains(states, "C")
		}
		w.want(func(j *candidate) bool { return strings.Contains(states, letterIn(w.dialect, j.JobStatus)) })
		return states != "" && strings.Trim(states, known) == ""
	case 'u':
		users := strings.Split(v, ",")
		w.want(func(j *candidate) bool {
			return slices.ContainsFunc(users, func(u string) bool { return userName(u) == j.GetOwner() })
		})
		return !slices.ContainsFunc(users, func(u string) bool { return userName(u) == "" || len(userName(u)) > longestUser })
	}
	return true
}

// The longest names that jobs and users have (OpenPBS, PBS_MAXJOBNAME and PBS_MAXUSER).
const (
	longestName = 230
	longestUser = 256
)

// letters sorts the letters of a list of holds.
func letters(holds string) string {
	b := []byte(holds)
	slices.Sort(b)
	return string(slices.Compact(b))
}

// projectOf is what qsub -P said, and of other jobs the group.
func projectOf(j *candidate) string {
	if project := j.of("project"); project != "" {
		return project
	}
	ad, err := classad.Parse(j.GetAd())
	if err != nil {
		return ""
	}
	account, _ := ad.Str(roost.AttrGroup)
	return account
}

// byTime adds a condition on a time of the jobs. A job that has no such time, as one that has not started, does not meet it.
func (w *selecting) byTime(which byte, v string) bool {
	op, text := operator(v)
	at, ok := selectedTime(text, w.now())
	var of func(*candidate) int64 // unix nanoseconds
	switch which {
	case 'a':
		w.ads = true
		of = func(j *candidate) int64 {
			ad, err := classad.Parse(j.GetAd())
			if err != nil {
				return 0
			}
			seconds, _ := ad.Int(roost.AttrStartAfter)
			return seconds * int64(time.Second)
		}
	case 'c', 'q', 'e':
		of = func(j *candidate) int64 { return j.GetSubmitted() }
	case 's':
		of = func(j *candidate) int64 { return j.GetStarted() }
	case 'm':
		of = func(j *candidate) int64 { return max(j.GetSubmitted(), j.GetStarted(), j.GetEnded()) }
	default:
		return false
	}
	w.want(func(j *candidate) bool {
		ns := of(j)
		return ns != 0 && op.holds(cmp.Compare(ns/int64(time.Second), at.Unix()))
	})
	return ok
}

// selectedTime reads [[CC]YY]MMDDhhmm[.SS] (POSIX, touch), and OpenPBS's DDhhmm and hhmm, which mean this month and today.
func selectedTime(text string, now time.Time) (time.Time, bool) {
	digits, seconds, hasSeconds := strings.Cut(text, ".")
	if !hasSeconds {
		seconds = "00"
	}
	full := now.Format("200601021504")
	if n := len(digits); n == 4 || n == 6 || n == 8 || n == 10 || n == 12 {
		full = full[:12-n] + digits
	} else {
		return time.Time{}, false
	}
	at, err := time.ParseInLocation("20060102150405", full+seconds, now.Location())
	return at, err == nil
}

// byCheckpoint adds a condition on how often checkpoints are taken: n is less than s, that less than any number of minutes, those less than c and that
// less than u (POSIX, qselect -c).
func (w *selecting) byCheckpoint(v string) bool {
	w.ads = true
	op, text := operator(v)
	than, ok := interval(text)
	w.want(func(j *candidate) bool {
		is, known := interval(j.of("Checkpoint"))
		return known && op.holds(cmp.Compare(is, than))
	})
	return ok
}

// interval orders the values of Checkpoint.
func interval(text string) (n int, ok bool) {
	const many = 1 << 30
	switch text {
	case "n":
		return -2, true
	case "s":
		return -1, true
	case "c":
		return many, true
	case "u":
		return many + 1, true
	}
	n, err := strconv.Atoi(strings.TrimPrefix(text, "c="))
	return n, err == nil && n >= 0 && n < many
}
