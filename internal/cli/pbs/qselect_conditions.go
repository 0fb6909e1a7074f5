package pbs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qsub"
)

// qselectFilter is what the options of qselect ask for (POSIX, qselect; OpenPBS,
// qselect(1B)).
type qselectFilter struct {
	*frame.Invocation
	conditions []func(*qselectJob) bool
	scheddNode string // the node at which they were submitted; empty for all
	dialect    roost.PBSDialect
	completed  bool // in Torque: those in state C, too
	needsAds   bool // the conditions look at more than the list tells
}

// badOption is an option that qselect cannot take.
type badOption struct {
	text string
	code int
}

func (m *badOption) Error() string { return m.text }

func (w *qselectFilter) addCondition(f func(*qselectJob) bool) {
	w.conditions = append(w.conditions, f)
}

// readOptions takes in all options. Of one that is given twice the last counts, and of -l
// all.
func (w *qselectFilter) readOptions(o pbsframe.Options) *badOption {
	for _, letter := range []byte("aAchlNpPqrstu") {
		values := o.Given[letter]
		if letter != 'l' && len(values) > 1 {
			values = values[len(values)-1:]
		}
		for _, v := range values {
			ok := v != ""
			if letter == 'l' && ok {
				if bad := w.addResourceConditions(v); bad != nil {
					return bad
				}
			} else if ok {
				ok = w.addOption(letter, v)
			}
			if !ok {
				return &badOption{fmt.Sprintf("illegal -%c value", letter), 2}
			}
		}
	}
	if o.IsSet('J') {
		w.addCondition(func(j *qselectJob) bool { return j.GetArray() || strings.Contains(j.GetId(), "[") })
	}
	return nil
}

// addOption adds the condition of one option; false when its value makes no sense.
func (w *qselectFilter) addOption(letter byte, v string) bool {
	switch letter {
	case 'a':
		return w.addTimeCondition('a', v)
	case 't':
		return len(v) > 1 && w.addTimeCondition(v[0], v[1:])
	case 'A':
		w.needsAds = true
		w.addCondition(func(j *qselectJob) bool { return j.attribute("Account_Name") == v })
	case 'P':
		w.needsAds = true
		w.addCondition(func(j *qselectJob) bool { return projectOf(j) == v })
	case 'c':
		return w.addCheckpointCondition(v)
	case 'h':
		w.needsAds = true
		if strings.Trim(v, "uosp") != "" && v != "n" {
			return false
		}
		w.addCondition(func(j *qselectJob) bool { return sortedLetters(j.attribute("Hold_Types")) == sortedLetters(v) })
	case 'N':
		w.addCondition(func(j *qselectJob) bool { return replaceBlanks(j.GetName()) == v })
		return len(v) <= longestName
	case 'p':
		op, text := cutOperator(v)
		n, err := strconv.Atoi(text)
		w.addCondition(func(j *qselectJob) bool { return op.isTrue(cmp.Compare(int(j.GetPriority()), n)) })
		return err == nil && n >= roost.MinPriority && n <= roost.MaxPriority
	case 'q':
		name, at, ok := qsub.ParseDestination(v)
		w.scheddNode = at
		if name != "" {
			w.addCondition(func(j *qselectJob) bool { return pbsQueue(j.JobStatus) == name })
		}
		return ok
	case 'r':
		w.needsAds = true
		w.addCondition(func(j *qselectJob) bool { return (j.attribute("Rerunable") == "True") == (v == "y") })
		return v == "y" || v == "n"
	case 's':
		states := strings.ReplaceAll(strings.ToUpper(v), ",", "")
		known := "BEFHMQRSTUWX"
		if w.dialect == roost.Torque {
			known, w.completed = "CEHQRSTW", strings.Contains(states, "C")
		}
		w.addCondition(func(j *qselectJob) bool {
			return strings.Contains(states, stateLetterOf(w.dialect, j.JobStatus))
		})
		return states != "" && strings.Trim(states, known) == ""
	case 'u':
		users := strings.Split(v, ",")
		w.addCondition(func(j *qselectJob) bool {
			return slices.ContainsFunc(users, func(u string) bool { return userName(u) == j.GetOwner() })
		})
		return !slices.ContainsFunc(users, func(u string) bool {
			return userName(u) == "" || len(userName(u)) > longestUser
		})
	}
	return true
}

// The longest names that jobs and users have (OpenPBS, PBS_MAXJOBNAME and PBS_MAXUSER).
const (
	longestName = 230
	longestUser = 256
)

// sortedLetters sorts the letters of a list of holds.
func sortedLetters(holds string) string {
	b := []byte(holds)
	slices.Sort(b)
	return string(slices.Compact(b))
}

// projectOf is what qsub -P said, and of other jobs the group.
func projectOf(j *qselectJob) string {
	if project := j.attribute("project"); project != "" {
		return project
	}
	ad, err := classad.Parse(j.GetAd())
	if err != nil {
		return ""
	}
	account, _ := ad.Str(roost.AttrGroup)
	return account
}

// addTimeCondition adds a condition on a time of the jobs. A job that has no such time,
// as one that has not started, does not meet it.
func (w *qselectFilter) addTimeCondition(which byte, v string) bool {
	op, text := cutOperator(v)
	at, ok := parseSelectTime(text, w.Now())
	var of func(*qselectJob) int64 // unix nanoseconds
	switch which {
	case 'a':
		w.needsAds = true
		of = func(j *qselectJob) int64 {
			ad, err := classad.Parse(j.GetAd())
			if err != nil {
				return 0
			}
			seconds, _ := ad.Int(roost.AttrStartAfter)
			return seconds * int64(time.Second)
		}
	case 'c', 'q', 'e':
		of = func(j *qselectJob) int64 { return j.GetSubmitted() }
	case 's':
		of = func(j *qselectJob) int64 { return j.GetStarted() }
	case 'm':
		of = func(j *qselectJob) int64 { return max(j.GetSubmitted(), j.GetStarted(), j.GetEnded()) }
	default:
		return false
	}
	w.addCondition(func(j *qselectJob) bool {
		ns := of(j)
		return ns != 0 && op.isTrue(cmp.Compare(ns/int64(time.Second), at.Unix()))
	})
	return ok
}

// parseSelectTime reads [[CC]YY]MMDDhhmm[.SS] (POSIX, touch), and OpenPBS's DDhhmm and
// hhmm, which mean this month and today.
func parseSelectTime(text string, now time.Time) (time.Time, bool) {
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

// addCheckpointCondition adds a condition on how often checkpoints are taken. The order
// is n < s < any number of minutes < c < u (POSIX, qselect -c).
func (w *qselectFilter) addCheckpointCondition(v string) bool {
	w.needsAds = true
	op, text := cutOperator(v)
	than, ok := checkpointInterval(text)
	w.addCondition(func(j *qselectJob) bool {
		is, known := checkpointInterval(j.attribute("Checkpoint"))
		return known && op.isTrue(cmp.Compare(is, than))
	})
	return ok
}

// checkpointInterval orders the values of Checkpoint.
func checkpointInterval(text string) (n int, ok bool) {
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
