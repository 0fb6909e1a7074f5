package translate

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// writeProgram writes what is run, and with what environment.
func (w *adWriter) writeProgram() {
	if list, ok := w.list(roost.AttrEnvironment); ok {
		w.writeEnvironment(list)
	}
	arguments, _ := w.list(roost.AttrArguments)
	sources := make([]string, len(arguments))
	for i, a := range arguments {
		sources[i] = w.source(a)
	}
	script, isScript := w.text(roost.AttrScript)
	shell, hasShell := w.text(roost.AttrShell)
	program, hasProgram := w.text(roost.AttrCmd)
	switch {
	case isScript:
		w.writeScript(script)
		if hasShell {
			w.job.setText("shell", shell)
		}
	case hasProgram:
		w.job.setSource("command", listSource(append([]string{w.source(program)}, sources...)))
		return
	}
	if len(sources) > 0 {
		w.job.setSource("arguments", listSource(sources))
	}
}

// writeScript writes a script as lines if these come back as they are.
func (w *adWriter) writeScript(script string) {
	isPlain := strings.HasSuffix(script, "\n") && strings.TrimSpace(script) != "" &&
		!strings.ContainsFunc(script, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
	if isPlain {
		w.job.script = script
	} else {
		w.job.setText("script", script)
	}
}

// secretVariable matches the names of variables whose values are probably secrets.
var secretVariable = lazyregexp.New(`(?i)secret|passw|passphrase|token|credential|api_?key|private_?key|` +
	`access_?key|cookie`)

func (w *adWriter) writeEnvironment(list []string) {
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		if secretVariable().MatchString(name) {
			w.note("The variable %s is not here, as its name is that of a secret: a block such as secret \"NAME\" { "+
				"env = %q } gives it to the tasks.", name, name)
			continue
		}
		w.job.addToMap("environment", name, w.source(value))
	}
}

// writeFiles writes the directory, and the files of the job.
func (w *adWriter) writeFiles() {
	directory, _ := w.text(roost.AttrIwd)
	if directory != "" {
		w.job.setSource("directory", w.source(directory))
	}
	for _, s := range []struct{ name, attribute string }{{"stdin", roost.AttrIn}, {"stdout", roost.AttrOut},
		{"stderr", roost.AttrErr}, {"user_log", roost.AttrUserLog}} {
		if text, ok := w.text(s.attribute); ok && text != "" {
			w.job.setSource(s.name, w.source(text))
		}
	}
	if join, _ := w.truth(roost.AttrJoinOutput); join {
		w.job.setSource("join_output", "true")
	}
	w.writeTruth("empty_output", roost.AttrKeepEmptyFiles)
	w.writeWords("remove_output", roost.AttrRemoveOutput, []letterWord{{"o", "stdout"}, {"e", "stderr"}})
	if mode, ok := w.text(roost.AttrTransfer); ok && mode != jobspec.StandardDefaults().Transfer {
		w.job.setText("transfer", mode)
	}
	if list, ok := w.list(roost.AttrTransferIn); ok {
		w.writeInputs(list, directory)
	}
	if list, ok := w.list(roost.AttrTransferOut); ok {
		w.writeOutputs(list)
	}
}

// letterWord is a letter of an attribute and the word of job files for it.
type letterWord struct{ letter, word string }

func (w *adWriter) writeWords(name, attribute string, words []letterWord) {
	letters, ok := w.text(attribute)
	if !ok {
		return
	}
	var list []string
	for _, l := range words {
		if strings.Contains(letters, l.letter) {
			list = append(list, l.word)
		}
	}
	w.job.setSource(name, textListSource(list))
}

const transferArrow = " => "

// writeInputs writes the inputs, as a map if their names are equal for all tasks.
func (w *adWriter) writeInputs(list []string, directory string) {
	named := make([]blockEntry, 0, len(list))
	sources := make([]string, 0, len(list))
	for _, entry := range list {
		from, name, hasName := strings.Cut(entry, transferArrow)
		text, isFixed := w.template(name).fixedText()
		if isFixed && hasName {
			named = append(named, blockEntry{text, w.source(from)})
		}
		if short := strings.TrimPrefix(from, strings.TrimSuffix(directory, "/")+"/"); short == name {
			from = name
		}
		sources = append(sources, w.source(from))
	}
	if len(named) == len(list) {
		for _, e := range named {
			w.job.addToMap("inputs", e.name, e.value)
		}
		return
	}
	w.job.setSource("inputs", listSource(sources))
}

// writeOutputs writes the outputs, as a map if one of them gets another name.
func (w *adWriter) writeOutputs(list []string) {
	isRenamed := slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, transferArrow) })
	sources := make([]string, len(list))
	for i, entry := range list {
		from, to, _ := strings.Cut(entry, transferArrow)
		if sources[i] = w.source(from); isRenamed {
			w.job.addToMap("outputs", w.fixed(from), w.source(to))
		}
	}
	if !isRenamed {
		w.job.setSource("outputs", listSource(sources))
	}
}

func (w *adWriter) writeTruth(name, attribute string) {
	if on, ok := w.truth(attribute); ok {
		w.job.setSource(name, strconv.FormatBool(on))
	}
}

// exactSize writes a number of units of bytes without rounding it.
func exactSize(n int64, unit roost.Bytes) string {
	b := roost.Bytes(n) * unit
	for _, u := range []struct {
		size roost.Bytes
		name string
	}{{roost.GiB, "GiB"}, {roost.MiB, "MiB"}, {roost.KiB, "KiB"}} {
		if b%u.size == 0 && b != 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// spanText writes seconds with a unit.
func spanText(seconds float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}} {
		if n := seconds / u.size; seconds > 0 && n == math.Trunc(n) {
			return strconv.FormatFloat(n, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
}

func numberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// writeResources writes what each task asks for.
func (w *adWriter) writeResources() {
	if f, ok := w.ad.Real(roost.AttrRequestCpus); w.has(roost.AttrRequestCpus) && ok {
		w.job.setSource("cpus", numberText(f))
	}
	for _, s := range []struct {
		name, attribute string
		unit            roost.Bytes
	}{{"memory", roost.AttrRequestMemory, roost.MiB}, {"disk", roost.AttrRequestDisk, roost.KiB},
		{"gpu_memory", roost.AttrRequestGpuMem, roost.MiB},
		{"virtual_memory", roost.AttrVirtual, roost.KiB},
		{"process_virtual_memory", roost.AttrProcessVirtual, roost.KiB},
		{"process_memory", roost.AttrProcessMemory, roost.KiB}, {"file_size", roost.AttrFileSize, roost.KiB}} {
		if n, ok := w.number(s.attribute); ok && n != 0 {
			w.job.setText(s.name, exactSize(n, s.unit))
		}
	}
	for _, s := range []struct{ name, attribute string }{{"disk_io", roost.AttrRequestDiskIO},
		{"network", roost.AttrRequestNet}} {
		if n, ok := w.number(s.attribute); ok && n != 0 {
			w.job.setText(s.name, exactSize(n, roost.KiB)+"/s")
		}
	}
	for _, s := range []struct{ name, attribute string }{{"walltime", roost.AttrWalltime},
		{"cpu_time", roost.AttrCPUTime}, {"process_cpu_time", roost.AttrProcessCPU}} {
		if n, ok := w.number(s.attribute); ok && n != 0 {
			w.job.setText(s.name, spanText(float64(n)))
		}
	}
	for _, s := range []struct{ name, attribute string }{{"gpus", roost.AttrRequestGpus}, {"nice", roost.AttrNice},
		{"priority", roost.AttrPriority}, {"retries", roost.AttrMaxRetries},
		{"success_exit_code", roost.AttrSuccessCode}} {
		if n, ok := w.number(s.attribute); ok && n != 0 {
			w.job.setSource(s.name, strconv.FormatInt(n, 10))
		}
	}
	for _, s := range []struct{ name, attribute string }{{"processes", roost.AttrProcesses},
		{"run_count", roost.AttrRunCount}, {"max_running", roost.AttrMaxRunning}} {
		if n, ok := w.number(s.attribute); ok {
			w.job.setSource(s.name, strconv.FormatInt(n, 10))
		}
	}
	if class, ok := w.text(roost.AttrAppClass); ok && class != roost.AppBatch && !w.isService {
		w.job.setText("app_class", class)
	} else if w.isService && class != roost.AppStream {
		w.job.setText("app_class", roost.AppBatch)
	}
}

// writeSettings writes where and when the job runs.
func (w *adWriter) writeSettings() {
	standard := jobspec.StandardDefaults()
	for _, s := range []struct{ name, attribute string }{{"group", roost.AttrGroup},
		{"unix_group", roost.AttrUnixGroup},
		{"spread", roost.AttrSpread}, {"together", roost.AttrPlacementSet}, {"reservation", roost.AttrReservation},
		{"queue", roost.AttrQueue}, {"mpi", roost.AttrMPI}, {"image", roost.AttrContainerImage},
		{"image_workdir", roost.AttrContainerWorkdir}} {
		if text, ok := w.text(s.attribute); ok {
			w.job.setText(s.name, text)
		}
	}
	for _, s := range []struct{ name, attribute string }{{"apart", roost.AttrScatter},
		{"exclusive", roost.AttrExclusive},
		{"hold", roost.AttrHoldOnSubmit}, {"cell_queue", roost.AttrCellQueue}, {"flock", "Flock"},
		{"cpu_slack", roost.AttrCPUSlack}, {"memory_slack", roost.AttrMemorySlack},
		{"rerunnable", roost.AttrRerunnable}, {"image_writable", roost.AttrContainerWritable},
		{"image_entrypoint", roost.AttrUseEntrypoint}} {
		w.writeTruth(s.name, s.attribute)
	}
	for _, s := range []struct{ name, attribute string }{{"packages", roost.AttrPackages}, {"prefer", roost.AttrPrefer},
		{"mounts", roost.AttrContainerMounts}, {"users", roost.AttrAllocUsers}} {
		if list, ok := w.list(s.attribute); ok {
			w.job.setSource(s.name, textListSource(list))
		}
	}
	if whole, _ := w.truth(roost.AttrWholeCores); whole {
		w.job.setText("cores", "whole")
	}
	if n, ok := w.number(roost.AttrCoreThreads); ok {
		w.job.setSource("threads_per_core", strconv.FormatInt(n, 10))
	}
	if one, _ := w.truth(roost.AttrOneNumaNode); one {
		w.job.setText("numa", "one")
	}
	set, isInside := w.text(roost.AttrInAlloc)
	place, _ := w.text(roost.AttrAllocPlace)
	if isInside {
		w.job.setText("in", set)
	}
	if place != "" && place != roost.PlaceByIndex {
		w.job.setText("place", place)
	}
	if band, ok := w.text(roost.AttrBand); ok && band != standard.Band.String() && !isInside {
		w.job.setText("band", band)
	}
	w.writeSpan("notice", roost.AttrNoticePeriod, standard.Notice)
	lease := standard.Lease
	if w.isService {
		lease = -1
	}
	w.writeSpan("lease", roost.AttrJobLease, lease)
	w.writeSpan("start_timeout", roost.AttrStartTimeout, -1)
	if n, ok := w.number(roost.AttrUmask); ok {
		w.job.setText("umask", "0"+strconv.FormatInt(n, 8))
	}
	if n, ok := w.number(roost.AttrStartAfter); ok {
		w.job.setText("start_after", time.Unix(n, 0).UTC().Format(time.RFC3339))
	}
	if limits, ok := w.text(roost.AttrLimits); ok {
		w.job.setSource("limits", textListSource(strings.Split(strings.ReplaceAll(limits, " ", ""), ",")))
	}
	w.writeLabels()
	w.writeMail()
}

// writeSpan writes seconds, unless they are what a job has that says nothing.
func (w *adWriter) writeSpan(name, attribute string, usual time.Duration) {
	if n, ok := w.number(attribute); ok && n != int64(usual/time.Second) {
		w.job.setText(name, spanText(float64(n)))
	}
}

func (w *adWriter) writeLabels() {
	labels, ok := w.ad.Sub(roost.AttrLabels)
	if !w.has(roost.AttrLabels) || !ok {
		return
	}
	for name := range labels.All() {
		text, _ := labels.Str(name)
		w.job.addToMap("labels", name, quotedText(text))
	}
}

func (w *adWriter) writeMail() {
	w.writeWords("mail_on", roost.AttrMailPoints, []letterWord{{"a", "abort"}, {"b", "begin"}, {"e", "end"},
		{"j", "tasks"}})
	if users, ok := w.text(roost.AttrMailUsers); ok && users != "" {
		w.job.setSource("mail_to", textListSource(strings.Split(users, ",")))
	}
}

// writeConditions writes requirements, rank and what becomes of tasks under conditions.
func (w *adWriter) writeConditions() {
	write := func(name, attribute string) {
		if e, ok := w.ad.Lookup(attribute); w.has(attribute) && ok {
			w.job.setText(name, e.String())
		}
	}
	write("requirements", roost.AttrRequirements)
	write("rank", roost.AttrRank)
	for _, c := range roost.PolicyConditions() {
		write(c.Setting, c.Attr)
		if reason, ok := w.text(c.ReasonAttr); ok && c.ReasonAttr != "" {
			w.job.setText(c.Setting+"_reason", reason)
		}
	}
}
