package pbs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

// JobAlteration is what a command line of qalter says.
type JobAlteration struct {
	Operands []string
	options  []optionValue
	caller   QsubCaller
}

// CurrentJob is a job as it is before qalter has changed it.
type CurrentJob struct {
	Ad    *classad.Ad // all of it
	Owner string
	Host  string // in whose queue it is
	Tasks int
	Array bool
	Runs  bool // and is no array
}

// JobChange is what an alteration makes of a job.
type JobChange struct {
	Ad         *classad.Ad         // the attributes that change; undefined: it is to have none
	Count      int                 // of its tasks, where that changes; else 0
	Columns    []submit.TaskColumn // with Count
	HoldAction string              // "hold", "release" or neither
}

const (
	alterFlags          = ""
	alterFlagsWithValue = "aAcehjklmMNopPrRSuvW"
)

// ParseQalter reads the arguments of qalter, without its name: those of OpenPBS, and -v
// of Torque. What no job could have is refused at once, with an *Error.
func ParseQalter(args []string, caller QsubCaller) (*JobAlteration, error) {
	a := &JobAlteration{caller: caller}
	var command []string
	var err error
	if a.options, a.Operands, command, err = splitOptionsFor(args, true, alterFlags, alterFlagsWithValue,
		alterUsage); err != nil {
		return nil, asQalterError(err)
	}
	if a.Operands = append(a.Operands, command...); len(a.Operands) == 0 {
		return nil, &RefusalError{alterUsage, exitUsage}
	}
	trial := &jobSubmission{caller: caller, resourceValues: map[string]string{}, attributes: map[string]string{}}
	for _, o := range a.options {
		if o.letter == 'u' { // whose it is depends on the job
			continue
		}
		if err := a.applyOption(trial, o); err != nil {
			return nil, asQalterError(err)
		}
	}
	return a, nil
}

// asQalterError puts qalter's name before a refusal that begins with qsub's.
func asQalterError(err error) error {
	if e, ok := err.(*RefusalError); ok {
		if rest, cut := strings.CutPrefix(e.Text, "qsub: "); cut {
			return &RefusalError{"qalter: " + rest, e.ExitStatus}
		}
	}
	return err
}

// applyOption folds one option into a submission.
func (a *JobAlteration) applyOption(s *jobSubmission, o optionValue) error {
	switch v := strings.TrimSpace(o.value); o.letter {
	case 'h':
		if _, ok := parseHold(v); !ok {
			return illegalValueError('h')
		}
		return nil
	case 'c':
		if v == "u" { // OpenPBS: a job cannot go back to what was never said
			return illegalValueError('c')
		}
	case 'o', 'e': // relative to where qalter runs
		if v != "" {
			from := jobSubmission{caller: a.caller, server: s.server}
			o.value = from.localPath(v)
			if strings.HasSuffix(v, "/") {
				o.value += "/"
			}
		}
	}
	return s.applyOptions([]optionValue{o})
}

// parseHold reads the value of -h: "n" releases, and other letters hold.
func parseHold(v string) (word string, ok bool) {
	switch {
	case v == "n":
		return "release", true
	case v == "" || strings.Trim(v, "uosp") != "":
		return "", false
	}
	return "hold", true
}

// ChangeFor says what becomes of a job, which messages call id. What a job of qsub says
// is taken apart and put together twice, as it is and with the options: what differs is
// the change. So an alteration touches what its options are about, and nothing else.
func (a *JobAlteration) ChangeFor(j CurrentJob, id string) (JobChange, error) {
	if err := a.checkRunningJob(j, id); err != nil {
		return JobChange{}, err
	}
	c, err := a.changeFor(j)
	if e, ok := asQalterError(err).(*RefusalError); ok {
		if e.isServerError() { // the command line is right, and not for this job
			return c, &RefusalError{e.Text + " " + id, e.ExitStatus}
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
	was.caller.Inventory = was.caller.Inventory.withNamesOnly()
	// a word may be gone with its machine
	if !slices.ContainsFunc(a.options, func(o optionValue) bool { return o.letter == 'l' }) {
		is.caller.Inventory = was.caller.Inventory
	}
	a.dropReplacedResources(is)
	hold := ""
	for _, o := range a.options {
		if err := a.applyOption(is, o); err != nil {
			return JobChange{}, err
		}
		switch o.letter {
		case 'h':
			hold, _ = parseHold(strings.TrimSpace(o.value))
		case 'j':
			is.resetJoinedStream()
		case 'k':
			is.paths = nil
		case 'o', 'e':
			delete(is.paths, o.letter)
		}
	}
	for name, v := range is.resourceValues {
		if v == "" { // "walltime=" takes it back (POSIX, XCU 3.3.3)
			delete(is.resourceValues, name)
		}
	}
	undepend := is.attributes["depend"] == "" && is.isSet("depend")
	if undepend {
		delete(is.attributes, "depend")
	}
	if is.hasOwnDirectory() {
		is.dir = ""
	}
	before, err := was.newResult()
	if err != nil {
		return JobChange{}, err
	}
	after, err := is.newResult()
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
	for _, name := range c.Ad.Names() { // what is so already
		e, _ := c.Ad.Lookup(name)
		if has, ok := j.Ad.Lookup(name); ok && has.String() == e.String() || !ok && e.String() == "undefined" {
			c.Ad.Delete(name)
		}
	}
	return c, nil
}

func (s *jobSubmission) isSet(attribute string) bool { _, ok := s.attributes[attribute]; return ok }

// changedAttributes is what changes of the ad that a job has, where what it would be
// submitted as now differs from what it would have been.
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
		case roost.AttrTaskCount, roost.AttrArrayIndex, roost.AttrScript, roost.AttrCmd, roost.AttrArguments:
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

// differingAttributes lists the attributes that are not the same in two ads, in order.
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

// mergeEnvironment puts what differs between two environments into a third.
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
	for _, name := range sortedNames(have) {
		out = append(out, have[name])
	}
	return out
}

// mergeRecord puts what differs between the records of two ads into the one that a job
// has.
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

// dropFromRecord takes a word out of the record, as it is or is to become.
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

// dropReplacedResources takes out of a submission what options ask for in other words: a
// select replaces what nodes or ncpus said.
func (a *JobAlteration) dropReplacedResources(s *jobSubmission) {
	stated := &jobSubmission{resourceValues: map[string]string{}}
	for _, o := range a.options {
		if o.letter == 'l' {
			if err := stated.addResources(strings.TrimSpace(o.value)); err != nil {
				return // it was read before
			}
		}
	}
	drop := func(names ...string) {
		for _, name := range names {
			delete(s.resourceValues, name)
		}
	}
	if stated.resourceValues["select"] != "" {
		drop(append(sortedNames(chunkResources), "nodes", "procs")...)
	}
	if stated.resourceValues["nodes"] != "" || stated.resourceValues["procs"] != "" {
		drop("select", "place", "nodes", "procs", "ncpus", "mpiprocs")
	}
	if stated.resourceValues["select"] == "" && slices.Contains([]string{"1:ncpus=1", ""}, s.resourceValues["select"]) {
		drop("select", "place") // nobody has said that
	}
}

// currentSubmission takes a job apart into what was said of it.
func (a *JobAlteration) currentSubmission(j CurrentJob) (*jobSubmission, error) {
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
	s := &jobSubmission{caller: a.caller, name: plain(roost.AttrJobName), queue: text(roost.AttrQueue), server: j.Host,
		attributes: map[string]string{}}
	s.caller.User = j.Owner
	env, _ := j.Ad.Strings(roost.AttrEnvironment)
	if dir, ok := lookUpVariable(env, "PBS_O_WORKDIR"); ok {
		s.caller.Dir = strings.ReplaceAll(dir, "$$", "$")
	}
	if home, ok := lookUpVariable(env, "HOME"); ok {
		s.caller.Home = strings.ReplaceAll(home, "$$", "$")
	}
	s.script = cmp.Or(text(roost.AttrScript), text(roost.AttrScriptFile))
	if s.command = nil; s.script == "" {
		s.command = []string{"/bin/true"} // it has one that cannot be changed
	}
	s.shell = text(roost.AttrShell)
	s.account, s.project = stated("Account_Name", ""), stated("project", "_pbs_project_default")
	if !ofQsub {
		s.account = text(roost.AttrGroup)
	}
	s.keepFiles, s.remove = stated("Keep_Files", "n"), stated("Remove_Files", "")
	s.mail, s.mailTo, s.shellOptions = stated("Mail_Points", "a"), stated("Mail_Users", ""),
		stated("Shell_Path_List", "")
	s.join = stated("Join_Path", "n")
	for _, name := range []string{"comment", "sandbox", "stagein", "stageout", "umask"} {
		if v := stated(name, ""); v != "" {
			s.attributes[name] = v
		}
	}
	if !s.hasOwnDirectory() {
		s.dir = plain(roost.AttrIwd)
	}
	priority, _ := j.Ad.Int(roost.AttrPriority)
	s.priority = int(priority)
	if at, ok := j.Ad.Int(roost.AttrStartAfter); ok {
		s.start = time.Unix(at, 0)
	}
	if again, ok := j.Ad.Bool(roost.AttrRerunnable); ok {
		s.noRerun = !again
	}
	s.preservePaths(j.Ad)
	s.readCurrentArray(j)
	s.recordedResources(j.Ad, record, ofQsub)
	return s, nil
}

// hasOwnDirectory reports whether the job has a directory to itself.
func (s *jobSubmission) hasOwnDirectory() bool {
	return s.attributes["sandbox"] == "PRIVATE" || s.isSet("stagein") || s.isSet("stageout")
}

// preservePaths keeps where output goes as it is.
func (s *jobSubmission) preservePaths(ad *classad.Ad) {
	out, _ := ad.Str(roost.AttrOut)
	err, _ := ad.Str(roost.AttrErr)
	s.paths = map[byte]string{'o': out, 'e': err}
	if s.join == "eo" {
		s.paths = map[byte]string{'o': err, 'e': out}
	}
}

// resetJoinedStream has a stream that went where the other does go where it would have by
// itself.
func (s *jobSubmission) resetJoinedStream() {
	for letter, path := range s.paths {
		if path == "" {
			delete(s.paths, letter)
		}
	}
}

// readCurrentArray says what array the job is, if it is one.
func (s *jobSubmission) readCurrentArray(j CurrentJob) {
	if !j.Array {
		return
	}
	text, ok := j.Ad.Str(roost.AttrArrayIndex)
	if !ok {
		text = "0-" + decimalText(j.Tasks-1)
	}
	if indexes, err := roost.ParseArrayIndexes(text); err == nil {
		s.array, s.arrayRange = &indexes, text
	}
}

// recordedResources are those of the record, without what was only made of others; a job
// that has no record has those of its ad.
func (s *jobSubmission) recordedResources(ad, record *classad.Ad, ofQsub bool) {
	s.resourceValues = map[string]string{}
	if !ofQsub {
		for name, attribute := range map[string]string{"mem": roost.AttrRequestMemory, "ngpus": roost.AttrRequestGpus,
			"ncpus": roost.AttrRequestCpus} {
			if n, ok := ad.Int(attribute); ok && n > 0 {
				s.resourceValues[name] = decimalText(int(n)) + map[string]string{"mem": "mb"}[name]
			}
		}
		if n, ok := ad.Int(roost.AttrWalltime); ok && n > 0 {
			s.resourceValues["walltime"] = decimalText(int(n))
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
		s.resourceValues[name] = v
		_, counted := parseCustomCount(name, v)
		simple = simple || chunkResources[name] != nil || name == "nodes" || name == "procs" ||
			jobWideResources[name] == nil && !counted
	}
	delete(s.resourceValues, "nodect")
	if simple || cmp.Or(s.resourceValues["select"], "1:ncpus=1") == "1:ncpus=1" && s.resourceValues["place"] == "pack" {
		delete(s.resourceValues, "select")
		delete(s.resourceValues, "place")
	}
}
