package sbatch

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// build makes the job.
func (s *submission) build() (r Result, err error) {
	if s.layout, err = s.readLayout(); err != nil {
		return r, err
	}
	s.cwd = s.caller.Dir
	if dir := s.value("chdir"); dir != "" {
		s.cwd = s.absolute(s.caller.Dir, dir)
	}
	name := s.value("job-name")
	if name == "" {
		name = s.file
	}
	if err := s.checkWords(); err != nil {
		return r, err
	}
	s.JobSubmission = &qsub.JobSubmission{Caller: s.caller, Name: jobName(name), Script: s.script,
		ResourceValues: map[string]string{}, Attributes: map[string]string{}, Dir: s.cwd}
	options, err := s.qsubOptions()
	if err != nil {
		return r, err
	}
	if err := s.ApplyOptions(options); err != nil {
		return r, s.refused(err)
	}
	if s.array != "" {
		indexes, err := roost.ParseArrayIndexes(s.array)
		if err != nil {
			return r, &Failure{"sbatch: error: Batch job submission failed: Invalid job array specification\n", 1}
		}
		s.Array, s.ArrayRange = &indexes, s.array
	}
	if r.QsubResult, err = s.NewResult(); err != nil {
		return r, s.refused(err)
	}
	ad := r.Job.Ad
	s.setStreams(ad)
	s.setEnvironment(ad)
	ad.SetInt(roost.AttrNoticePeriod, killWait)
	if s.has("no-requeue") { // qsub would refuse that for an array
		ad.SetBool(roost.AttrRerunnable, false)
	}
	limits, ok := ParseLicenses(s.value("licenses"))
	if !ok {
		return r, fail("Batch job submission failed: Invalid license specification")
	}
	if limits != "" {
		ad.SetString(roost.AttrLimits, limits)
	}
	if err := s.setRecord(ad); err != nil {
		return r, err
	}
	if len(s.args) > 0 {
		list := make([]string, len(s.args))
		for i, a := range s.args {
			list[i] = jobspec.EscapeLiteral(a)
		}
		ad.SetStrings(roost.AttrArguments, list)
	}
	r.Parsable, r.Quiet, r.Wait = s.has("parsable"), s.has("quiet"), s.has("wait")
	r.Partition, r.Reservation = s.value("partition"), s.value("reservation")
	r.TestOnly, r.Nodes, r.CPUs = s.has("test-only"), max(s.layout.nodes, 1), s.layout.tasks*s.layout.cpus
	r.Cluster, r.IsSingleton = s.value("clusters"), s.isSingleton
	return r, nil
}

// refused puts a refusal of qsub in the words of sbatch.
func (s *submission) refused(err error) error {
	var refusal *qsub.RefusalError
	if errors.As(err, &refusal) {
		return fail("Batch job submission failed: %s", strings.TrimPrefix(refusal.Text, "qsub: "))
	}
	return fail("%v", err)
}

func (s *submission) absolute(dir, file string) string {
	if path.IsAbs(file) {
		return path.Clean(file)
	}
	return path.Join(dir, file)
}

// qsubOptions are the options of qsub that mean the same.
func (s *submission) qsubOptions() (list []qsub.OptionValue, err error) {
	add := func(letter byte, value string) { list = append(list, qsub.OptionValue{Letter: letter, Value: value}) }
	add('l', "select="+s.layout.selectText())
	place := "pack"
	if s.layout.nodes > 1 {
		place = "scatter"
	}
	if s.layout.exclusive {
		place += ":excl"
	}
	add('l', "place="+place)
	if text := s.value("time"); text != "" {
		limit, unlimited, ok := ParseTime(text)
		if !ok {
			return nil, invalid("time")
		}
		if !unlimited { // in whole minutes, as Slurm has it
			limit = (limit + time.Minute - 1).Truncate(time.Minute)
			add('l', fmt.Sprintf("walltime=%d", int64(limit.Seconds())))
		}
	}
	if p := s.value("partition"); p != "" {
		first, _, _ := strings.Cut(p, ",")
		add('q', first)
	}
	if a := s.value("account"); a != "" {
		add('A', a)
	}
	if q := s.value("qos"); q != "" && q != "normal" {
		return nil, fail("Batch job submission failed: Invalid qos specification")
	}
	if r := s.value("reservation"); r != "" {
		add('q', r)
	}
	if s.has("hold") {
		add('h', "")
	}
	for _, more := range []func(func(byte, string)) error{s.addNice, s.addMail, s.addExport, s.addDependency} {
		if err := more(add); err != nil {
			return nil, err
		}
	}
	if text := s.value("begin"); text != "" {
		at, ok := ParseBegin(text, s.caller.Now)
		if !ok {
			return nil, invalid("begin")
		}
		if at.After(s.caller.Now) {
			add('a', at.Format("200601021504.05"))
		}
	}
	return list, s.readArray()
}

// addNice adds the place among the user's own jobs: Slurm's nice the other way round.
func (s *submission) addNice(add func(byte, string)) error {
	if !s.has("nice") {
		return nil
	}
	nice := 100
	if text := s.value("nice"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return invalid("nice")
		}
		nice = n
	}
	s.niceValue = nice
	add('p', strconv.Itoa(max(min(-nice, 1023), -1024)))
	return nil
}

// addExport adds the variables that go along.
func (s *submission) addExport(add func(byte, string)) error {
	all, assigned := s.export()
	if all {
		add('V', "")
	}
	if len(assigned) > 0 {
		add('v', strings.Join(assigned, ","))
	}
	return nil
}

// export reads --export: whether the whole environment goes along, and what else does.
func (s *submission) export() (all bool, assigned []string) {
	text := s.value("export")
	switch text {
	case "", "ALL":
		return true, nil
	case "NONE", "NIL":
		return false, nil
	}
	for _, word := range qsub.SplitList(text) {
		name, _, isSet := strings.Cut(word, "=")
		if word == "ALL" {
			all = true
			continue
		}
		if _, there := qsub.LookUpVariable(s.environ, name); isSet || there {
			assigned = append(assigned, word)
		}
	}
	return all, assigned
}

// addMail adds the events of --mail-type.
func (s *submission) addMail(add func(byte, string)) error {
	letters := ""
	for word := range strings.SplitSeq(s.value("mail-type"), ",") {
		switch strings.ToUpper(word) {
		case "", "NONE", "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
			"INVALID_DEPEND":
		case "BEGIN":
			letters += "b"
		case "END":
			letters += "e"
		case "FAIL", "REQUEUE":
			letters += "a"
		case "ALL":
			letters += "abe"
		default:
			return invalid("mail-type")
		}
	}
	if letters != "" {
		add('m', letters)
	}
	if to := s.value("mail-user"); to != "" {
		add('M', to)
	}
	return nil
}

// addDependency adds what --dependency asks for.
func (s *submission) addDependency(add func(byte, string)) error {
	list, isSingleton, err := ParseDependencies(s.value("dependency"))
	if err != nil {
		return fail("Batch job submission failed: %v", err)
	}
	if s.isSingleton = isSingleton; len(list) > 0 {
		add('W', "depend="+strings.Join(list, ","))
	}
	return nil
}

// The refusals of a dependency: Slurm's own, and that of what is not here.
var (
	errDependency = errors.New("Job dependency problem")
	errSingleton  = errors.New("singleton cannot be one of several alternatives in --dependency: leave it out, or " +
		"join all with commas")
)

// ParseDependencies reads the value of --dependency, each as a type and a job as in
// DependsOn. With a question mark anywhere they are alternatives. Singleton is told apart
// from them. Minutes have an effect behind after only, as in Slurm.
func ParseDependencies(text string) (list []string, isSingleton bool, err error) {
	if text == "" || text == "none" {
		return nil, false, nil
	}
	mark := ""
	if strings.Contains(text, "?") {
		mark = "?"
	}
	for word := range strings.SplitSeq(strings.ReplaceAll(text, "?", ","), ",") {
		if word == "singleton" {
			isSingleton = true
			continue
		}
		kind, ids, found := strings.Cut(word, ":")
		if kind == "afterburstbuffer" { // there are no burst buffers that a job would have to empty
			kind = "afterany"
		}
		if !found || !slices.Contains([]string{"after", "afterany", "afterok", "afternotok", "aftercorr"}, kind) {
			return nil, false, errDependency
		}
		if mark != "" && kind == "aftercorr" {
			kind = "afterok"
		}
		for id := range strings.SplitSeq(ids, ":") {
			id, minutes, isDelayed := strings.Cut(id, "+")
			if _, err := strconv.ParseUint(minutes, 10, 31); isDelayed && err != nil {
				return nil, false, errDependency
			}
			digits := strings.TrimRight(id, "0123456789")
			if id == "" || digits != "" && !strings.Contains(digits, ".") && !strings.Contains(id, "_") {
				return nil, false, errDependency
			}
			id, _, _ = strings.Cut(id, "_") // the whole array
			if isDelayed && kind == "after" {
				id += "+" + minutes
			}
			list = append(list, mark+kind+":"+id)
		}
	}
	if isSingleton && mark != "" {
		return nil, false, errSingleton
	}
	return list, isSingleton, nil
}

// readArray reads --array: indexes, and how many tasks may run at once.
func (s *submission) readArray() error {
	text := s.value("array")
	if text == "" {
		return nil
	}
	indexes, most, limited := strings.Cut(text, "%")
	s.array = strings.TrimSuffix(strings.TrimPrefix(indexes, "["), "]")
	if !isArrayBelowMaximum(s.array) {
		return fail("Batch job submission failed: Invalid job array specification")
	}
	if !limited {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(most, "]"))
	if err != nil || n < 0 {
		return fail("Batch job submission failed: Invalid job array specification")
	}
	if n == 0 {
		return nil
	}
	return s.refusedUnless(s.ApplyOptions([]qsub.OptionValue{{Letter: 't', Value: s.array + "%" + strconv.Itoa(n)}}))
}

// MaxArraySize is above all indexes of an array: the highest value that Slurm allows.
const MaxArraySize = 4_000_001

// isArrayBelowMaximum reports whether no number in an array's indexes is too high.
func isArrayBelowMaximum(indexes string) bool {
	for word := range strings.FieldsFuncSeq(indexes, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.ParseUint(word, 10, 64); err != nil || n >= MaxArraySize {
			return false
		}
	}
	return true
}

func (s *submission) refusedUnless(err error) error {
	if err == nil {
		return nil
	}
	return s.refused(err)
}

// quoteRegexp quotes what is special in a regular expression.
func quoteRegexp(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// constraint is an expression for what --constraint says: features with & and | between
// them. A feature is an attribute of the machine that is true.
func constraint(text string) (string, error) {
	bad := fail("Batch job submission failed: Invalid feature specification")
	var alternatives []string
	for part := range strings.SplitSeq(text, "|") {
		var all []string
		for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return r == '&' || r == ',' }) {
			if !isFeature(word) {
				return "", bad
			}
			all = append(all, "("+word+" =?= true)")
		}
		if len(all) == 0 {
			return "", bad
		}
		alternatives = append(alternatives, strings.Join(all, " && "))
	}
	return "(" + strings.Join(alternatives, " || ") + ")", nil
}

func isFeature(word string) bool {
	for i, r := range word {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return word != "" && !slices.Contains([]string{"true", "false", "undefined", "error", "is", "isnt", "parent"},
		strings.ToLower(word))
}
