package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/classad"
)

// setPolicies sets what happens while the job runs and at its end.
func (q *condorJob) setPolicies() {
	j := q.job
	whole := func(to string, least int) func(s submitSetting) {
		return func(s submitSetting) {
			if n, ok := q.parseNumber(s); ok && n >= least {
				j.setInt(to, n)
			}
		}
	}
	seconds := func(to string) func(s submitSetting) {
		return func(s submitSetting) {
			if n, ok := q.parseNumber(s); ok && n > 0 {
				j.setText(to, durationText(time.Duration(min(n, 1<<29))*time.Second))
			}
		}
	}
	q.setMail()
	q.carryOver(whole("retries", 0), "max_retries")
	q.carryOver(whole("success_exit_code", 0), "success_exit_code")
	q.setConditions()
	q.carryOver(seconds("lease"), "job_lease_duration")
	q.carryOver(seconds("notice"), "job_max_vacate_time", "kill_sig_timeout")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok {
			j.checkpoint = []blockEntry{{"method", `"self"`}, {"exit_code", strconv.Itoa(n)}}
			if f, ok := q.commandValue("transfer_checkpoint_files"); ok {
				j.checkpoint = append(j.checkpoint, blockEntry{"files", textListSource(splitCommas(q.firstValue(f)))})
			}
		}
	}, "checkpoint_exit_code")
}

// neutralValues are values of commands that say what happens in any case.
var neutralValues = map[string]string{"leave_in_queue": "false",
	"want_graceful_removal": "true"}

// setConditions carries over conditions with a counterpart.
func (q *condorJob) setConditions() {
	for _, name := range slices.Sorted(maps.Keys(neutralValues)) {
		if s, ok := q.set[name]; ok {
			q.current = s
			if v, _ := q.fixedValue(s); strings.EqualFold(v, neutralValues[name]) {
				q.usedAsMacro[name] = true
				q.carried++
			}
		}
	}
	for _, name := range []string{"periodic_hold", "periodic_release", "periodic_vacate", "on_exit_hold"} {
		q.carryOver(func(s submitSetting) {
			if v, ok := q.conditionValue(s); ok && !strings.EqualFold(v, "false") {
				q.job.setText(name, v)
			}
		}, name)
	}
	for _, name := range []string{"periodic_hold", "periodic_remove", "on_exit_hold"} {
		q.carryOver(func(s submitSetting) {
			if _, ok := q.job.settings[name]; ok {
				q.setReason(s, name+"_reason")
			}
		}, name+"_reason")
		q.carryOver(func(s submitSetting) {
			q.noteDifferenceAt(s, "A hold has a sentence and no number of its own.")
		}, name+"_subcode")
	}
	q.setExitCondition()
	q.carryOver(func(s submitSetting) {
		n, ok := q.parseNumber(s)
		if !ok || q.options.Now.IsZero() {
			q.noteCommandLost(s, "Write a time: start_after = \"2026-12-24 18:00\".")
			return
		}
		at := time.Unix(int64(n), 0).In(q.options.Now.Location())
		q.job.setText("start_after", at.Format("2006-01-02 15:04:05"))
	}, "deferral_time")
}

// conditionValue returns a condition, if it is one.
func (q *condorJob) conditionValue(s submitSetting) (string, bool) {
	t := q.expandMacros(s.value)
	text, ok := t.fixedText()
	if !ok {
		q.fixedValue(s) // it says why
		return "", false
	}
	text = strings.TrimSpace(text)
	if _, err := classad.ParseExpr(text); err != nil {
		q.noteCommandMistake(s, fmt.Sprintf("It is no ClassAd expression: %v.", err))
		return "", false
	}
	return text, true
}

// setReason sets the reason of a condition, which is an expression there and a text here.
func (q *condorJob) setReason(s submitSetting, to string) {
	v, ok := q.conditionValue(s)
	if !ok {
		return
	}
	value, err := evaluateText(v)
	text, isText := value.Str()
	if err != nil || !isText {
		q.noteCommandLost(s, "A reason is a text here, and the condition itself is shown without one.")
		return
	}
	q.job.setText(to, text)
}

// setExitCondition sets what happens when the program has ended (HTCondor manual,
// condor_submit, max_retries).
func (q *condorJob) setExitCondition() {
	var leaves []string
	q.carryOver(func(s submitSetting) {
		if v, ok := q.conditionValue(s); ok && !strings.EqualFold(v, "true") {
			leaves = append(leaves, v)
		}
	}, "on_exit_remove")
	if s, ok := q.set["retry_until"]; ok && strings.TrimSpace(s.value) != "0" {
		q.carryOver(func(s submitSetting) {
			v, ok := q.conditionValue(s)
			if _, err := strconv.Atoi(v); err == nil {
				v = "ExitCode =?= " + v
			}
			if ok {
				leaves = append(leaves, v)
			}
		}, "retry_until")
		if _, there := q.set["max_retries"]; !there {
			q.job.setInt("retries", defaultRetries)
		}
	} else if ok {
		q.usedAsMacro["retry_until"] = true
		q.carried++
	}
	if len(leaves) == 0 {
		return
	}
	if n, ok := q.job.settings["retries"]; ok {
		delete(q.job.settings, "retries")
		success := cmp.Or(q.job.settings["success_exit_code"], "0")
		leaves = append([]string{"NumJobCompletions > " + n, "ExitCode =?= " + success}, leaves...)
	}
	for i, v := range leaves {
		if len(leaves) > 1 {
			leaves[i] = "(" + v + ")"
		}
	}
	q.job.setText("on_exit_remove", strings.Join(leaves, " || "))
}

// defaultRetries is how often a job is tried again that only says until when (HTCondor
// manual, DEFAULT_JOB_MAX_RETRIES).
const defaultRetries = 2

// setMail sets which events are mailed, and the recipients.
func (q *condorJob) setMail() {
	letters, to := "", []string(nil)
	q.carryOver(func(s submitSetting) {
		l, ok := map[string]string{"never": "", "error": "a", "complete": "ae",
			"always": "abe"}[strings.ToLower(q.firstValue(s))]
		if !ok {
			q.noteCommandMistake(s, "It is Always, Complete, Error or Never.")
		}
		letters = l
	}, "notification")
	q.carryOver(func(s submitSetting) { to = splitCommas(q.firstValue(s)) }, "notify_user")
	if letters != "" { // without notification HTCondor sends no mail
		q.job.setMail(letters, to)
	}
}

// firstValue is fixedValue without the report.
func (q *condorJob) firstValue(s submitSetting) string {
	v, _ := q.fixedValue(s)
	return v
}

// setLabels makes labels of custom attributes.
func (q *condorJob) setLabels() {
	for _, key := range q.names {
		s := q.set[key]
		if !s.isAttribute || q.usedAsMacro[key] {
			continue
		}
		q.current = s
		t := q.expandMacros(s.value)
		if v, fixed := t.fixedText(); fixed && identifier().MatchString(s.name) {
			q.job.addToMap("labels", s.name, quotedText(strings.Trim(strings.TrimSpace(v), `"`)))
			q.noteDifferenceAt(s,
				"It becomes a label, a text for people, for scripts and for the conditions of the job.")
			continue
		}
		if q.needNodes(t) {
			continue
		}
		q.noteCommandLost(s, fmt.Sprintf("%s cannot be a label, which is a text that all tasks share.",
			shownLine(s.name)))
	}
}
