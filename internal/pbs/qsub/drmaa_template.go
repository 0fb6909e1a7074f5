package qsub

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// Template is a job template of DRMAA 1.0 (GFD.133), as the library libdrmaa sends it.
type Template struct {
	Version    int                 `json:"v"`
	Key        string              `json:"key"`        // the submit key
	Attributes map[string]string   `json:"attributes"` // by their names in DRMAA
	Lists      map[string][]string `json:"lists"`      // vector attributes, likewise
	Bulk       *TemplateIndexes    `json:"bulk"`       // nil: one job
}

// TemplateIndexes are the indexes of the jobs of drmaa_run_bulk_jobs.
type TemplateIndexes struct {
	First int `json:"first"`
	Last  int `json:"last"`
	Step  int `json:"step"`
}

// TemplateError is a refusal of a template, with its error number in DRMAA.
type TemplateError struct {
	Number int
	Text   string
}

func (e *TemplateError) Error() string { return e.Text }

// Error numbers of DRMAA (GFD.133).
const (
	DRMAAInvalidArgument        = 4
	DRMAAInvalidAttributeFormat = 13
	DRMAAInvalidAttributeValue  = 14
	DRMAAConflictingAttributes  = 15
	DRMAADenied                 = 17
)

// Placeholders in the paths of a template.
const (
	homePlaceholder      = "$drmaa_hd_ph$"
	directoryPlaceholder = "$drmaa_wd_ph$"
	indexPlaceholder     = "$drmaa_incr_ph$"
)

// templateReader turns a template into a submission.
type templateReader struct {
	*JobSubmission
	template Template
	indexes  []int
	incr     string // what stands for the index: a reference, or the index itself
}

// ParseTemplate makes the job of a template, and returns the indexes of a bulk job. The
// options of the category come first, then those of the native specification, then the
// attributes. A bulk job of one index is no array. Errors are of type *TemplateError.
func ParseTemplate(t Template, category []string, caller QsubCaller) (QsubResult, []int, error) {
	s := &JobSubmission{Caller: caller, ResourceValues: map[string]string{}, Attributes: map[string]string{}}
	r := templateReader{JobSubmission: s, template: t}
	for _, step := range []func() error{
		r.checkVersion, r.readIndexes, func() error { return r.readNative("drmaa_job_category", category) },
		r.readNativeAttribute, r.readCommand, r.readName, r.readDirectory, r.readEnvironment, r.readTimes,
		r.readLimits, r.readMail, r.readStreams,
	} {
		if err := step(); err != nil {
			return QsubResult{}, nil, err
		}
	}
	result, err := s.NewResult()
	if err != nil {
		return QsubResult{}, nil, deniedError(err)
	}
	return result, r.indexes, r.finish(&result)
}

func (r *templateReader) attribute(name string) string { return r.template.Attributes["drmaa_"+name] }

func (r *templateReader) checkVersion() error {
	if r.template.Version != 1 {
		return &TemplateError{DRMAAInvalidArgument, fmt.Sprintf("version %d of templates is not known here: the "+
			"library is of another release than qsub", r.template.Version)}
	}
	return nil
}

// deniedError is what qsub refuses, in the words of DRMAA.
func deniedError(err error) error {
	var known *TemplateError
	if errors.As(err, &known) {
		return err
	}
	return &TemplateError{DRMAADenied, strings.TrimPrefix(err.Error(), "qsub: ")}
}

func valueError(name, format string, args ...any) error {
	return &TemplateError{DRMAAInvalidAttributeValue, "drmaa_" + name + ": " + fmt.Sprintf(format, args...)}
}

func formatError(name, want string) error {
	return &TemplateError{DRMAAInvalidAttributeFormat, "drmaa_" + name + " is not of the form " + want}
}

// readIndexes reads which jobs a bulk has. A falling sequence has the same jobs as the
// rising one.
func (r *templateReader) readIndexes() error {
	b := r.template.Bulk
	if b == nil {
		return nil
	}
	const most, maxBulk = 10_000_000, 1_000_000
	if b.First < 1 || b.Last < 1 || b.First > most || b.Last > most || b.Step == 0 || b.Step < -most || b.Step > most ||
		b.Step > 0 && b.Last < b.First || b.Step < 0 && b.Last > b.First {
		return &TemplateError{DRMAAInvalidArgument, fmt.Sprintf("the indexes %d to %d by steps of %d: they begin at "+
			"1, end at %d at most, and the step leads from the first towards the last", b.First, b.Last, b.Step, most)}
	}
	count := (b.Last-b.First)/b.Step + 1
	if count > maxBulk {
		return &TemplateError{DRMAADenied, fmt.Sprintf("%d jobs at once: a bulk has at most %d", count, maxBulk)}
	}
	for i := range count {
		r.indexes = append(r.indexes, b.First+i*b.Step)
	}
	if count == 1 {
		r.incr = strconv.Itoa(b.First)
		return nil
	}
	rising := slices.Sorted(slices.Values(r.indexes))
	if err := r.setArray('J', fmt.Sprintf("%d-%d:%d", rising[0], rising[count-1], max(b.Step, -b.Step))); err != nil {
		return deniedError(err)
	}
	r.incr = "^array_index^"
	return nil
}

// readNativeAttribute reads the native specification: options of qsub.
func (r *templateReader) readNativeAttribute() error {
	words, ok := SplitWords(r.attribute("native_specification"))
	if !ok || len(words) > maxWords {
		return formatError("native_specification", "options of qsub: a quote is not closed, or there are too many")
	}
	return r.readNative("drmaa_native_specification", words)
}

// readNative applies options of qsub, without those that would make another kind of job.
func (r *templateReader) readNative(name string, words []string) error {
	options, operands, command, err := splitOptions(words, true)
	switch {
	case err != nil:
		text, _, _ := strings.Cut(err.Error(), "\n")
		return &TemplateError{DRMAADenied, name + ": " + strings.TrimPrefix(text, "qsub: ")}
	case len(operands) > 0 || command != nil:
		return &TemplateError{DRMAADenied, name + " has a word that is no option of qsub: the command is in " +
			"drmaa_remote_command"}
	}
	for _, o := range options {
		if strings.IndexByte("JtIXFCz", o.Letter) >= 0 {
			return &TemplateError{DRMAADenied, name + ": the option -" + string(o.Letter) + " cannot be used here"}
		}
	}
	if err := r.ApplyOptions(options); err != nil {
		return &TemplateError{DRMAADenied, name + ": " + strings.TrimPrefix(err.Error(), "qsub: ")}
	}
	return nil
}

func (r *templateReader) readCommand() error {
	command := r.attribute("remote_command")
	if command == "" {
		return &TemplateError{DRMAAInvalidAttributeValue, "drmaa_remote_command is not set: it names the program"}
	}
	r.Command = append([]string{command}, r.template.Lists["drmaa_v_argv"]...)
	switch state := r.attribute("js_state"); state {
	case "", "drmaa_active":
	case "drmaa_hold":
		r.held = true
	default:
		return valueError("js_state", "%q is neither drmaa_active nor drmaa_hold", state)
	}
	return nil
}

// readName reads the name of the job; without one it is that of the program.
func (r *templateReader) readName() error {
	if name := r.attribute("job_name"); name != "" {
		if !isJobName(name) {
			return valueError("job_name", "%q is no name of a job: it has at most 230 letters, digits, and any of "+
				"_ . + -", name)
		}
		r.Name = name
	}
	if r.Name != "" {
		return nil
	}
	r.Name = strings.Map(func(c rune) rune {
		if c < 128 && isPlainName(string(c)) {
			return c
		}
		return '_'
	}, path.Base(r.Command[0]))
	if r.Name = strings.TrimLeft(r.Name, "."); !isJobName(r.Name) {
		r.Name = "drmaa"
	}
	return nil
}

// readDirectory reads the working directory. Paths that are not absolute begin there.
func (r *templateReader) readDirectory() error {
	dir := r.attribute("wd")
	if strings.Contains(dir, directoryPlaceholder) {
		return valueError("wd", "%s cannot stand in the working directory itself", directoryPlaceholder)
	}
	if dir == "" {
		r.Dir = cmp.Or(r.Dir, r.Caller.Home)
	} else if r.Dir = strings.ReplaceAll(r.expandHome(dir), indexPlaceholder, r.incr); !path.IsAbs(r.Dir) {
		return valueError("wd", "%q is not absolute: write the whole path, or begin with %s", dir, homePlaceholder)
	}
	r.Caller.Dir = path.Clean(r.Dir)
	return nil
}

// expandHome replaces the placeholder of the home directory, which stands at the
// beginning.
func (r *templateReader) expandHome(p string) string {
	if rest, ok := strings.CutPrefix(p, homePlaceholder); ok {
		return r.Caller.Home + rest
	}
	return p
}

func (r *templateReader) readEnvironment() error {
	if r.export == nil {
		r.export = map[string]string{}
	}
	for _, entry := range r.template.Lists["drmaa_v_env"] {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t\n\x00") {
			return formatError("v_env", fmt.Sprintf("NAME=VALUE: %q", entry))
		}
		r.export[name] = value
	}
	if r.incr != "" && r.Array == nil { // of a bulk of one
		r.export["PBS_ARRAY_INDEX"] = r.incr
	}
	return nil
}

// readTimes reads the start time.
func (r *templateReader) readTimes() error {
	if text := r.attribute("start_time"); text != "" {
		at, ok := parseTemplateTime(text, r.Caller.Now)
		if !ok {
			return formatError("start_time", timeForm)
		}
		r.Start = at
	}
	return nil
}

// readLimits reads the hard limits of the run time. A suspended task uses none of
// either. The soft ones are estimates, and must not exceed them.
func (r *templateReader) readLimits() error {
	var hard time.Duration
	for _, kind := range []string{"wct", "duration"} {
		limits := [2]time.Duration{}
		for i, suffix := range []string{"_hlimit", "_slimit"} {
			text := r.attribute(kind + suffix)
			if text == "" {
				continue
			}
			var ok bool
			if limits[i], ok = parseTemplateDuration(text); !ok || limits[i] <= 0 {
				return formatError(kind+suffix, "[[HOURS:]MINUTES:]SECONDS, and longer than 0")
			}
		}
		if limits[0] > 0 && limits[1] > limits[0] {
			return &TemplateError{DRMAAConflictingAttributes, fmt.Sprintf("drmaa_%s_slimit is longer than "+
				"drmaa_%[1]s_hlimit", kind)}
		}
		if limits[0] > 0 && (hard == 0 || limits[0] < hard) {
			hard = limits[0]
		}
	}
	if hard > 0 {
		r.ResourceValues["walltime"] = strconv.FormatInt(wholeSeconds(hard), 10)
	}
	return nil
}

// readMail reads who is told of the end of the job.
func (r *templateReader) readMail() error {
	if list := r.template.Lists["drmaa_v_email"]; len(list) > 0 {
		if slices.ContainsFunc(list, func(a string) bool { return a == "" || strings.ContainsAny(a, ", \t\n\x00") }) {
			return formatError("v_email", "a list of addresses")
		}
		r.MailTo = strings.Join(list, ",")
		r.Mail = cmp.Or(r.Mail, "ae")
	}
	switch v := r.attribute("block_email"); v {
	case "", "0", "n":
	case "1", "y":
		r.Mail = "n"
	default:
		return valueError("block_email", "%q is neither 0 nor 1", v)
	}
	return nil
}

// readStreams reads where standard output and standard error go.
func (r *templateReader) readStreams() error {
	for _, stream := range []struct {
		name  string
		value *string
	}{{"output_path", &r.out}, {"error_path", &r.err}} {
		file, err := r.streamPath(stream.name)
		if err != nil {
			return err
		}
		*stream.value = cmp.Or(file, *stream.value)
	}
	switch v := r.attribute("join_files"); v {
	case "", "n":
	case "y":
		if r.attribute("error_path") != "" && r.attribute("output_path") == "" {
			return &TemplateError{DRMAAConflictingAttributes, "drmaa_join_files is y and only drmaa_error_path is " +
				"set: both streams go to drmaa_output_path"}
		}
		r.Join = "oe"
	default:
		return valueError("join_files", "%q is neither y nor n", v)
	}
	if v := r.attribute("transfer_files"); strings.Trim(v, "eio") != "" {
		return valueError("transfer_files", "%q has other letters than e, i and o", v)
	}
	return nil
}

// streamPath reads "[host]:path". Files belong to the submit node, whatever host is
// named.
func (r *templateReader) streamPath(name string) (string, error) {
	text := r.attribute(name)
	if text == "" {
		return "", nil
	}
	_, file, ok := strings.Cut(text, ":")
	if !ok || file == "" {
		return "", formatError(name, "[HOST]:PATH: "+strconv.Quote(text))
	}
	if rest, ok := strings.CutPrefix(file, directoryPlaceholder); ok {
		file = r.Caller.Dir + rest
	}
	file = strings.ReplaceAll(r.expandHome(file), indexPlaceholder, r.incr)
	if !path.IsAbs(file) {
		file = path.Join(r.Caller.Dir, file)
	}
	return file, nil
}

// finish writes what qsub has no option for.
func (r *templateReader) finish(result *QsubResult) error {
	ad := result.Job.Ad
	if r.Array != nil { // there may be a directory for each index
		ad.SetString(roost.AttrIwd, r.paths().expandPath(r.Caller.Dir))
	}
	in, err := r.streamPath("input_path")
	if err != nil {
		return err
	}
	if in != "" {
		ad.SetString(roost.AttrIn, r.paths().expandPath(in))
	}
	if text := r.attribute("deadline_time"); text != "" {
		at, ok := parseTemplateTime(text, r.Caller.Now)
		switch {
		case !ok:
			return formatError("deadline_time", timeForm)
		case !at.After(r.Caller.Now):
			return valueError("deadline_time", "it is over")
		}
		return setDeadline(result.Job, at)
	}
	return nil
}

// setDeadline makes a job end at a time, whether it runs or still waits.
func setDeadline(job jobspec.Job, at time.Time) error {
	text := fmt.Sprintf("time() >= %d", at.Unix())
	if err := job.Ad.SetExpr(roost.AttrPeriodicRemove, text); err != nil {
		panic(fmt.Sprintf("condition %q: %v", text, err))
	}
	job.Ad.SetString(roost.AttrPeriodicRemoveReason, jobspec.EscapeLiteral("its deadline is over"))
	return nil
}

const timeForm = "[[[[CC]YY/]MM/]DD] hh:mm[:ss] [+uu:uu|-uu:uu]"

// parseTemplateTime parses DRMAA's partial time stamps. What is left out is that of the
// next such time; a time in the past that is written in full stays there.
func parseTemplateTime(text string, now time.Time) (time.Time, bool) {
	date, clock, where, ok := splitTemplateTime(text, now.Location())
	if !ok {
		return time.Time{}, false
	}
	now = now.In(where)
	year, month, day := now.Date()
	on := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, clock.Hour(), clock.Minute(), clock.Second(), 0, where)
	}
	if date == "" {
		if at := on(year, month, day); !at.Before(now) {
			return at, true
		}
		return on(year, month, day+1), true
	}
	given, err := time.Parse(map[int]string{2: "02", 5: "01/02", 8: "06/01/02", 10: "2006/01/02"}[len(date)], date)
	if err != nil {
		return time.Time{}, false
	}
	switch len(date) {
	case 2:
		at := on(year, month, given.Day())
		if at.Before(now) {
			at = on(year, month+1, given.Day())
		}
		return at, at.Day() == given.Day()
	case 5:
		at := on(year, given.Month(), given.Day())
		if at.Before(now) {
			at = on(year+1, given.Month(), given.Day())
		}
		return at, true
	}
	return on(given.Date()), true
}

// splitTemplateTime splits a time stamp in its date, its time and its zone.
func splitTemplateTime(text string,
	local *time.Location) (date string, clock time.Time, where *time.Location, ok bool) {
	zone := ""
	if i := strings.IndexAny(text, "+-"); i >= 0 {
		text, zone = text[:i], strings.TrimSpace(text[i:])
	}
	where = local
	if zone != "" {
		at, err := time.Parse("-07:00", zone)
		if err != nil {
			return "", clock, nil, false
		}
		_, offset := at.Zone()
		where = time.FixedZone("", offset)
	}
	fields := strings.Fields(text)
	if len(fields) == 2 {
		date, fields = fields[0], fields[1:]
	}
	if len(fields) != 1 {
		return "", clock, nil, false
	}
	layout := "15:04"
	if strings.Count(fields[0], ":") == 2 {
		layout = "15:04:05"
	}
	clock, err := time.Parse(layout, fields[0])
	return date, clock, where, err == nil
}

// parseTemplateDuration parses "[[HOURS:]MINUTES:]SECONDS".
func parseTemplateDuration(text string) (time.Duration, bool) {
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return 0, false
	}
	var seconds int64
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return 0, false
		}
		seconds = seconds*60 + int64(n)
	}
	if seconds > 1<<31 {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}
