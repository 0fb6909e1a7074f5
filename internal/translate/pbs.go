package translate

import (
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
	array    *array
	nodes    int // machines
	perNode  int // processes on each
	cpus     int // cores of each
	gpus     int
	memory   roost.Bytes // of each machine
	total    roost.Bytes // of the whole job
	require  []condition
	getenv   []string
	layoutAt directive
	initial  bool // -d says where it starts
}

// pbs translates a qsub script (qsub(1B) of OpenPBS, with the options of Torque).
func (t *translation) pbs(text string) error {
	s := takeApart(text, func(line string) (string, bool) {
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#PBS")
		return rest, ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
	}, true)
	if !s.commands() {
		return nothing("the script has no commands")
	}
	x := &pbsScript{translation: t, j: newJob(), name: t.fileName()}
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
		x.request.account = v
		j.setText("group", v)
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
		path, _, _ := strings.Cut(v, ",")
		path, _, _ = strings.Cut(path, "@")
		j.setText("shell", path)
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
	case 'm', 'M':
		if v == "n" {
			return true
		}
		return x.refuse(noMail)
	case 'k':
		if strings.Contains(v, "d") || v == "n" {
			return true
		}
		return x.refuse("Output goes where stdout and stderr say, and is there while the job runs.")
	case 'I', 'X', 'x':
		return x.refuse("For an interactive job, run roost run -- COMMAND, or submit one and enter it with roost ssh.")
	case 'R':
		return x.refuse("Output files stay. Remove them at the end of the script.")
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

// finish settles what depends on several options.
func (x *pbsScript) finish() {
	j := x.j
	j.name = jobName(x.name)
	nodes := max(x.nodes, 1)
	if nodes > 1 {
		j.setText("spread", roost.AttrMachine)
		x.differs(x.layoutAt.line, x.layoutAt.text, fmt.Sprintf("It becomes %d tasks that start together, one for each machine, and each of them runs the whole script; in PBS only the first machine does, and mpirun reaches the others. "+
			"$ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES say who is who.", nodes))
	}
	if !j.setTasks(x.array, nodes) {
		x.lost(0, "-J, -t", tooMany)
		x.array, j.gang = nil, 0
	} else if x.array != nil && j.index == "" {
		x.lost(0, "-J, -t", noIndexes)
	}
	if x.array != nil && x.array.atOnce > 0 {
		j.setInt("max_running", x.array.atOnce)
	}
	if nodes > 1 && j.settings["max_running"] != "" {
		delete(j.settings, "max_running")
		x.lost(0, "%", "How many tasks run at once cannot be said of tasks that start together.")
	}
	if x.cpus > 0 {
		j.setInt("cpus", x.cpus)
	}
	if x.gpus > 0 {
		j.setInt("gpus", x.gpus)
	}
	memory := x.memory
	if memory == 0 {
		memory = x.total / roost.Bytes(nodes)
	}
	if memory > 0 {
		j.setText("memory", size(memory))
	}
	if len(x.require) > 0 {
		j.set("requirements", conditions(x.require))
	}
	if len(x.getenv) > 0 && j.settings["getenv"] == "" {
		j.set("getenv", texts(x.getenv))
	}
	x.streams()
	x.request.name, x.request.array, x.request.nodes, x.request.cpus, x.request.gpus = x.name, x.array, nodes, max(x.cpus, 1), x.gpus
	x.request.perNode = x.perNode
	if x.perNode == 0 {
		x.request.perNode = max(x.cpus, 1)
	}
}
