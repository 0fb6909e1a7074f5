package translate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
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
	list, ok := words(d.args)
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
		args, ok := words(v)
		if ok && len(args) > 0 {
			x.j.set("arguments", texts(args))
		}
		return ok
	case 'n':
		return x.refuse(noWaste)
	case 'z', 'f', 'b':
		return true
	case 'C':
		return x.refuse("It counts on the command line only.")
	}
	return x.refuse(noControl)
}

// exports reads -v A,B=2,C="x,y".
func (x *pbsScript) exports(v string) bool {
	for _, item := range fields(v) {
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

// attributes reads -W.
func (x *pbsScript) attributes(v string) bool {
	items, carried := fields(v), false
	for i := 0; i < len(items); i++ {
		name, value, _ := strings.Cut(strings.TrimSpace(items[i]), "=")
		switch name {
		case "depend", "stagein", "stageout", "group_list", "x":
			for i+1 < len(items) && !strings.Contains(items[i+1], "=") { // commas of a list stand for themselves
				i++
				value += "," + items[i]
			}
		}
		switch name {
		case "depend":
			x.refuse(dependsOn(value, ","))
		case "umask":
			x.j.setText("umask", value)
			carried = true
		case "max_run_subjobs":
			n, err := strconv.Atoi(value)
			if err == nil && n > 0 {
				x.j.setInt("max_running", n)
			}
			carried = err == nil
		case "block":
			x.refuse("roost submit --wait FILE waits, and ends as the jobs do.")
		case "stagein":
			carried = x.stage("inputs", value) || carried
		case "stageout":
			x.refuse("outputs = [\"NAME\"] says which new files of the task's directory come back to where the job was submitted; all of them do unless it is said.")
		case "sandbox":
			x.refuse("On machines that do not see your files a task has a directory of its own in any case; transfer = \"always\" gives it one everywhere.")
		case "group_list":
			x.refuse("The job runs with the groups of whom submits it; group is the accounting group.")
		case "interactive":
			x.refuse("For an interactive job, run roost run -- COMMAND, or submit one and enter it with roost ssh.")
		default:
			x.refuse(fmt.Sprintf("-W %s: %s", shown(name), noControl))
		}
	}
	return carried
}

// stage reads "here@host:there,…": files that are brought, under the name that they get.
func (x *pbsScript) stage(setting, v string) bool {
	for _, item := range strings.Split(v, ",") {
		local, remote, ok := strings.Cut(item, "@")
		if _, path, hosted := strings.Cut(remote, ":"); hosted {
			remote = path
		}
		if !ok || local == "" || remote == "" || strings.HasPrefix(local, "/") || strings.HasPrefix(local, "$") || strings.HasPrefix(local, "~") {
			return x.refuse("Files are brought with inputs = { \"name there\" = \"/path/here\" }, and are found in the task's directory.")
		}
		x.j.add(setting, local, quoted(remote))
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

// streams says where the output goes.
func (x *pbsScript) streams() {
	j := x.j
	out, err := x.out, x.err
	if x.join != "" {
		if x.join == "eo" && err != "" {
			out = err
		}
		err = ""
		j.set("join_output", "true")
	}
	if out == "" && err == "" {
		x.differs(0, "no -o, no -e", "PBS then writes NAME.oNUMBER and NAME.eNUMBER; here the output is kept, and roost logs shows it.")
	}
	if out != "" {
		j.set("stdout", x.stream("stdout", out).source())
	}
	if err != "" {
		j.set("stderr", x.stream("stderr", err).source())
	}
}

// pbsReference is what stands for something in the name of a file.
var pbsReference = regexp.MustCompile(`\$\{?(?:PBS_JOBID|PBS_JOBNAME|PBS_ARRAY_INDEX|PBS_ARRAYID|PBS_O_WORKDIR|HOME|USER)\}?|\^array_index\^`)

func (x *pbsScript) stream(setting, path string) text {
	if host, rest, ok := strings.Cut(path, ":"); ok && host != "" && !strings.Contains(host, "/") && rest != "" {
		x.differs(0, path, "Output goes to the machine where the job is submitted.")
		path = rest
	}
	path = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "localhost:"), "$PBS_O_WORKDIR/"), "${PBS_O_WORKDIR}/")
	for _, home := range []string{"$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(path, home); ok {
			path = "~/" + rest
		}
	}
	p := &pbsPath{x: x}
	var out text
	from := 0
	for _, m := range pbsReference.FindAllStringIndex(path, -1) {
		out = out.add(path[from:m[0]])
		out = p.one(out, strings.Trim(path[m[0]:m[1]], "${}"))
		from = m[1]
	}
	out = out.add(path[from:])
	if s, fixed := out.fixed(); fixed && s == "/dev/null" {
		return out
	}
	if s, fixed := out.fixed(); len(out) == 0 || fixed && (strings.HasSuffix(s, "/") || s == ".") {
		out = out.add(map[bool]string{true: "/", false: ""}[s == "."] + x.j.name + map[string]string{"stdout": ".out", "stderr": ".err"}[setting])
	}
	if x.j.index != "" && !p.indexed {
		x.differs(0, path, "Each task of an array needs a file of its own: the index was added.")
		out = append(out.add("."), piece{expr: x.j.index})
	}
	if x.j.gang > 1 {
		x.differs(0, path, "Each task of a gang needs a file of its own: its number was added.")
		out = append(out.add("."), piece{expr: "task.index"})
	}
	return out
}

// pbsPath is the name of a file in the making.
type pbsPath struct {
	x       *pbsScript
	indexed bool
}

func (p *pbsPath) remark(why string) { p.x.differs(0, "-o, -e", why) }

// one appends what stands for one reference.
func (p *pbsPath) one(out text, name string) text {
	switch name {
	case "PBS_JOBID":
		return jobNumber(out, p)
	case "PBS_JOBNAME":
		return out.add(p.x.name)
	case "^array_index^", "PBS_ARRAY_INDEX", "PBS_ARRAYID":
		if p.x.j.index == "" {
			return trimmed(out)
		}
		p.indexed = true
		return append(out, piece{expr: p.x.j.index})
	}
	p.remark("$" + name + " is not known in a job file, and left out.")
	return trimmed(out)
}
