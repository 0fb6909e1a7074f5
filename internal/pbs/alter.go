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

// Alteration is what a command line of qalter says.
type Alteration struct {
	Operands []string
	options  []option
	caller   Caller
}

// Altered is a job as it is before qalter has changed it.
type Altered struct {
	Ad    *classad.Ad // all of it
	Owner string
	Host  string // in whose queue it is
	Tasks int
	Array bool
	Runs  bool // and is no array
}

// Change is what an alteration makes of a job.
type Change struct {
	Ad      *classad.Ad     // the attributes that change; undefined: it is to have none
	Count   int             // of its tasks, where that changes; else 0
	Columns []submit.Column // with Count
	Hold    string          // "hold", "release" or neither
}

const (
	alterFlags  = ""
	alterValued = "aAcehjklmMNopPrRSuvW"
)

// ParseQalter reads the arguments of qalter, without its name: those of OpenPBS, and -v of Torque. What no job could have is refused at once, with an *Error.
func ParseQalter(args []string, caller Caller) (*Alteration, error) {
	a := &Alteration{caller: caller}
	var command []string
	var err error
	if a.options, a.Operands, command, err = splitAs(args, true, alterFlags, alterValued, alterUsage); err != nil {
		return nil, ofQalter(err)
	}
	if a.Operands = append(a.Operands, command...); len(a.Operands) == 0 {
		return nil, &Error{alterUsage, exitUsage}
	}
	trial := &submission{caller: caller, wanted: map[string]string{}, attributes: map[string]string{}}
	for _, o := range a.options {
		if o.letter == 'u' { // whose it is depends on the job
			continue
		}
		if err := a.apply(trial, o); err != nil {
			return nil, ofQalter(err)
		}
	}
	return a, nil
}

// ofQalter puts qalter's name before a refusal that begins with qsub's.
func ofQalter(err error) error {
	if e, ok := err.(*Error); ok {
		if rest, cut := strings.CutPrefix(e.Text, "qsub: "); cut {
			return &Error{"qalter: " + rest, e.Code}
		}
	}
	return err
}

// apply folds one option into a submission.
func (a *Alteration) apply(s *submission, o option) error {
	switch v := strings.TrimSpace(o.value); o.letter {
	case 'h':
		if _, ok := holdOf(v); !ok {
			return illegal('h')
		}
		return nil
	case 'c':
		if v == "u" { // OpenPBS: a job cannot go back to what was never said
			return illegal('c')
		}
	case 'o', 'e': // relative to where qalter runs
		if v != "" {
			from := submission{caller: a.caller, server: s.server}
			o.value = from.localPath(v)
			if strings.HasSuffix(v, "/") {
				o.value += "/"
			}
		}
	}
	return s.apply([]option{o})
}

// holdOf reads the value of -h: "n" releases, and other letters hold.
func holdOf(v string) (word string, ok bool) {
	switch {
	case v == "n":
		return "release", true
	case v == "" || strings.Trim(v, "uosp") != "":
		return "", false
	}
	return "hold", true
}

// Of says what becomes of a job, which messages call id. What a job of qsub says is taken apart and put together twice, as it is and with the options: what
// differs is the change. So an alteration touches what its options are about, and nothing else.
func (a *Alteration) Of(j Altered, id string) (Change, error) {
	if err := a.whileRunning(j, id); err != nil {
		return Change{}, err
	}
	c, err := a.of(j)
	if e, ok := ofQalter(err).(*Error); ok {
		if e.ofServer() { // the command line is right, and not for this job
			return c, &Error{e.Text + " " + id, e.Code}
		}
		return c, e
	}
	return c, nil
}

func (a *Alteration) of(j Altered) (Change, error) {
	was, err := a.standing(j)
	if err != nil {
		return Change{}, err
	}
	is, err := a.standing(j)
	if err != nil {
		return Change{}, err
	}
	was.caller.Pool = was.caller.Pool.namesOnly()
	if !slices.ContainsFunc(a.options, func(o option) bool { return o.letter == 'l' }) { // a word may be gone with its machine
		is.caller.Pool = was.caller.Pool
	}
	a.replaceResources(is)
	hold := ""
	for _, o := range a.options {
		if err := a.apply(is, o); err != nil {
			return Change{}, err
		}
		switch o.letter {
		case 'h':
			hold, _ = holdOf(strings.TrimSpace(o.value))
		case 'j':
			is.rejoin()
		case 'k':
			is.paths = nil
		case 'o', 'e':
			delete(is.paths, o.letter)
		}
	}
	for name, v := range is.wanted {
		if v == "" { // "walltime=" takes it back (POSIX, XCU 3.3.3)
			delete(is.wanted, name)
		}
	}
	undepend := is.attributes["depend"] == "" && is.has("depend")
	if undepend {
		delete(is.attributes, "depend")
	}
	if is.ownDirectory() {
		is.dir = ""
	}
	before, err := was.result()
	if err != nil {
		return Change{}, err
	}
	after, err := is.result()
	if err != nil {
		return Change{}, err
	}
	c := Change{Ad: a.difference(j.Ad, before.Job.Ad, after.Job.Ad), Hold: hold}
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

func (s *submission) has(attribute string) bool { _, ok := s.attributes[attribute]; return ok }

// difference is what changes of the ad that a job has, where what it would be submitted as now differs from what it would have been.
func (a *Alteration) difference(has, before, after *classad.Ad) *classad.Ad {
	changes := classad.New()
	for _, name := range differing(before, after) {
		switch name {
		case roost.AttrEnvironment:
			own, _ := has.Strings(name)
			was, _ := before.Strings(name)
			is, _ := after.Strings(name)
			changes.SetStrings(name, mergedEnvironment(own, was, is))
		case roost.AttrPBS:
			if record, ok := has.Sub(name); ok {
				changes.SetAd(name, mergedRecord(record, before, after))
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

// differing lists the attributes that are not the same in two ads, in order.
func differing(before, after *classad.Ad) []string {
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

// mergedEnvironment puts what differs between two environments into a third.
func mergedEnvironment(own, was, is []string) []string {
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
	for _, name := range sorted(have) {
		out = append(out, have[name])
	}
	return out
}

// mergedRecord puts what differs between the records of two ads into the one that a job has.
func mergedRecord(record, before, after *classad.Ad) *classad.Ad {
	record = record.Copy()
	was, _ := before.Sub(roost.AttrPBS)
	is, _ := after.Sub(roost.AttrPBS)
	for _, name := range differing(was, is) {
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

// replaceResources takes out of a submission what options ask for in other words: a select replaces what nodes or ncpus said.
func (a *Alteration) replaceResources(s *submission) {
	said := &submission{wanted: map[string]string{}}
	for _, o := range a.options {
		if o.letter == 'l' {
			if err := said.addResources(strings.TrimSpace(o.value)); err != nil {
				return // it was read before
			}
		}
	}
	drop := func(names ...string) {
		for _, name := range names {
			delete(s.wanted, name)
		}
	}
	if said.wanted["select"] != "" {
		drop(append(sorted(perChunk), "nodes", "procs")...)
	}
	if said.wanted["nodes"] != "" || said.wanted["procs"] != "" {
		drop("select", "place", "nodes", "procs", "ncpus", "mpiprocs")
	}
	if said.wanted["select"] == "" && slices.Contains([]string{"1:ncpus=1", ""}, s.wanted["select"]) {
		drop("select", "place") // nobody has said that
	}
}

// standing takes a job apart into what was said of it.
func (a *Alteration) standing(j Altered) (*submission, error) {
	text := func(name string) string { t, _ := j.Ad.Str(name); return t }
	plain := func(name string) string { return strings.ReplaceAll(text(name), "$$", "$") }
	record, ofQsub := j.Ad.Sub(roost.AttrPBS)
	if !ofQsub {
		record = classad.New()
	}
	said := func(name, otherwise string) string {
		if v, _ := record.Str(name); v != otherwise {
			return v
		}
		return ""
	}
	s := &submission{caller: a.caller, name: plain(roost.AttrJobName), queue: text(roost.AttrQueue), server: j.Host, attributes: map[string]string{}}
	s.caller.User = j.Owner
	env, _ := j.Ad.Strings(roost.AttrEnvironment)
	if dir, ok := lookup(env, "PBS_O_WORKDIR"); ok {
		s.caller.Dir = strings.ReplaceAll(dir, "$$", "$")
	}
	if home, ok := lookup(env, "HOME"); ok {
		s.caller.Home = strings.ReplaceAll(home, "$$", "$")
	}
	s.script = cmp.Or(text(roost.AttrScript), text(roost.AttrScriptFile))
	if s.command = nil; s.script == "" {
		s.command = []string{"/bin/true"} // it has one that cannot be changed
	}
	s.shell = text(roost.AttrShell)
	s.account, s.project = said("Account_Name", ""), said("project", "_pbs_project_default")
	if !ofQsub {
		s.account = text(roost.AttrGroup)
	}
	s.keep, s.remove = said("Keep_Files", "n"), said("Remove_Files", "")
	s.mail, s.mailTo, s.shells = said("Mail_Points", "a"), said("Mail_Users", ""), said("Shell_Path_List", "")
	s.join = said("Join_Path", "n")
	for _, name := range []string{"comment", "sandbox", "stagein", "stageout", "umask"} {
		if v := said(name, ""); v != "" {
			s.attributes[name] = v
		}
	}
	if !s.ownDirectory() {
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
	s.standingPaths(j.Ad)
	s.standingArray(j)
	s.standingResources(j.Ad, record, ofQsub)
	return s, nil
}

// ownDirectory reports whether the job has a directory to itself.
func (s *submission) ownDirectory() bool {
	return s.attributes["sandbox"] == "PRIVATE" || s.has("stagein") || s.has("stageout")
}

// standingPaths keeps where output goes as it is.
func (s *submission) standingPaths(ad *classad.Ad) {
	out, _ := ad.Str(roost.AttrOut)
	err, _ := ad.Str(roost.AttrErr)
	s.paths = map[byte]string{'o': out, 'e': err}
	if s.join == "eo" {
		s.paths = map[byte]string{'o': err, 'e': out}
	}
}

// rejoin has a stream that went where the other does go where it would have by itself.
func (s *submission) rejoin() {
	for letter, path := range s.paths {
		if path == "" {
			delete(s.paths, letter)
		}
	}
}

// standingArray says what array the job is, if it is one.
func (s *submission) standingArray(j Altered) {
	if !j.Array {
		return
	}
	text, ok := j.Ad.Str(roost.AttrArrayIndex)
	if !ok {
		text = "0-" + decimal(j.Tasks-1)
	}
	if indexes, err := roost.ParseIndexes(text); err == nil {
		s.array, s.indices = &indexes, text
	}
}

// standingResources are those of the record, without what was only made of others; a job that has no record has those of its ad.
func (s *submission) standingResources(ad, record *classad.Ad, ofQsub bool) {
	s.wanted = map[string]string{}
	if !ofQsub {
		for name, attribute := range map[string]string{"mem": roost.AttrRequestMemory, "ngpus": roost.AttrRequestGpus, "ncpus": roost.AttrRequestCpus} {
			if n, ok := ad.Int(attribute); ok && n > 0 {
				s.wanted[name] = decimal(int(n)) + map[string]string{"mem": "mb"}[name]
			}
		}
		if n, ok := ad.Int(roost.AttrWalltime); ok && n > 0 {
			s.wanted["walltime"] = decimal(int(n))
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
		s.wanted[name] = v
		_, counted := countOf(name, v)
		simple = simple || perChunk[name] != nil || name == "nodes" || name == "procs" || jobWide[name] == nil && !counted
	}
	delete(s.wanted, "nodect")
	if simple || cmp.Or(s.wanted["select"], "1:ncpus=1") == "1:ncpus=1" && s.wanted["place"] == "pack" {
		delete(s.wanted, "select")
		delete(s.wanted, "place")
	}
}
