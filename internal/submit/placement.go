package submit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// readPlacement reads the settings that decide when and where a job runs.
func (b resourceReader) readPlacement() {
	b.ad.SetString(roost.AttrBand, b.parser.options.Defaults.Band.String())
	const bandHint = "The bands are free, batch, production and monitoring, from low to high."
	if s, at, ok := b.constantText("band", bandHint); ok {
		if _, err := roost.ParsePriorityBand(s); err != nil {
			b.reportProblem(at, fmt.Sprintf("there is no band %q", truncateText(s)),
				bandHint+nearestHint(s, roost.BandNames()))
		} else {
			b.ad.SetString(roost.AttrBand, s)
		}
	}
	n, _ := b.constantInt("priority", roost.MinPriority, roost.MaxPriority,
		"It orders your own jobs in their band; a higher one goes first, and 0 is ordinary.")
	b.ad.SetInt(roost.AttrPriority, n)
	if s, at, ok := b.constantText("group", "Write the name of an accounting group."); ok {
		if groupName.matches(s) {
			b.ad.SetString(roost.AttrGroup, s)
		} else {
			b.reportProblem(at, fmt.Sprintf("%q cannot be the name of a group", truncateText(s)),
				"A name is made of letters, digits, dots, _ and -, as in \"physics.optics\".")
		}
	}
	if s, at, ok := b.constantText("unix_group",
		"Write the name of a group that you are in, as id -Gn lists them."); ok {
		if unixGroup.matches(strings.TrimSuffix(s, "$")) {
			b.ad.SetString(roost.AttrUnixGroup, s)
		} else {
			b.reportProblem(at, fmt.Sprintf("%q cannot be the name of a group", truncateText(s)),
				"Write the name of a group that you are in, as id -Gn lists them.")
		}
	}
	b.constraintReader().readConstraint("requirements", roost.AttrRequirements)
	b.constraintReader().readConstraint("rank", roost.AttrRank)
	b.constraintReader().readSoftConstraints()
	b.readStartAfter()
	b.readLabels()
}

// readLimits reads what happens while a job runs, and after its tasks have failed.
func (b resourceReader) readLimits() {
	retries, _ := b.constantInt("retries", 0, 1000, "It says how often a task that failed is run again.")
	b.ad.SetInt(roost.AttrMaxRetries, retries)
	if n, ok := b.constantInt("success_exit_code", 0, 255,
		"It is the exit code of a program that has succeeded; without it that is 0."); ok && n != 0 {
		b.ad.SetInt(roost.AttrSuccessCode, n)
	}
	notice, lease := b.parser.options.Defaults.Notice, b.parser.options.Defaults.Lease
	if d, _, ok := b.constantDuration("notice", 0); ok {
		notice = d
	}
	if d, _, ok := b.constantDuration("lease", 10*time.Second); ok {
		lease = d
	}
	b.ad.SetInt(roost.AttrNoticePeriod, seconds(notice))
	b.ad.SetInt(roost.AttrJobLease, seconds(lease))
	if n, ok := b.constantInt("max_running", 1, roost.MaxTasks,
		"It says how many tasks of this job may run at once."); ok {
		b.ad.SetInt(roost.AttrMaxRunning, n)
	}
	b.readGang()
	b.readQueue()
	if hold, ok := b.constantBool("hold"); ok {
		b.ad.SetBool(roost.AttrHoldOnSubmit, hold)
	}
	if cell, ok := b.constantBool("cell_queue"); ok {
		b.ad.SetBool(roost.AttrCellQueue, cell)
	}
	if elsewhere, ok := b.constantBool("flock"); ok && !elsewhere {
		b.ad.SetBool(jobad.AttrFlock, false)
	}
	if again, ok := b.constantBool("rerunnable"); ok {
		b.ad.SetBool(roost.AttrRerunnable, again)
	}
	b.readUmask()
}

func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func (b resourceReader) readUmask() {
	v, at, ok := b.constantValue("umask")
	if !ok {
		return
	}
	const hint = "Write the octal digits in quotes, as in umask = \"022\"."
	if v.Type() != cty.String {
		b.reportProblem(at, "umask has to be a text",
			fmt.Sprintf("It is %s: a number here would be decimal. %s", describeValue(v), hint))
		return
	}
	n, err := strconv.ParseUint(v.AsString(), 8, 16)
	if err != nil || n > 0o777 {
		b.reportProblem(at, "umask is not a mask of rights",
			fmt.Sprintf("It is %s, and can be from \"000\" to \"777\". %s", describeValue(v), hint))
		return
	}
	b.ad.SetInt(roost.AttrUmask, int64(n))
}

// readLabels reads labels, a map of texts for users and their scripts.
func (b resourceReader) readLabels() {
	v, at, ok := b.constantValue("labels")
	if !ok {
		return
	}
	labels, ok := b.programReader().mapElements(v, at, "labels")
	if !ok {
		return
	}
	ad := classad.New()
	for _, name := range sortedKeys(labels) {
		if !envName.matches(name) {
			b.reportProblem(at, fmt.Sprintf("%q cannot be the name of a label", truncateText(name)),
				"A name is made of letters, digits and _, and does not begin with a digit.")
			return
		}
		ad.SetString(name, labels[name])
	}
	b.ad.SetAd(roost.AttrLabels, ad)
}

// readStartAfter reads a time of day, a date with a time, or a duration from now.
func (b resourceReader) readStartAfter() {
	const hint = "Write a time (\"18:00\"), a date and a time (\"2026-12-24 18:00\", or RFC 3339) or a length of " +
		"time from now (\"2h\")."
	s, at, ok := b.constantText("start_after", hint)
	if !ok {
		return
	}
	when, ok := parseStartTime(s, b.parser.options.Now)
	if !ok {
		b.reportProblem(at, fmt.Sprintf("%q is not a time", truncateText(s)), hint)
		return
	}
	b.ad.SetInt(roost.AttrStartAfter, when.Unix())
}

func parseStartTime(s string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05",
		"2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, true
		}
	}
	if t, err := time.ParseInLocation("15:04", s, now.Location()); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, true
	}
	if d, err := roost.ParseDuration(s); err == nil && d <= maxDuration {
		return now.Add(d), true
	}
	return time.Time{}, false
}

const conditionHint = "Write a ClassAd expression over the attributes of the job, as in periodic_hold = " +
	"\"NumJobStarts > 3\"; roost-job(5), CONDITIONS, lists them."

// conditionReader reads the conditions of a job.
type conditionReader struct{ *jobBuilder }

// readConditions reads what becomes of a task under conditions.
func (b conditionReader) readConditions() {
	for _, c := range roost.PolicyConditions() {
		b.readCondition(c)
		if c.ReasonAttr == "" {
			continue
		}
		reason, at, ok := b.constantText(c.Setting+"_reason", "Write a sentence for those who look at the task.")
		switch _, there := b.body.Attributes[c.Setting]; {
		case ok && !there:
			b.reportProblem(at, fmt.Sprintf("%s_reason is set, and %s is not", c.Setting, c.Setting), conditionHint)
		case ok:
			b.ad.SetString(c.ReasonAttr, reason)
		}
	}
}

func (b conditionReader) readCondition(c roost.PolicyCondition) {
	v, at, ok := b.constantValue(c.Setting)
	switch {
	case !ok:
	case v.Type() == cty.Bool:
		b.ad.SetBool(c.Attr, v.True())
	case v.Type() != cty.String:
		b.reportProblem(at, c.Setting+" has to be a condition",
			fmt.Sprintf("It is %s. %s", describeValue(v), conditionHint))
	case b.constraintReader().checkClassAd(v.AsString(), b.body.Attributes[c.Setting].Expr, c.Setting,
		conditionHint):
		if err := b.ad.SetExpr(c.Attr, v.AsString()); err != nil {
			b.reportProblem(at, c.Setting+" has to be a condition", err.Error()+". "+conditionHint)
		}
	}
}
