package translate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// setResources sets the requested resources.
func (q *condorJob) setResources() {
	q.carryOver(func(s submitSetting) { q.setResource("cpus", s) }, "request_cpus", "requestcpus")
	q.carryOver(func(s submitSetting) { q.setResource("gpus", s) }, "request_gpus", "requestgpus")
	q.carryOver(func(s submitSetting) { q.setSize("memory", s, roost.MiB, "MiB") }, "request_memory", "requestmemory")
	q.carryOver(func(s submitSetting) { q.setSize("disk", s, roost.KiB, "KiB") }, "request_disk", "requestdisk")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok && n > 0 {
			q.job.setText("gpu_memory", sizeText(roost.Bytes(min(n, 1<<30))*roost.MiB))
		}
	}, "gpus_minimum_memory")
	q.setWalltime()
}

// jobFlavours are the walltimes, in seconds, that CERN's batch service has names for.
var jobFlavours = map[string]int{"espresso": 1200, "microcentury": 3600, "longlunch": 7200, "workday": 28800,
	"tomorrow": 86400, "testmatch": 259200, "nextweek": 604800}

var removeAfter = lazyregexp.New(`(?i)^\(*[ \t]*(?:\(?[ \t]*JobStatus[ \t]*==[ \t]*2[ \t]*\)?[ \t]*&&[ \t]*)?` +
	`\(*[ \t]*\(?(?:time\(\)|CurrentTime)[ \t]*-[ \t]*` +
	`(?:JobCurrentStartDate|EnteredCurrentStatus|JobCurrentStartExecutingDate)` +
	`\)?[ \t]*>=?[ \t]*\(?([-+*0-9() \t]+?)\)*[ \t]*$`)

// setWalltime sets how long a task may run.
func (q *condorJob) setWalltime() {
	seconds := func(n int) {
		if n > 0 {
			q.job.setText("walltime", durationText(time.Duration(min(n, 1<<29))*time.Second))
		}
	}
	q.carryOver(func(s submitSetting) {
		v, _ := q.fixedValue(s)
		m := removeAfter().FindStringSubmatch(v)
		if m == nil || !strings.Contains(strings.ToLower(v), "jobstatus") && strings.Contains(v, "Entered") {
			if v, ok := q.conditionValue(s); ok && !strings.EqualFold(v, "false") {
				q.job.setText("periodic_remove", v)
			}
			return
		}
		limit := strings.TrimRight(m[1], ") \t") + strings.Repeat(")", strings.Count(m[1], "("))
		if n, err := evaluateText(limit); err == nil {
			if f, ok := n.Number(); ok && f < 1<<29 {
				seconds(int(f))
				q.noteDifferenceAt(s, "It becomes a walltime: the task is ended after that time, and has failed.")
			}
		}
	}, "periodic_remove")
	q.carryOver(func(s submitSetting) {
		v, _ := q.fixedValue(s)
		if n, ok := jobFlavours[strings.ToLower(v)]; ok {
			seconds(n)
		}
	}, "+jobflavour", "+jobflavor")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok {
			seconds(min(n, 1<<24) * 60)
		}
	}, "+maxwalltimemins")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok {
			seconds(n)
		}
	}, "allowed_execute_duration", "+maxruntime")
}

// setResource sets a number of processors or GPUs.
func (q *condorJob) setResource(name string, s submitSetting) {
	value := func(texts []string) (string, error) {
		v, err := evaluateText(texts[0])
		n, ok := int64(0), false
		if err == nil {
			n, ok = v.Int()
		}
		if !ok || n < 0 || n > 1<<16 || n == 0 && name == "cpus" {
			return "", fmt.Errorf("%q is no number: an expression over the machine cannot be asked for",
				shownLine(texts[0]))
		}
		return strconv.FormatInt(n, 10), nil
	}
	flat := q.flatText(s.value, 0)
	text, err := q.deriveText(name, []string{flat}, false, value)
	switch t := q.assembleText(text); {
	case err == errNotComputed:
		q.job.setSource(name, "tonumber("+q.assembleText(flat).hclSource()+")")
	case err != nil:
		q.noteCommandMistake(s, err.Error()+".")
	case len(t) == 1 && t[0].expr != "":
		q.job.setSource(name, "tonumber("+t[0].expr+")")
	case text != "" && text != "0":
		q.job.setSource(name, text)
	}
}

// setSize sets an amount of memory or disk.
func (q *condorJob) setSize(name string, s submitSetting, unit roost.Bytes, word string) {
	value := func(texts []string) (string, error) {
		text := strings.TrimSpace(texts[0])
		n, ok := parseSize(text, unit)
		if !ok { // as in 2 * 1024
			v, _ := evaluateText(text)
			var f float64
			if f, ok = v.Number(); ok && f > 0 && f < 1<<40 {
				n = roost.Bytes(f * float64(unit))
			}
		}
		if !ok || n <= 0 {
			return "", fmt.Errorf("%q is no size such as 4GB: an expression cannot be asked for", shownLine(text))
		}
		return sizeText(n), nil
	}
	flat := q.flatText(s.value, 0)
	text, err := q.deriveText(name, []string{flat}, false, value)
	switch {
	case err == errNotComputed:
		t := q.assembleText(flat)
		if last := t[len(t)-1]; last.expr != "" {
			t = t.appendFixed(word)
			q.noteDifferenceAt(s, "The values are taken to be numbers in "+word+".")
		}
		q.job.setSource(name, t.hclSource())
	case err != nil:
		q.noteCommandMistake(s, err.Error()+".")
	default:
		q.job.setSource(name, q.assembleText(text).hclSource())
	}
}
