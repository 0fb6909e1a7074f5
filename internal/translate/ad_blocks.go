package translate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// blockSetting is a setting of a block: its attribute in the block's ad, and the form of
// its value.
type blockSetting struct {
	name, attribute string
	form            valueForm
}

// valueForm is how a value of an ad is written in a job file.
type valueForm int

const (
	asText    valueForm = iota
	asNumber            // without quotes
	asTruth             // true or false
	asSpan              // seconds, with a unit
	asPercent           // a part of 1
	asMiB               // with a unit
	asBytes             // with a unit
	asAmount            // a number of tasks, or a part of them
	asList              // of texts
	asHeaders           // a list of "Name: value", as a map
	asSignal            // the number of a signal, by its name
)

// innerBlocks are the blocks that a job has at most once, each by the attribute with its
// ad.
var innerBlocks = []struct {
	kind, attribute string
	settings        []blockSetting
	backoff         []blockSetting
}{
	{kind: "service", attribute: roost.AttrService, settings: []blockSetting{
		{"lost_after", roost.AttrLostAfter, asSpan}, {"overlap", roost.AttrOverlap, asTruth},
		{"restarts", roost.AttrRestarts, asNumber}, {"window", roost.AttrWindow, asSpan},
		{"drain", roost.AttrDrain, asSpan}, {"stop_url", roost.AttrStopURL, asText},
		{"stop_port", roost.AttrStopPort, asText}},
		backoff: []blockSetting{{"first", roost.AttrBackoffFirst, asSpan}, {"max", roost.AttrBackoffMax, asSpan}}},
	{kind: "schedule", attribute: roost.AttrSchedule, settings: []blockSetting{
		{"cron", roost.AttrCron, asText}, {"zone", roost.AttrZone, asText}, {"overlap", roost.AttrOverlap, asText},
		{"missed", roost.AttrMissed, asText}, {"deadline", roost.AttrDeadline, asSpan}}},
	{kind: "update", attribute: roost.AttrUpdate, settings: []blockSetting{
		{"at_once", roost.AttrAtOnce, asAmount}, {"surge", roost.AttrSurge, asAmount},
		{"max_down", roost.AttrMaxDown, asAmount}, {"settle", roost.AttrSettling, asSpan},
		{"ready_within", roost.AttrReadyWithin, asSpan}, {"progress", roost.AttrProgress, asSpan},
		{"pulse", roost.AttrPulse, asSpan}, {"failures", roost.AttrFailures, asNumber},
		{"disruptions", roost.AttrDisruptions, asNumber}, {"on_failure", roost.AttrOnFailure, asText},
		{"canary", roost.AttrCanary, asNumber}, {"promote", roost.AttrPromoteAfter, asSpan},
		{"resize", roost.AttrResize, asText}, {"tasks", roost.AttrUpdateTasks, asText}}},
	{kind: "autoscale", attribute: roost.AttrAutoscale, settings: []blockSetting{
		{"min", roost.AttrScaleMin, asNumber}, {"max", roost.AttrScaleMax, asNumber},
		{"metric", roost.AttrScaleMetric, asText}, {"port", roost.AttrScalePort, asText},
		{"path", roost.AttrScalePath, asText}, {"target", roost.AttrScaleTarget, asNumber},
		{"cpu", roost.AttrScaleCPU, asPercent}, {"memory", roost.AttrScaleMemory, asPercent},
		{"waiting_queue", roost.AttrWaitingQueue, asText}, {"waiting_job", roost.AttrWaitingJob, asText},
		{"tolerance", roost.AttrTolerance, asPercent}, {"up_window", roost.AttrUpWindow, asSpan},
		{"down_window", roost.AttrDownWindow, asSpan}, {"period", roost.AttrScalePeriod, asSpan},
		{"every", roost.AttrScaleEvery, asSpan}, {"up_by", roost.AttrUpBy, asAmount},
		{"down_by", roost.AttrDownBy, asAmount}}},
	{kind: "vertical_autoscale", attribute: roost.AttrVerticalAutoscale, settings: []blockSetting{
		{"min_cpus", roost.AttrMinCpus, asNumber}, {"max_cpus", roost.AttrMaxCpus, asNumber},
		{"min_memory", roost.AttrMinMemory, asMiB}, {"max_memory", roost.AttrMaxMemory, asMiB},
		{"window", roost.AttrSizeWindow, asSpan}, {"every", roost.AttrScaleEvery, asSpan},
		{"margin", roost.AttrMargin, asPercent}}},
	{kind: "logs", attribute: roost.AttrLogs, settings: []blockSetting{{"size", roost.AttrLogSize, asBytes},
		{"files", roost.AttrLogFiles, asNumber}, {"keep", roost.AttrLogRetain, asSpan}}},
}

// labelledBlocks are the blocks that a job has any number of, each with a name.
var labelledBlocks = []struct {
	kind, attribute string
	settings        []blockSetting
}{
	{"port", roost.AttrPorts, []blockSetting{{"static", roost.AttrPortStatic, asNumber},
		{"listen", roost.AttrPortListen, asTruth}, {"host", roost.AttrPortHost, asText}}},
	{"check", roost.AttrChecks, []blockSetting{{"http", roost.AttrCheckPath, asText},
		{"exec", roost.AttrCheckCommand, asList}, {"method", roost.AttrCheckMethod, asText},
		{"headers", roost.AttrCheckHeaders, asHeaders}, {"port", roost.AttrCheckPort, asText},
		{"for", roost.AttrCheckFor, asText}, {"every", roost.AttrCheckEvery, asSpan},
		{"timeout", roost.AttrCheckTimeout, asSpan}, {"start_within", roost.AttrCheckStartWithin, asSpan},
		{"fails", roost.AttrCheckFails, asNumber}, {"passes", roost.AttrCheckPasses, asNumber}}},
	{"secret", roost.AttrSecrets, []blockSetting{{"on_change", roost.AttrOnChange, asText},
		{"signal", roost.AttrSignal, asSignal}, {"env", roost.AttrVariable, asText}}},
}

// writeBlocks writes the blocks within the job.
func (w *adWriter) writeBlocks() {
	for i := range labelledBlocks {
		w.writeLabelled(labelledBlocks[i].kind, labelledBlocks[i].attribute, labelledBlocks[i].settings)
	}
	for _, b := range innerBlocks {
		ad, ok := w.ad.Sub(b.attribute)
		if !w.has(b.attribute) || !ok {
			continue
		}
		left := attributeNames(ad)
		one := innerBlock{kind: b.kind, entries: w.blockEntries(ad, b.settings, left)}
		if waits := w.blockEntries(ad, b.backoff, left); len(waits) > 0 {
			one.blocks = append(one.blocks, innerBlock{kind: "backoff", entries: waits})
		}
		w.noteLeft(b.kind, left)
		w.job.blocks = append(w.job.blocks, one)
	}
	if mounts, ok := w.list(roost.AttrPackageMounts); ok {
		for _, text := range mounts {
			if m, err := imageref.ParsePackageMount(text); err == nil {
				w.job.blocks = append(w.job.blocks, innerBlock{kind: "package " + quotedText(m.Reference),
					entries: []blockEntry{{"at", quotedText(m.Target)}}})
			}
		}
	}
	w.writeCheckpoint()
}

// attributeNames are the names of an ad's attributes, of which those that are written are
// taken out.
func attributeNames(ad *classad.Ad) map[string]bool {
	left := map[string]bool{}
	for name := range ad.All() {
		left[name] = true
	}
	return left
}

func (w *adWriter) noteLeft(kind string, left map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(left)) {
		w.note("A block %s has nothing for the attribute %s.", kind, name)
	}
}

// writeLabelled writes the blocks of a list of ads.
func (w *adWriter) writeLabelled(kind, attribute string, settings []blockSetting) {
	list, ok := w.ad.Eval(attribute, nil).Elements(nil)
	if !w.has(attribute) || !ok {
		return
	}
	for _, v := range list {
		ad, ok := v.Ad()
		if !ok {
			continue
		}
		name, _ := ad.Str(roost.AttrName)
		left := attributeNames(ad)
		delete(left, roost.AttrName)
		if group, ok := ad.Str(roost.AttrSecretGroup); ok && kind == "secret" {
			name = group + "/" + name
			delete(left, roost.AttrSecretGroup)
		}
		one := innerBlock{kind: kind + " " + quotedText(name), entries: w.blockEntries(ad, settings, left)}
		if check, ok := ad.Str(roost.AttrCheckKind); ok && kind == "check" {
			delete(left, roost.AttrCheckKind)
			if check == "tcp" {
				one.entries = append([]blockEntry{{"tcp", "true"}}, one.entries...)
			}
		}
		w.noteLeft(kind, left)
		w.job.blocks = append(w.job.blocks, one)
	}
}

// blockEntries writes the settings that an ad has, and takes them out of left.
func (w *adWriter) blockEntries(ad *classad.Ad, settings []blockSetting, left map[string]bool) (all []blockEntry) {
	for _, s := range settings {
		if _, ok := ad.Lookup(s.attribute); !ok {
			continue
		}
		if source, ok := s.source(ad); ok {
			all = append(all, blockEntry{s.name, source})
			delete(left, s.attribute)
		}
	}
	return all
}

// source writes the value of a setting.
func (s blockSetting) source(ad *classad.Ad) (source string, ok bool) {
	text, isText := ad.Str(s.attribute)
	number, isNumber := ad.Real(s.attribute)
	switch s.form {
	case asText:
		return quotedText(text), isText
	case asNumber:
		return numberText(number), isNumber
	case asTruth:
		on, ok := ad.Bool(s.attribute)
		return strconv.FormatBool(on), ok
	case asSpan:
		return quotedText(spanText(number)), isNumber
	case asPercent:
		return quotedText(numberText(math.Round(number*1e8)/1e6) + "%"), isNumber
	case asMiB:
		return quotedText(exactSize(int64(number), roost.MiB)), isNumber
	case asBytes:
		return quotedText(exactSize(int64(number), 1)), isNumber
	case asAmount:
		if _, err := strconv.Atoi(text); err == nil {
			return text, isText
		}
		return quotedText(text), isText
	case asList:
		list, ok := ad.Strings(s.attribute)
		return textListSource(list), ok
	case asHeaders:
		list, ok := ad.Strings(s.attribute)
		return headersSource(list), ok
	case asSignal:
		return signalSource(int32(number))
	}
	return "", false
}

func headersSource(list []string) string {
	parts := make([]string, len(list))
	for i, h := range list {
		name, value, _ := strings.Cut(h, ": ")
		parts[i] = quotedText(name) + " = " + quotedText(value)
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// signalSource writes the name of a signal.
func signalSource(number int32) (string, bool) {
	for _, name := range []string{"HUP", "INT", "QUIT", "ABRT", "USR1", "USR2", "ALRM", "TERM", "CONT", "TSTP", "TTIN",
		"TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR"} {
		if n, err := roost.SignalNumber(name); err == nil && n == number {
			return quotedText(name), true
		}
	}
	return "", false
}

// writeCheckpoint writes whether and how the work of a task is saved.
func (w *adWriter) writeCheckpoint() {
	on, ok := w.truth(roost.AttrCheckpoint)
	if !ok {
		return
	}
	one := innerBlock{kind: "checkpoint"}
	add := func(name, source string) { one.entries = append(one.entries, blockEntry{name, source}) }
	if !on {
		add("enabled", "false")
	}
	if self, _ := w.truth(roost.AttrCheckpointSelf); self {
		add("method", `"self"`)
	}
	if n, ok := w.number(roost.AttrCheckpointEvery); ok {
		text := spanText(float64(n))
		if n == 0 {
			text = "auto"
		} else if n < 0 {
			text = "never"
		}
		add("every", quotedText(text))
	}
	for _, s := range []struct{ name, attribute string }{{"on_vacate", roost.AttrCheckpointVacate},
		{"before_walltime", roost.AttrCheckpointAtLimit}} {
		if v, ok := w.truth(s.attribute); ok {
			add(s.name, strconv.FormatBool(v))
		}
	}
	if name, ok := w.text(roost.AttrCheckpointSignal); ok {
		add("signal", quotedText(name))
	}
	if n, ok := w.number(roost.AttrCheckpointCode); ok {
		add("exit_code", strconv.FormatInt(n, 10))
	}
	if list, ok := w.list(roost.AttrCheckpointFiles); ok {
		add("files", textListSource(list))
	}
	w.job.blocks = append(w.job.blocks, one)
}

// overrideQuantity is one of overrideQuantities.
type overrideQuantity struct {
	name, attribute string
	write           func(value string) string
	none            string // the value that is written by leaving the setting out
}

// overrideQuantities are what tasks may have of their own by a column of the name of an
// attribute. Sizes in columns are bytes.
var overrideQuantities = []overrideQuantity{
	{"cpus", roost.AttrRequestCpus, func(v string) string { return v }, ""},
	{"memory", roost.AttrRequestMemory, quotedBytes, ""},
	{"disk", roost.AttrRequestDisk, quotedBytes, "0"},
	{"gpus", roost.AttrRequestGpus, func(v string) string { return v }, "0"},
	{"gpu_memory", roost.AttrRequestGpuMem, quotedBytes, "0"},
	{"disk_io", roost.AttrRequestDiskIO, quotedRate, "0"},
	{"network", roost.AttrRequestNet, quotedRate, "0"},
	{"processes", roost.AttrProcesses, func(v string) string { return v }, ""},
	{"walltime", roost.AttrWalltime, func(v string) string {
		f, _ := strconv.ParseFloat(v, 64)
		return quotedText(spanText(f))
	}, "0"},
	{"requirements", roost.AttrRequirements, quotedText, "true"},
	{"rank", roost.AttrRank, quotedText, "0"},
}

func quotedRate(v string) string {
	n, _ := strconv.ParseInt(v, 10, 64)
	return quotedText(exactSize(n, 1) + "/s")
}

func quotedBytes(v string) string {
	n, _ := strconv.ParseInt(v, 10, 64)
	return quotedText(exactSize(n, 1))
}

// writeOverrides writes the columns that stand for attributes, as blocks for tasks that
// have the same values.
func (w *adWriter) writeOverrides() {
	groups := map[string][]int{}
	var order []string
	for i := range w.count {
		key := ""
		for _, q := range overrideQuantities {
			if values := w.values[q.attribute]; i < len(values) && !isUniform(values) {
				key += fmt.Sprintf("%d:%s", len(values[i]), values[i])
			}
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	w.writeBases()
	if len(order) < 2 {
		return
	}
	if len(order) > maxOverrides {
		w.note("The tasks differ in what they ask for in %d ways; %d are here.", len(order), maxOverrides)
		order = order[:maxOverrides]
	}
	for _, key := range order {
		tasks := groups[key]
		entries := []blockEntry{{"tasks", quotedText(rangesText(tasks))}}
		for _, q := range overrideQuantities {
			if values := w.values[q.attribute]; len(values) > 0 && !isUniform(values) && !w.isBase(&q, tasks[0]) {
				entries = append(entries, blockEntry{q.name, q.write(values[tasks[0]])})
			}
		}
		if len(entries) > 1 {
			w.job.overrides = append(w.job.overrides, entries)
		}
	}
}

// isBase reports whether a task has the value that the job has without overrides.
func (w *adWriter) isBase(q *overrideQuantity, task int) bool {
	value := w.values[q.attribute][task]
	if gpus := w.values[roost.AttrRequestGpus]; q.attribute == roost.AttrRequestGpuMem && len(gpus) > 0 {
		return gpus[task] == "0" // memory of no GPU
	}
	return value == q.none || w.job.settings[q.name] == q.write(value)
}

// writeBases makes settings of the columns in which all tasks have the same value. It
// leaves out settings that some tasks must not have.
func (w *adWriter) writeBases() {
	for _, q := range overrideQuantities {
		values := w.values[q.attribute]
		switch {
		case len(values) == 0:
		case isUniform(values) && values[0] != q.none:
			w.job.setSource(q.name, q.write(values[0]))
		case q.none != "" && slices.Contains(values, q.none):
			delete(w.job.settings, q.name)
		case q.attribute == roost.AttrRequestGpuMem && !isUniform(w.values[roost.AttrRequestGpus]):
			delete(w.job.settings, q.name)
		}
	}
}

// rangesText writes numbers in rising order as "0-3,7".
func rangesText(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		end := i
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if end > i {
			b.WriteString("-" + strconv.Itoa(list[end]))
		}
		i = end + 1
	}
	return b.String()
}
