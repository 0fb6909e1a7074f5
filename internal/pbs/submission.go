package pbs

import (
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// submission gathers what the options say.
type submission struct {
	caller    Caller
	kept      []option
	script    string
	command   []string
	fromFile  bool
	name      string
	queue     string
	server    string // the node in whose queue the job goes; empty: the caller's
	out, err  string
	join      string // "", "oe", "eo"
	keep      string // letters of -k
	dir       string
	shell     string
	account   string
	exportAll bool
	export    map[string]string
	start     time.Time
	held      bool
	priority  int
	noRerun   bool
	saving    string // -c, empty for unspecified
	depends   []string
	umask     int64
	block     bool
	quiet     bool
	cpus      int
	gpus      int
	noGpus    bool // ngpus=0 was said
	gpuMemory roost.Bytes
	class     string // app_class
	memory    roost.Bytes
	walltime  time.Duration
	host      string
	array     *array
	atOnce    int // tasks that may run at once; 0: all
}

// apply folds options in, later ones over earlier ones.
func (s *submission) apply(options []option) error {
	for _, o := range options {
		if err := s.applyOne(o); err != nil {
			return err
		}
	}
	return nil
}

func (s *submission) applyOne(o option) error {
	v := strings.TrimSpace(o.value)
	switch o.letter {
	case 'N':
		if len(v) > 230 || !plainName(v) {
			return illegal('N')
		}
		s.name = v
	case 'l':
		return s.applyResources(v)
	case 'o':
		s.out = v
	case 'e':
		s.err = v
	case 'j':
		if v != "oe" && v != "eo" && v != "n" {
			return illegal('j')
		}
		s.join = strings.TrimSuffix(v, "n")
	case 'k':
		if v == "" || strings.Trim(v, "oedn") != "" {
			return illegal('k')
		}
		s.keep = v
	case 'q':
		if name, _, _ := strings.Cut(v, "@"); v == "" || name != "" && !plainName(name) {
			return &Error{"qsub: illegally formed destination: " + v, exitUsage}
		}
		s.queue, s.server, _ = strings.Cut(v, "@")
	case 'v':
		return s.exportNames(o.value)
	case 'V':
		s.exportAll = true
	case 'W':
		return s.applyAttributes(v)
	case 'J', 't':
		return s.setArray(o.letter, v)
	case 'a':
		at, ok := parseDate(v, s.caller.Now)
		if !ok {
			return illegal('a')
		}
		s.start = at
	case 'h':
		s.held = true
	case 'p':
		n, err := strconv.Atoi(v)
		if err != nil || n < roost.MinPriority || n > roost.MaxPriority {
			return illegal('p')
		}
		s.priority = n
	case 'P', 'A':
		s.account = v
	case 'r':
		if v != "y" && v != "n" {
			return illegal('r')
		}
		s.noRerun = v == "n"
	case 'S':
		shell, _, _ := strings.Cut(list(v)[0], "@")
		if !strings.HasPrefix(shell, "/") {
			return illegal('S')
		}
		s.shell = shell
	case 'd', 'w', 'D':
		s.dir = v
	case 'z':
		s.quiet = true
	default:
		return s.applyOther(o.letter, v)
	}
	return nil
}

// applyOther reads -c, and checks the options that have no effect here: -M, -u, -f, -C and -T are taken as they are.
func (s *submission) applyOther(letter byte, v string) error {
	switch letter {
	case 'm':
		if strings.Trim(v, "abejn") != "" || v == "" {
			return illegal('m')
		}
	case 'c':
		return s.setCheckpoint(v)
	case 'R':
		if strings.Trim(v, "oe") != "" {
			return illegal('R')
		}
	case 'I', 'X', 'x':
		return refuse("interactive jobs are not supported yet: \"roost run -- command\" runs a command and shows what it prints", exitUsage)
	}
	return nil
}

// applyAttributes reads -W.
func (s *submission) applyAttributes(value string) error {
	items := list(value)
	for i := 0; i < len(items); i++ {
		name, v, ok := strings.Cut(strings.TrimSpace(items[i]), "=")
		if !ok || name == "" {
			return illegal('W')
		}
		switch name {
		case "depend":
			// The commas of a dependency list stand for themselves: what has no "=" behind belongs to it.
			for i+1 < len(items) && !strings.Contains(items[i+1], "=") {
				i++
				v += "," + items[i]
			}
			if err := s.setDepend(v); err != nil {
				return err
			}
		case "block":
			if v != "true" && v != "false" {
				return illegal('W')
			}
			s.block = v == "true"
		case "umask":
			n, err := strconv.ParseUint(v, 8, 16)
			if err != nil || n > 0o777 {
				return illegal('W')
			}
			s.umask = int64(n)
		case "max_run_subjobs":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return illegal('W')
			}
			s.atOnce = n
		case "interactive":
			return refuse("interactive jobs are not supported yet", exitUsage)
		case "stagein", "stageout":
			return refuse("-W "+name+" is not supported yet: inputs and outputs of a job file do the same", exitUsage)
		case "sandbox", "group_list", "run_count", "release_nodes_on_stageout", "tolerate_node_failures", "create_resv_from_job":
		default:
			return illegal('W')
		}
	}
	return nil
}

// setDepend reads "type:id[:id…][,type:id…]".
func (s *submission) setDepend(value string) error {
	s.depends = nil
	for _, group := range strings.Split(value, ",") {
		parts := strings.Split(strings.TrimSpace(group), ":")
		when := strings.TrimSuffix(strings.Replace(parts[0], "array", "", 1), "any")
		switch parts[0] {
		case "afterany", "afteranyarray":
			when = "afterany"
		case "after", "afterok", "afternotok", "afterstartarray", "afterokarray", "afternotokarray":
			when = strings.Replace(when, "afterstart", "after", 1)
		case "before", "beforeok", "beforenotok", "beforeany", "on", "runone":
			return refuse("-W depend="+parts[0]+" is not supported yet: let the later job depend on this one with after…", exitDependency)
		default:
			return illegal('W')
		}
		if len(parts) < 2 {
			return illegal('W')
		}
		for _, id := range parts[1:] {
			id, _, _ = strings.Cut(id, "@")
			job, err := roost.ParseJobID(id, "host")
			if err != nil {
				return illegal('W')
			}
			if !strings.Contains(id, ".") {
				id = strconv.FormatUint(job.Seq, 10)
			} else {
				id = job.String()
			}
			s.depends = append(s.depends, when+":"+id)
		}
	}
	return nil
}

// parseDate reads "[[[[CC]YY]MM]DD]hhmm[.SS]"; what is left away is that of the next such time.
func parseDate(s string, now time.Time) (time.Time, bool) {
	digits, secs, dotted := strings.Cut(s, ".")
	layout := map[int]string{4: "1504", 6: "021504", 8: "01021504", 10: "0601021504", 12: "200601021504"}[len(digits)]
	if layout == "" || dotted && len(secs) != 2 {
		return time.Time{}, false
	}
	if dotted {
		layout, digits = layout+"05", digits+secs
	}
	t, err := time.ParseInLocation(layout, digits, now.Location())
	if err != nil {
		return time.Time{}, false
	}
	year, month, day := t.Date()
	step := func(at time.Time) time.Time { return at }
	switch len(strings.TrimSuffix(digits, secs)) {
	case 4:
		year, month, day = now.Date()
		step = func(at time.Time) time.Time { return at.AddDate(0, 0, 1) }
	case 6:
		year, month = now.Year(), now.Month()
		step = func(at time.Time) time.Time { return at.AddDate(0, 1, 0) }
	case 8:
		year = now.Year()
	}
	at := time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
	if at.Before(now) {
		at = step(at)
	}
	return at, true
}

// exportNames reads -v: "A,B=2,C='a,b'".
func (s *submission) exportNames(value string) error {
	if s.export == nil {
		s.export = map[string]string{}
	}
	for _, item := range list(value) {
		name, v, set := strings.Cut(item, "=")
		if name = strings.TrimSpace(name); name == "" && !set {
			continue
		}
		if name == "" || strings.ContainsAny(name, " \t\x00") || strings.IndexByte(v, 0) >= 0 {
			return illegal('v')
		}
		if !set {
			var there bool
			if v, there = lookup(s.caller.Environ, name); !there {
				return refuse("cannot send environment with the job: "+name+" is not set", exitScript)
			}
		}
		if !strings.HasPrefix(name, "PBS_O_") {
			s.export[name] = v
		}
	}
	return nil
}
