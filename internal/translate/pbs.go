package translate

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs"
)

// pbsScript gathers what the options of a qsub script say.
type pbsScript struct {
	*translation
	j        *job
	d        directive
	name     string
	out, err string
	join     string
	keep     string // letters of -k
	remove   string // letters of -R
	array    *array
	parts    []part // of -l select and nodes
	whole    part   // what is asked for beside them
	now      *part  // the one of them that is being read
	// process and processVirtual are what a process may hold and address.
	process, processVirtual roost.Bytes
	limits                  []string
	getenv                  []string
	mail                    string // points of -m
	mailTo                  string
	account                 string
	project                 string
	layoutAt                directive
	initial                 bool // -d says where it starts
	// arrangement is how the chunks may lie, and group the attribute of machines that is the same for all.
	arrangement, group string
}

// pbs translates a qsub script (qsub(1B) of OpenPBS, with the options of Torque).
func (t *translation) pbs(text string) error {
	s := takeApart(text, func(line string) (string, bool) {
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#PBS")
		return rest, ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '-')
	}, true)
	if !s.commands() {
		return nothing("the script has no commands")
	}
	x := &pbsScript{translation: t, j: newJob(), name: t.fileName()}
	x.now = &x.whole
	x.whole.count = 1
	for _, d := range s.directives {
		x.directive(d)
	}
	t.jobs = append(t.jobs, x.j)
	x.finish()
	if home := !x.initial && !movesToWorkdir(s.lines); home {
		t.differs(0, "no cd $PBS_O_WORKDIR", "PBS starts a job in the home directory; here it starts in the directory where it was submitted. directory = \"~\" starts it at home.")
	}
	t.setScript(x.j, &s)
	return nil
}

var workdir = regexp.MustCompile(`\bcd\s|PBS_O_WORKDIR|PBS_O_INITDIR`)

func movesToWorkdir(lines []string) bool {
	for _, l := range lines {
		if !strings.HasPrefix(strings.TrimSpace(l), "#") && workdir.MatchString(l) {
			return true
		}
	}
	return false
}

const (
	pbsFlags  = "fhIVXzxn"
	pbsValued = "aAbcCdDeFjJklmMNopPqrRSTtuvwWK"
)

// directive reads the options of one line.
func (x *pbsScript) directive(d directive) {
	x.d = d
	list, ok := pbs.Words(d.args)
	if !ok {
		x.refuse("A quote is not closed on this line.")
		return
	}
	for i := 0; i < len(list); i++ {
		word := list[i]
		if len(word) < 2 || word[0] != '-' {
			x.refuse(fmt.Sprintf("%q is no option; it is ignored.", shown(word)))
			continue
		}
		for k := 1; k < len(word); k++ {
			letter, value := word[k], ""
			if strings.IndexByte(pbsFlags, letter) < 0 {
				if strings.IndexByte(pbsValued, letter) < 0 {
					x.refuse(fmt.Sprintf("qsub has no option -%s.", shown(word[k:])))
					return
				}
				if value = word[k+1:]; value == "" {
					if i++; i == len(list) {
						x.refuse(fmt.Sprintf("-%c wants a value.", letter))
						break
					}
					value = list[i]
				}
				k = len(word)
			}
			if x.option(letter, strings.TrimSpace(value)) {
				x.carried++
			}
		}
	}
}

func (x *pbsScript) refuse(why string) bool {
	x.lost(x.d.line, x.d.text, why)
	return false
}

func (x *pbsScript) remark(why string) { x.differs(x.d.line, x.d.text, why) }

// option carries one option over, and says whether it could.
func (x *pbsScript) option(letter byte, v string) bool {
	j := x.j
	switch letter {
	case 'N':
		x.name = strings.Trim(strings.TrimPrefix(v, "="), `"`)
	case 'l':
		return x.resources(v)
	case 'o':
		x.out = v
	case 'e':
		x.err = v
	case 'j':
		x.join = strings.TrimSuffix(v, "n")
	case 'q':
		name, server, _ := strings.Cut(v, "@")
		if name == "" {
			return x.refuse("The server " + shown(server) + " is not known here.")
		}
		x.request.queue = name
		j.setText("queue", name)
		x.remark("The administrator makes a queue with roost queue set; roost queue lists them.")
	case 'A', 'P':
		if letter == 'P' && x.from == Torque {
			return x.refuse("A job belongs to whom submits it.")
		}
		if letter == 'A' {
			x.account = v
		} else {
			x.project = v
		}
	case 'J', 't':
		a, ok := parseArray(v)
		if !ok {
			return x.refuse("These are no indexes of an array; they are written as 0-9, 1-99:2 or 1,3,7-9, and %N behind them says how many run at once.")
		}
		x.array = &a
	case 'h':
		j.set("hold", "true")
	case 'p':
		n, err := strconv.Atoi(v)
		if err != nil {
			return x.refuse("It wants a number from -1024 to 1023.")
		}
		j.setInt("priority", n)
	case 'r':
		j.set("rerunnable", strconv.FormatBool(v != "n"))
	case 'S':
		return x.shell(v)
	case 'v':
		return x.exports(v)
	case 'V':
		j.set("getenv", "true")
	case 'W':
		return x.attributes(v)
	case 'a':
		return x.begin(v)
	case 'c':
		return x.saving(v)
	case 'd', 'w':
		x.initial = true
		j.setText("directory", v)
	default:
		return x.other(letter, v)
	}
	return true
}

// other is for options without a counterpart, and those that need none.
func (x *pbsScript) other(letter byte, v string) bool {
	switch letter {
	case 'm':
		x.mail = v
		return v == "n" || strings.Trim(v, "abej") == "" || x.refuse("It wants letters of a, b, e and j, or n.")
	case 'M':
		x.mailTo = v
		return true
	case 'k':
		x.keep = strings.TrimSuffix(v, "n")
		return true
	case 'I', 'X', 'x':
		return x.refuse("For an interactive job, run roost run -- COMMAND, or submit one and enter it with roost ssh.")
	case 'R':
		x.remove = v
		return strings.Trim(v, "oe") == "" || x.refuse("It wants o, e or both.")
	case 'u':
		return x.refuse("A job runs as whom submits it.")
	case 'F':
		args, ok := pbs.Words(v)
		if ok && len(args) > 0 {
			x.j.set("arguments", texts(args))
		}
		return ok
	case 'n':
		return x.alone()
	case 'z', 'f', 'b':
		return true
	case 'C':
		return x.refuse("It counts on the command line only.")
	}
	return x.refuse(noControl)
}

// exports reads -v A,B=2,C="x,y".
func (x *pbsScript) exports(v string) bool {
	for _, item := range pbs.List(v) {
		name, value, set := strings.Cut(strings.TrimSpace(item), "=")
		switch {
		case name == "":
		case !identifier.MatchString(name):
			return x.refuse(fmt.Sprintf("%q cannot be the name of a variable.", shown(name)))
		case set:
			x.j.add("environment", name, quoted(value))
		default:
			x.getenv = append(x.getenv, name)
		}
	}
	return true
}

// begin reads -a: what it leaves away is that of the next such time, which only a time of day is here.
func (x *pbsScript) begin(v string) bool {
	digits, secs, _ := strings.Cut(v, ".")
	for _, c := range digits + secs {
		if c < '0' || c > '9' {
			digits = ""
		}
	}
	at := func(i int) string { return digits[len(digits)-i : len(digits)-i+2] }
	switch len(digits) {
	case 4:
		x.j.setText("start_after", at(4)+":"+at(2))
	case 10, 12:
		century := "20"
		if len(digits) == 12 {
			century = digits[:2]
		}
		x.j.setText("start_after", fmt.Sprintf("%s%s-%s-%s %s:%s", century, at(10), at(8), at(6), at(4), at(2)))
	default:
		return x.refuse("Write the day with its year, and the time: start_after = \"2026-12-24 18:00\".")
	}
	return true
}

// saving reads -c.
func (x *pbsScript) saving(v string) bool {
	kind, minutes, timed := strings.Cut(v, "=")
	switch {
	case v == "n":
		x.j.checkpoint = []entry{{"enabled", "false"}}
	case v == "s":
		x.j.checkpoint = []entry{{"every", `"never"`}}
	case (kind == "c" || kind == "w") && timed:
		n, err := strconv.ParseUint(minutes, 10, 16)
		if err != nil {
			return x.refuse("It wants minutes, as c=30.")
		}
		x.j.checkpoint = []entry{{"every", quoted(strconv.FormatUint(n, 10) + "m")}}
	case v == "c" || v == "w" || v == "u":
	default:
		return x.refuse("When checkpoints are taken says a checkpoint block: checkpoint { every = \"30m\" }.")
	}
	return true
}

// shell reads -S: the shell without a host counts, as with qsub.
func (x *pbsScript) shell(v string) bool {
	for _, item := range pbs.List(v) {
		path, host, _ := strings.Cut(strings.TrimSpace(item), "@")
		if host == "" {
			x.j.setText("shell", path)
			return true
		}
	}
	return x.refuse("These shells are for single machines; a job has one: shell = \"/bin/bash\".")
}

// finish settles what depends on several options.
func (x *pbsScript) finish() {
	j := x.j
	j.name = jobName(x.name)
	parts := x.lay()
	nodes := 0
	for _, p := range parts {
		nodes += p.count
	}
	switch {
	case nodes > 1 && x.array != nil:
		most := largest(parts)
		parts = []part{most}
		j.setText("spread", roost.AttrMachine)
		x.differs(x.layoutAt.line, x.layoutAt.text, fmt.Sprintf("Each index of the array becomes %d tasks that start together, one for each machine, and each of them runs the whole script and asks for the most that one chunk does; "+
			"in PBS only the first machine runs it. $ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES say who is who.", nodes))
	case nodes > 1:
		x.gang(parts)
	}
	if nodes > 1 && x.group != "" {
		j.setText("together", x.group)
	}
	together := 1
	if x.array != nil {
		together = nodes
	}
	x.tasks(together)
	if j.settings["led"] != "" {
		delete(j.small, "count") // the overrides name its tasks
	}
	for _, e := range parts[0].settings() {
		if e.name != "processes" || j.settings["led"] != "" || parts[0].perNode > 1 {
			j.set(e.name, e.value)
		}
	}
	if v := parts[0].virtual; v > 0 {
		j.setText("virtual_memory", size(v))
	}
	if len(x.limits) > 0 {
		j.set("limits", texts(x.limits))
	}
	if account := cmp.Or(x.account, x.project); account != "" {
		j.setText("group", account)
		x.request.account = account
	}
	if len(x.getenv) > 0 && j.settings["getenv"] == "" {
		j.set("getenv", texts(x.getenv))
	}
	x.told()
	x.streams()
	x.request.name, x.request.array, x.request.nodes, x.request.cpus, x.request.gpus = x.name, x.array, nodes, max(parts[0].cpus, 1), parts[0].gpus
	x.request.perNode = max(parts[0].perNode, 1)
}

// tasks says how many tasks there are beside those of a led gang.
func (x *pbsScript) tasks(together int) {
	j := x.j
	if !j.setTasks(x.array, together) {
		x.lost(0, "-J, -t", tooMany)
		x.array, j.gang = nil, 0
	} else if x.array != nil && j.index == "" {
		x.lost(0, "-J, -t", noIndexes)
	}
	if x.array != nil && x.array.atOnce > 0 {
		j.setInt("max_running", x.array.atOnce)
	}
	if together > 1 && j.settings["max_running"] != "" {
		delete(j.settings, "max_running")
		x.lost(0, "%", "How many tasks run at once cannot be said of tasks that start together.")
	}
}

// told says what is told of the job.
func (x *pbsScript) told() {
	points := x.mail
	if x.array == nil {
		points = strings.ReplaceAll(points, "j", "")
	}
	x.j.mail(points, pbs.List(x.mailTo))
}
