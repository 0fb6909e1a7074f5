package translate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/lazyregexp"
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
	q.setConditions()
	q.carryOver(whole("retries", 0), "max_retries")
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

// conditionsLost says why a condition on a job is not carried over.
const conditionsLost = "What is to happen under a condition is not part of a job here: walltime ends what takes " +
	"too long, retries runs again what failed, and roost hold, release and rm do it by hand, with --constraint for " +
	"many jobs."

// neutralValues are values of commands that say what happens in any case.
var neutralValues = map[string]string{"periodic_hold": "false", "periodic_release": "false",
	"periodic_vacate": "false", "on_exit_hold": "false", "on_exit_remove": "true", "leave_in_queue": "false",
	"success_exit_code": "0", "retry_until": "0", "want_graceful_removal": "true"}

var untilSuccess = lazyregexp.New(`(?i)^\(*[ \t]*(?:\(?ExitBySignal[ \t]*==[ \t]*False\)?[ \t]*&&[ \t]*)?` +
	`\(?[ \t]*ExitCode[ \t]*=[=?]=?[ \t]*0[ \t]*\)*$`)

// setConditions carries over conditions with a counterpart.
func (q *condorJob) setConditions() {
	for _, name := range slices.Sorted(maps.Keys(neutralValues)) {
		s, ok := q.set[name]
		if !ok {
			continue
		}
		q.current = s
		v, _ := q.fixedValue(s)
		switch {
		case strings.EqualFold(v, neutralValues[name]):
			q.usedAsMacro[name] = true
			q.carried++
		case name == "on_exit_remove" && untilSuccess().MatchString(v):
			q.usedAsMacro[name] = true
			q.carried++
			q.job.setInt("retries", 1000)
			q.noteDifferenceAt(s, "A task that fails runs again, at most 1000 times.")
		}
	}
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
			q.noteDifferenceAt(s, "It becomes a label, a text for people and scripts: nothing is decided by it.")
			continue
		}
		if q.needNodes(t) {
			continue
		}
		q.noteCommandLost(s, fmt.Sprintf("%s cannot be a label, which is a text that all tasks share.",
			shownLine(s.name)))
	}
}
