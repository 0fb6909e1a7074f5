package qalter

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// JobAlteration is a parsed command line of qalter.
type JobAlteration struct {
	Operands []string
	options  []qsub.OptionValue
	caller   qsub.QsubCaller
}

// CurrentJob is a job before qalter changes it.
type CurrentJob struct {
	Ad    *classad.Ad // the whole job ad
	Owner string
	Host  string // submit node of the job
	Tasks int
	Array bool
	Runs  bool // running, and not an array
}

// JobChange is the change that an alteration makes.
type JobChange struct {
	Ad         *classad.Ad          // changed attributes; undefined: the attribute is removed
	Count      int                  // number of tasks, if it changes; otherwise 0
	Columns    []jobspec.TaskColumn // columns, if Count is set
	HoldAction string               // "hold", "release" or neither
}

const (
	alterFlags          = ""
	alterFlagsWithValue = "aAcehjklmMNopPrRSuvW"
)

// ParseQalter parses the arguments of qalter, without its name: those of OpenPBS, and -v
// of Torque. What is invalid for every job is refused at once, with a *RefusalError.
func ParseQalter(args []string, caller qsub.QsubCaller) (*JobAlteration, error) {
	a := &JobAlteration{caller: caller}
	var command []string
	var err error
	if a.options, a.Operands, command, err = qsub.SplitOptionsFor(args, true, alterFlags, alterFlagsWithValue,
		alterUsage); err != nil {
		return nil, asQalterError(err)
	}
	if a.Operands = append(a.Operands, command...); len(a.Operands) == 0 {
		return nil, &qsub.RefusalError{Text: alterUsage, ExitStatus: qsub.ExitUsage}
	}
	trial := &qsub.JobSubmission{Caller: caller, ResourceValues: map[string]string{}, Attributes: map[string]string{}}
	for _, o := range a.options {
		if o.Letter == 'u' { // whose it is depends on the job
			continue
		}
		if err := a.applyOption(trial, o); err != nil {
			return nil, asQalterError(err)
		}
	}
	return a, nil
}

// asQalterError replaces qsub's name by qalter's in a refusal.
func asQalterError(err error) error {
	if e, ok := err.(*qsub.RefusalError); ok {
		if rest, cut := strings.CutPrefix(e.Text, "qsub: "); cut {
			return &qsub.RefusalError{Text: "qalter: " + rest, ExitStatus: e.ExitStatus}
		}
	}
	return err
}

// applyOption applies one option to a submission.
func (a *JobAlteration) applyOption(s *qsub.JobSubmission, o qsub.OptionValue) error {
	switch v := strings.TrimSpace(o.Value); o.Letter {
	case 'h':
		if _, ok := parseHold(v); !ok {
			return qsub.IllegalValueError('h')
		}
		return nil
	case 'c':
		if v == "u" { // OpenPBS: a job cannot go back to what was never said
			return qsub.IllegalValueError('c')
		}
	case 'o', 'e': // relative to the directory of qalter
		if v != "" {
			from := qsub.JobSubmission{Caller: a.caller, Server: s.Server}
			o.Value = from.LocalPath(v)
			if strings.HasSuffix(v, "/") {
				o.Value += "/"
			}
		}
	}
	return s.ApplyOptions([]qsub.OptionValue{o})
}

// parseHold parses the value of -h: "n" releases, and other letters hold.
func parseHold(v string) (word string, ok bool) {
	switch {
	case v == "n":
		return "release", true
	case v == "" || strings.Trim(v, "uosp") != "":
		return "", false
	}
	return "hold", true
}

// ChangeFor returns the change of a job that messages call id. It reconstructs the
// submission from the job, and builds the job twice: as it is, and with the options. The
// difference is the change. So an alteration affects only what its options are about.
func (a *JobAlteration) ChangeFor(j CurrentJob, id string) (JobChange, error) {
	if err := a.checkRunningJob(j, id); err != nil {
		return JobChange{}, err
	}
	c, err := a.changeFor(j)
	if e, ok := asQalterError(err).(*qsub.RefusalError); ok {
		if e.IsServerError() { // the command line is right, and not for this job
			return c, &qsub.RefusalError{Text: e.Text + " " + id, ExitStatus: e.ExitStatus}
		}
		return c, e
	}
	return c, nil
}

func (a *JobAlteration) changeFor(j CurrentJob) (JobChange, error) {
	was, err := a.currentSubmission(j)
	if err != nil {
		return JobChange{}, err
	}
	is, err := a.currentSubmission(j)
	if err != nil {
		return JobChange{}, err
	}
	was.Caller.Inventory = was.Caller.Inventory.WithNamesOnly()
	// a machine with the attribute may be gone
	if !slices.ContainsFunc(a.options, func(o qsub.OptionValue) bool { return o.Letter == 'l' }) {
		is.Caller.Inventory = was.Caller.Inventory
	}
	a.dropReplacedResources(is)
	hold := ""
	for _, o := range a.options {
		if err := a.applyOption(is, o); err != nil {
			return JobChange{}, err
		}
		switch o.Letter {
		case 'h':
			hold, _ = parseHold(strings.TrimSpace(o.Value))
		case 'j':
			resetJoinedStream(is)
		case 'k':
			is.Paths = nil
		case 'o', 'e':
			delete(is.Paths, o.Letter)
		}
	}
	for name, v := range is.ResourceValues {
		if v == "" { // "walltime=" takes it back (POSIX, XCU 3.3.3)
			delete(is.ResourceValues, name)
		}
	}
	undepend := is.Attributes["depend"] == "" && isSet(is, "depend")
	if undepend {
		delete(is.Attributes, "depend")
	}
	if hasOwnDirectory(is) {
		is.Dir = ""
	}
	before, err := was.NewResult()
	if err != nil {
		return JobChange{}, err
	}
	after, err := is.NewResult()
	if err != nil {
		return JobChange{}, err
	}
	c := JobChange{Ad: a.changedAttributes(j.Ad, before.Job.Ad, after.Job.Ad), HoldAction: hold}
	if undepend {
		c.Ad.SetValue(roost.AttrDependsOn, classad.UndefinedValue())
		dropFromRecord(c.Ad, j.Ad, "depend")
	}
	if before.Job.Count != after.Job.Count {
		c.Count, c.Columns = after.Job.Count, after.Job.Columns
	}
	for _, name := range c.Ad.Names() { // drop what would not change
		e, _ := c.Ad.Lookup(name)
		if has, ok := j.Ad.Lookup(name); ok && has.String() == e.String() || !ok && e.String() == "undefined" {
			c.Ad.Delete(name)
		}
	}
	return c, nil
}

func isSet(s *qsub.JobSubmission, attribute string) bool { _, ok := s.Attributes[attribute]; return ok }

// changedAttributes returns the changes of the ad that a job has. They are the
// differences between before and after: the ads of its submission without and with the
// options.
func (a *JobAlteration) changedAttributes(has, before, after *classad.Ad) *classad.Ad {
	changes := classad.New()
	for _, name := range differingAttributes(before, after) {
		switch name {
		case roost.AttrEnvironment:
			own, _ := has.Strings(name)
			was, _ := before.Strings(name)
			is, _ := after.Strings(name)
			changes.SetStrings(name, mergeEnvironment(own, was, is))
		case roost.AttrPBS:
			if record, ok := has.Sub(name); ok {
				changes.SetAd(name, mergeRecord(record, before, after))
			}
		case roost.AttrTaskCount, roost.AttrArrayIndex, roost.AttrScript, roost.AttrCmd, roost.AttrArguments,
			roost.AttrContainerImage: // the job is pinned to the one that it meant
		default:
			if e, ok := after.Lookup(name); ok {
				changes.Insert(name, e)
			} else {
				changes.SetValue(name, classad.UndefinedValue())
			}
		}
	}
	return changes
}

// differingAttributes lists the attributes that differ between two ads, in order.
func differingAttributes(before, after *classad.Ad) []string {
	var names []string
	for _, name := range after.Names() {
		is, _ := after.Lookup(name)
		if was, ok := before.Lookup(name); !ok || was.String() != is.String() {
			names = append(names, name)
		}
	}
	for _, name := range before.Names() {
		if _, ok := after.Lookup(name); !ok {
			names = append(names, name)
		}
	}
	return names
}

// mergeEnvironment applies the differences between two environments to a third.
func mergeEnvironment(own, was, is []string) []string {
	byName := func(list []string) map[string]string {
		m := map[string]string{}
		for _, v := range list {
			name, _, _ := strings.Cut(v, "=")
			m[name] = v
		}
		return m
	}
	have, before, after := byName(own), byName(was), byName(is)
	for name, v := range after {
		if before[name] != v {
			have[name] = v
		}
	}
	for name := range before {
		if after[name] == "" {
			delete(have, name)
		}
	}
	out := make([]string, 0, len(have))
	for _, name := range qsub.SortedNames(have) {
		out = append(out, have[name])
	}
	return out
}

// mergeRecord applies the differences between the records of two ads to the record of a
// job.
func mergeRecord(record, before, after *classad.Ad) *classad.Ad {
	record = record.Copy()
	was, _ := before.Sub(roost.AttrPBS)
	is, _ := after.Sub(roost.AttrPBS)
	for _, name := range differingAttributes(was, is) {
		if e, ok := is.Lookup(name); ok {
			record.Insert(name, e)
		} else {
			record.Delete(name)
		}
	}
	return record
}

// dropFromRecord removes a word from the record, in its changed or present form.
func dropFromRecord(changes, has *classad.Ad, name string) {
	record, ok := changes.Sub(roost.AttrPBS)
	if !ok {
		record, ok = has.Sub(roost.AttrPBS)
	}
	if !ok {
		return
	}
	if record = record.Copy(); record.Delete(name) {
		changes.SetAd(roost.AttrPBS, record)
	}
}

// dropReplacedResources removes from a submission what the options request in other
// words. A select replaces what nodes or ncpus requested.
func (a *JobAlteration) dropReplacedResources(s *qsub.JobSubmission) {
	stated := &qsub.JobSubmission{ResourceValues: map[string]string{}}
	for _, o := range a.options {
		if o.Letter == 'l' {
			if err := stated.AddResources(strings.TrimSpace(o.Value)); err != nil {
				return // it was read before
			}
		}
	}
	drop := func(names ...string) {
		for _, name := range names {
			delete(s.ResourceValues, name)
		}
	}
	if stated.ResourceValues["select"] != "" {
		drop(append(qsub.SortedNames(qsub.ChunkResources), "nodes", "procs")...)
	}
	if stated.ResourceValues["nodes"] != "" || stated.ResourceValues["procs"] != "" {
		drop("select", "place", "nodes", "procs", "ncpus", "mpiprocs")
	}
	if stated.ResourceValues["select"] == "" && slices.Contains([]string{"1:ncpus=1", ""}, s.ResourceValues["select"]) {
		drop("select", "place") // nobody has said that
	}
}

// currentSubmission reconstructs the submission of a job.
func (a *JobAlteration) currentSubmission(j CurrentJob) (*qsub.JobSubmission, error) {
	text := func(name string) string { t, _ := j.Ad.Str(name); return t }
	plain := func(name string) string { return strings.ReplaceAll(text(name), "$$", "$") }
	record, ofQsub := j.Ad.Sub(roost.AttrPBS)
	if !ofQsub {
		record = classad.New()
	}
	stated := func(name, otherwise string) string {
		if v, _ := record.Str(name); v != otherwise {
			return v
		}
		return ""
	}
	s := &qsub.JobSubmission{Caller: a.caller, Name: plain(roost.AttrJobName), Queue: text(roost.AttrQueue),
		Server:     j.Host,
		Attributes: map[string]string{}}
	s.Caller.User = j.Owner
	env, _ := j.Ad.Strings(roost.AttrEnvironment)
	if dir, ok := qsub.LookUpVariable(env, "PBS_O_WORKDIR"); ok {
		s.Caller.Dir = strings.ReplaceAll(dir, "$$", "$")
	}
	if home, ok := qsub.LookUpVariable(env, "HOME"); ok {
		s.Caller.Home = strings.ReplaceAll(home, "$$", "$")
	}
	s.Script = cmp.Or(text(roost.AttrScript), text(roost.AttrScriptFile))
	if s.Command = nil; s.Script == "" {
		s.Command = []string{"/bin/true"} // it has one that cannot be changed
	}
	s.Shell = text(roost.AttrShell)
	s.Account, s.Project = stated("Account_Name", ""), stated("project", "_pbs_project_default")
	if !ofQsub {
		s.Account = text(roost.AttrGroup)
	}
	s.KeepFiles, s.Remove = stated("Keep_Files", "n"), stated("Remove_Files", "")
	s.Mail, s.MailTo, s.ShellOptions = stated("Mail_Points", "a"), stated("Mail_Users", ""),
		stated("Shell_Path_List", "")
	s.Join = stated("Join_Path", "n")
	for _, name := range []string{"comment", "sandbox", "stagein", "stageout", "umask"} {
		if v := stated(name, ""); v != "" {
			s.Attributes[name] = v
		}
	}
	if !hasOwnDirectory(s) {
		s.Dir = plain(roost.AttrIwd)
	}
	priority, _ := j.Ad.Int(roost.AttrPriority)
	s.Priority = int(priority)
	if at, ok := j.Ad.Int(roost.AttrStartAfter); ok {
		s.Start = time.Unix(at, 0)
	}
	if again, ok := j.Ad.Bool(roost.AttrRerunnable); ok {
		s.NoRerun = !again
	}
	preservePaths(s, j.Ad)
	readCurrentArray(s, j)
	recordedResources(s, j.Ad, record, ofQsub)
	return s, nil
}

// hasOwnDirectory reports whether the job has a directory of its own.
func hasOwnDirectory(s *qsub.JobSubmission) bool {
	return s.Attributes["sandbox"] == "PRIVATE" || isSet(s, "stagein") || isSet(s, "stageout")
}

// preservePaths leaves the output paths unchanged.
func preservePaths(s *qsub.JobSubmission, ad *classad.Ad) {
	out, _ := ad.Str(roost.AttrOut)
	err, _ := ad.Str(roost.AttrErr)
	s.Paths = map[byte]string{'o': out, 'e': err}
	if s.Join == "eo" {
		s.Paths = map[byte]string{'o': err, 'e': out}
	}
}

// resetJoinedStream gives a stream that was joined to the other its default path again.
func resetJoinedStream(s *qsub.JobSubmission) {
	for letter, path := range s.Paths {
		if path == "" {
			delete(s.Paths, letter)
		}
	}
}

// readCurrentArray reads the indexes of the job, if it is an array.
func readCurrentArray(s *qsub.JobSubmission, j CurrentJob) {
	if !j.Array {
		return
	}
	text, ok := j.Ad.Str(roost.AttrArrayIndex)
	if !ok {
		text = "0-" + decimalText(j.Tasks-1)
	}
	if indexes, err := roost.ParseArrayIndexes(text); err == nil {
		s.Array, s.ArrayRange = &indexes, text
	}
}

// recordedResources reads the resources of the record, without derived ones. A job
// without a record has those of its ad.
func recordedResources(s *qsub.JobSubmission, ad, record *classad.Ad, ofQsub bool) {
	s.ResourceValues = map[string]string{}
	if !ofQsub {
		for name, attribute := range map[string]string{"mem": roost.AttrRequestMemory, "ngpus": roost.AttrRequestGpus,
			"ncpus": roost.AttrRequestCpus} {
			if n, ok := ad.Int(attribute); ok && n > 0 {
				s.ResourceValues[name] = decimalText(int(n)) + map[string]string{"mem": "mb"}[name]
			}
		}
		if n, ok := ad.Int(roost.AttrWalltime); ok && n > 0 {
			s.ResourceValues["walltime"] = decimalText(int(n))
		}
		return
	}
	list, ok := record.Sub("Resource_List")
	if !ok {
		return
	}
	simple := false
	for _, name := range list.Names() {
		v, _ := list.Str(name)
		s.ResourceValues[name] = v
		_, counted := qsub.ParseCustomCount(name, v)
		simple = simple || qsub.ChunkResources[name] != nil || name == "nodes" || name == "procs" ||
			qsub.JobWideResources[name] == nil && !counted
	}
	delete(s.ResourceValues, "nodect")
	if simple || cmp.Or(s.ResourceValues["select"], "1:ncpus=1") == "1:ncpus=1" && s.ResourceValues["place"] == "pack" {
		delete(s.ResourceValues, "select")
		delete(s.ResourceValues, "place")
	}
}
