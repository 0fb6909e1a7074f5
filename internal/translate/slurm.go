package translate

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/spell"
)

// slurmScript gathers what the options of an sbatch script say; what depends on several of them is settled at the end.
type slurmScript struct {
	*translation
	j      *job
	d      directive // the one that is being read
	name   string
	output string // patterns
	errors string
	array  *array
	export string
	nodes  int
	tasks  int // --ntasks
	perNode,
	cpus int
	gpus, gpusPerNode, gpusPerTask int
	cpusPerGPU                     int
	memory, memoryPerCPU           roost.Bytes
	memoryPerGPU                   roost.Bytes
	require                        []condition
	mail                           string // points, as letters of qsub -m
	mailTo                         []string
	lines                          map[string]directive // where an option stood that is settled later
}

// slurm translates an sbatch script (sbatch(1) of Slurm 24.11).
func (t *translation) slurm(text string) error {
	s := takeApart(text, func(line string) (string, bool) {
		rest, ok := strings.CutPrefix(line, "#SBATCH")
		return uncommented(rest), ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
	}, false)
	if !s.commands() {
		return nothing("the script has no commands")
	}
	x := &slurmScript{translation: t, j: newJob(), name: t.fileName(), lines: map[string]directive{}}
	for _, d := range s.directives {
		x.directive(d)
	}
	t.jobs = append(t.jobs, x.j)
	x.finish()
	t.setScript(x.j, &s)
	return nil
}

// uncommented is a directive without the comment that follows a blank and a #.
func uncommented(s string) string {
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == '#' && i > 0 && (s[i-1] == ' ' || s[i-1] == '\t'):
			return s[:i]
		}
	}
	return s
}

// directive reads the options of one line.
func (x *slurmScript) directive(d directive) {
	x.d = d
	list, ok := pbs.Words(d.args)
	if !ok {
		x.refuse("A quote is not closed on this line.")
		return
	}
	for i := 0; i < len(list); i++ {
		o, value, given, ok := x.option(list[i])
		if !ok {
			continue
		}
		if o.value == needed && !given {
			if i+1 == len(list) {
				x.refuse("--" + o.name + " wants a value.")
				continue
			}
			i++
			value = list[i]
		}
		x.lines[o.name] = d
		switch {
		case o.why != "":
			x.lost(d.line, d.text, o.why)
		case o.do == nil:
			x.carried++
		default:
			if o.do(x, strings.TrimSpace(value)) {
				x.carried++
			}
		}
	}
}

// option finds the option that a word begins, long or short, whole or, as getopt allows, as far as it is told from all others.
func (x *slurmScript) option(word string) (o slurmOption, value string, given, ok bool) {
	all := slurmOptions()
	if name, isLong := strings.CutPrefix(word, "--"); isLong {
		name, value, given = strings.Cut(name, "=")
		var begins []slurmOption
		for _, o := range all {
			if o.name == name {
				return o, value, given, true
			}
			if strings.HasPrefix(o.name, name) && name != "" {
				begins = append(begins, o)
			}
		}
		if len(begins) == 1 {
			return begins[0], value, given, true
		}
		x.unknown("--"+name, all)
		return o, "", false, false
	}
	if len(word) > 1 && word[0] == '-' {
		for _, o := range all {
			if o.short == word[1] {
				return o, strings.TrimPrefix(word[2:], "="), len(word) > 2, true
			}
		}
		x.refuse(fmt.Sprintf("sbatch has no option -%c, or it is not known here.", word[1]))
		return o, "", false, false
	}
	x.refuse(fmt.Sprintf("%q is no option; it is ignored.", shown(word)))
	return o, "", false, false
}

func (x *slurmScript) unknown(name string, all []slurmOption) {
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = "--" + o.name
	}
	why := fmt.Sprintf("%s is not known.", shown(name))
	if near := spell.Nearest(name, names); near != "" {
		why += " Did you mean " + near + "?"
	}
	x.refuse(why)
}

// refuse notes that the present line was not carried over.
func (x *slurmScript) refuse(why string) bool {
	x.lost(x.d.line, x.d.text, why)
	return false
}

func (x *slurmScript) remark(why string) { x.differs(x.d.line, x.d.text, why) }

// at goes back to the line of an option, for what is found out about it in the end.
func (x *slurmScript) at(names ...string) *slurmScript {
	x.d = directive{}
	for _, n := range names {
		if d, ok := x.lines[n]; ok {
			x.d = d
			break
		}
	}
	return x
}

// finish settles what depends on several options.
func (x *slurmScript) finish() {
	j := x.j
	if j.name = jobName(x.name); j.name != x.name && x.lines["job-name"].line > 0 {
		x.at("job-name").remark("A name is made of letters, digits and _ . + -.")
	}
	together := x.layout()
	if !j.setTasks(x.array, together) {
		x.at("array", "nodes").refuse(tooMany)
		x.array, j.gang = nil, 0
	} else if x.array != nil && j.index == "" {
		x.at("array").refuse(noIndexes)
	}
	if x.array != nil && x.array.atOnce > 0 {
		if together > 1 {
			x.at("array").refuse("How many tasks run at once cannot be said of tasks that start together.")
		} else {
			j.setInt("max_running", x.array.atOnce)
		}
	}
	x.finishMemory()
	x.streams()
	if x.array == nil {
		x.mail = strings.ReplaceAll(x.mail, "j", "")
	}
	if x.mail != "" && x.mail != "j" { // without a kind of it Slurm sends none
		x.j.mail(x.mail, x.mailTo)
	}
	x.environment()
	if len(x.require) > 0 {
		j.set("requirements", conditions(x.require))
	}
	x.request.name, x.request.array = x.name, x.array
}

// layout decides on how many machines the job runs, with how many cores and GPUs on each.
func (x *slurmScript) layout() (together int) {
	j := x.j
	nodes, cpus := max(x.nodes, 1), max(x.cpus, 1)
	perNode := x.perNode
	switch {
	case perNode > 0 && x.nodes == 0 && x.tasks > perNode:
		nodes = (x.tasks + perNode - 1) / perNode
	case perNode == 0 && x.tasks > 0:
		perNode = (x.tasks + nodes - 1) / nodes
	}
	perNode = max(perNode, 1)
	gpus := x.gpusPerNode
	switch {
	case gpus == 0 && x.gpus > 0:
		gpus = (x.gpus + nodes - 1) / nodes
	case gpus == 0 && x.gpusPerTask > 0:
		gpus = x.gpusPerTask * perNode
	}
	cores := perNode * cpus
	if x.cpusPerGPU > 0 && x.cpus == 0 {
		cores = x.cpusPerGPU * max(gpus, 1)
	}
	if cores > 1 || x.lines["cpus-per-task"].line > 0 || x.lines["ntasks"].line > 0 {
		j.setInt("cpus", cores)
	}
	if gpus > 0 {
		j.setInt("gpus", gpus)
	}
	if nodes == 1 && x.tasks > 1 && x.nodes == 0 && x.perNode == 0 {
		x.at("ntasks").remark(fmt.Sprintf("Slurm may spread the %d tasks over machines; here they share one, with cores for all of them. For as many runs of the script make it count = %d with cpus = %d, and for runs that start together add gang = true.", x.tasks, x.tasks, cpus))
	}
	tasks := x.tasks
	if tasks == 0 {
		tasks = perNode * nodes
	}
	x.request.nodes, x.request.tasks, x.request.perNode, x.request.cpus, x.request.gpus = nodes, tasks, perNode, cpus, gpus
	if nodes > 1 {
		j.setText("spread", roost.AttrMachine)
		x.at("nodes", "ntasks", "ntasks-per-node").remark(fmt.Sprintf("It becomes %d tasks that start together, one for each machine, and each of them runs the whole script; in Slurm only the first machine does, and srun reaches the others. "+
			"$ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES say who is who.", nodes))
	}
	return nodes
}

func (x *slurmScript) finishMemory() {
	memory := x.memory
	switch {
	case memory == 0 && x.memoryPerCPU > 0:
		memory = x.memoryPerCPU * roost.Bytes(max(x.request.perNode*x.request.cpus, 1))
	case memory == 0 && x.memoryPerGPU > 0:
		memory = x.memoryPerGPU * roost.Bytes(max(x.request.gpus, 1))
	}
	if memory > 0 {
		x.j.setText("memory", size(memory))
	}
	x.request.memory = int64(memory)
}

// environment says what of the submitter's environment goes along: all of it, unless --export says otherwise.
func (x *slurmScript) environment() {
	j := x.j
	if x.export == "" {
		j.set("getenv", "true")
		return
	}
	var names []string
	for _, item := range pbs.List(x.export) {
		name, value, set := strings.Cut(strings.TrimSpace(item), "=")
		switch {
		case strings.EqualFold(name, "ALL") && !set:
			j.set("getenv", "true")
			names = nil
		case strings.EqualFold(name, "NONE") || strings.EqualFold(name, "NIL") || name == "":
		case !identifier.MatchString(name):
			x.at("export").refuse(fmt.Sprintf("%q cannot be the name of a variable.", shown(name)))
		case set:
			j.add("environment", name, quoted(value))
		case j.settings["getenv"] == "":
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		j.set("getenv", texts(names))
	}
}

// streams says where the output goes.
func (x *slurmScript) streams() {
	j := x.j
	if x.output == "" {
		j.set("join_output", "true")
		if x.errors == "" {
			x.at().differs(0, "no --output", "Slurm then writes slurm-ID.out; here the output is kept, and roost logs shows it.")
			return
		}
		delete(j.settings, "join_output")
	}
	if x.output != "" {
		x.at("output").stream("stdout", x.output)
		if x.errors == "" || x.errors == x.output {
			j.set("join_output", "true")
			return
		}
	}
	if x.errors != "" {
		x.at("error").stream("stderr", x.errors)
	}
}

func (x *slurmScript) stream(setting, pattern string) {
	p := slurmPattern{script: x, index: x.j.index}
	x.j.set(setting, p.read(pattern).source())
	for _, why := range p.remarks {
		x.remark(why)
	}
}
