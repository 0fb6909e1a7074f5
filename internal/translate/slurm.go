package translate

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/suggest"
)

// slurmScript collects the options of an sbatch script. What depends on several of them
// is handled at the end.
type slurmScript struct {
	*fileTranslation
	job       *jobBlock
	directive scriptDirective // directive being read
	name      string
	output    string // patterns
	errors    string
	array     *arrayIndexes
	export    string
	nodes     int
	tasks     int // --ntasks
	perNode,
	cpus int
	gpus, gpusPerNode, gpusPerTask int
	cpusPerGPU                     int
	memory, memoryPerCPU           roost.Bytes
	memoryPerGPU                   roost.Bytes
	require                        []machineCondition
	mail                           string // events as letters of qsub -m
	mailTo                         []string
	// by option: the line of an option that is handled at the end
	optionLines map[string]scriptDirective
}

// translateSlurm translates an sbatch script (sbatch(1) of Slurm 24.11).
func (t *fileTranslation) translateSlurm(text string) error {
	s := parseScript(text, func(line string) (string, bool) {
		rest, ok := strings.CutPrefix(line, "#SBATCH")
		return withoutComment(rest), ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
	}, false)
	if !s.hasCommands() {
		return nothingError("the script has no commands")
	}
	x := &slurmScript{fileTranslation: t, job: newJob(), name: t.baseName(), optionLines: map[string]scriptDirective{}}
	for _, d := range s.directives {
		x.readDirective(d)
	}
	t.jobs = append(t.jobs, x.job)
	x.finishJob()
	t.setScript(x.job, &s)
	return nil
}

// withoutComment removes the comment from a directive, which follows a blank and a #.
func withoutComment(s string) string {
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

// readDirective reads the options of one line.
func (x *slurmScript) readDirective(d scriptDirective) {
	x.directive = d
	list, ok := qsub.SplitWords(d.args)
	if !ok {
		x.noteDirectiveLost("A quote is not closed on this line.")
		return
	}
	for i := 0; i < len(list); i++ {
		o, value, given, ok := x.readOption(list[i])
		if !ok {
			continue
		}
		if o.value == valueRequired && !given {
			if i+1 == len(list) {
				x.noteDirectiveLost("--" + o.name + " wants a value.")
				continue
			}
			i++
			value = list[i]
		}
		x.optionLines[o.name] = d
		switch {
		case o.lostReason != "":
			x.noteLost(d.line, d.text, o.lostReason)
		case o.apply == nil:
			x.carried++
		default:
			if o.apply(x, strings.TrimSpace(value)) {
				x.carried++
			}
		}
	}
}

// readOption finds the option that a word begins: long or short, in full or, as getopt
// allows, an unambiguous prefix.
func (x *slurmScript) readOption(word string) (o slurmOption, value string, given, ok bool) {
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
		x.noteUnknown("--"+name, all)
		return o, "", false, false
	}
	if len(word) > 1 && word[0] == '-' {
		for _, o := range all {
			if o.short == word[1] {
				return o, strings.TrimPrefix(word[2:], "="), len(word) > 2, true
			}
		}
		x.noteDirectiveLost(fmt.Sprintf("sbatch has no option -%c, or it is not known here.", word[1]))
		return o, "", false, false
	}
	x.noteDirectiveLost(fmt.Sprintf("%q is no option; it is ignored.", shownLine(word)))
	return o, "", false, false
}

func (x *slurmScript) noteUnknown(name string, all []slurmOption) {
	names := make([]string, len(all))
	for i, o := range all {
		names[i] = "--" + o.name
	}
	why := fmt.Sprintf("%s is not known.", shownLine(name))
	if near := suggest.Nearest(name, names); near != "" {
		why += " Did you mean " + near + "?"
	}
	x.noteDirectiveLost(why)
}

// noteDirectiveLost records that the present line was not carried over. It returns false.
func (x *slurmScript) noteDirectiveLost(why string) bool {
	x.noteLost(x.directive.line, x.directive.text, why)
	return false
}

func (x *slurmScript) noteDirectiveDifference(why string) {
	x.noteDifference(x.directive.line, x.directive.text, why)
}

// returnToLine returns to the line of an option, for a note at the end.
func (x *slurmScript) returnToLine(names ...string) *slurmScript {
	x.directive = scriptDirective{}
	for _, n := range names {
		if d, ok := x.optionLines[n]; ok {
			x.directive = d
			break
		}
	}
	return x
}

// finishJob handles what depends on several options.
func (x *slurmScript) finishJob() {
	j := x.job
	if j.name = newJobName(x.name); j.name != x.name && x.optionLines["job-name"].line > 0 {
		x.returnToLine("job-name").noteDirectiveDifference("A name is made of letters, digits and _ . + -.")
	}
	together := x.setLayout()
	if !j.setTasks(x.array, together) {
		x.returnToLine("array", "nodes").noteDirectiveLost(tooManyTasks)
		x.array, j.gang = nil, 0
	} else if x.array != nil && j.index == "" {
		x.returnToLine("array").noteDirectiveLost(noIndexes)
	}
	if x.array != nil && x.array.maxRunning > 0 {
		if together > 1 {
			x.returnToLine("array").noteDirectiveLost(
				"How many tasks run at once cannot be said of tasks that start together.",
			)
		} else {
			j.setInt("max_running", x.array.maxRunning)
		}
	}
	x.setMemory()
	x.setStreams()
	if x.array == nil {
		x.mail = strings.ReplaceAll(x.mail, "j", "")
	}
	if x.mail != "" && x.mail != "j" { // without an event Slurm sends no mail
		x.job.setMail(x.mail, x.mailTo)
	}
	x.setEnvironment()
	if len(x.require) > 0 {
		j.setSource("requirements", joinConditions(x.require))
	}
	x.request.name, x.request.array = x.name, x.array
}

// setLayout decides on how many machines the job runs, with how many cores and GPUs on
// each.
func (x *slurmScript) setLayout() (together int) {
	j := x.job
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
	if cores > 1 || x.optionLines["cpus-per-task"].line > 0 || x.optionLines["ntasks"].line > 0 {
		j.setInt("cpus", cores)
	}
	if gpus > 0 {
		j.setInt("gpus", gpus)
	}
	if nodes == 1 && x.tasks > 1 && x.nodes == 0 && x.perNode == 0 {
		x.returnToLine("ntasks").noteDirectiveDifference(
			fmt.Sprintf("Slurm may spread the %d tasks over machines; here they share one, with cores for all of "+
				"them. For as many runs of the script make it count = %d with cpus = %d, and for runs that start "+
				"together add gang = true.", x.tasks, x.tasks, cpus),
		)
	}
	tasks := x.tasks
	if tasks == 0 {
		tasks = perNode * nodes
	}
	x.request.nodes, x.request.tasks, x.request.perNode, x.request.cpus, x.request.gpus = nodes, tasks,
		perNode, cpus, gpus
	if nodes > 1 {
		j.setText("spread", roost.AttrMachine)
		x.returnToLine("nodes", "ntasks", "ntasks-per-node").noteDirectiveDifference(
			fmt.Sprintf("It becomes %d tasks that start together, one for each machine. Each of them runs the "+
				"whole script; in Slurm only the first machine does, and srun reaches the others. "+
				"$ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES tell the tasks apart.", nodes),
		)
	}
	return nodes
}

func (x *slurmScript) setMemory() {
	memory := x.memory
	switch {
	case memory == 0 && x.memoryPerCPU > 0:
		memory = x.memoryPerCPU * roost.Bytes(max(x.request.perNode*x.request.cpus, 1))
	case memory == 0 && x.memoryPerGPU > 0:
		memory = x.memoryPerGPU * roost.Bytes(max(x.request.gpus, 1))
	}
	if memory > 0 {
		x.job.setText("memory", sizeText(memory))
	}
	x.request.memory = int64(memory)
}

// setEnvironment sets which variables of the submitter are copied: all, unless --export
// says otherwise.
func (x *slurmScript) setEnvironment() {
	j := x.job
	if x.export == "" {
		j.setSource("getenv", "true")
		return
	}
	var names []string
	for _, item := range qsub.SplitList(x.export) {
		name, value, set := strings.Cut(strings.TrimSpace(item), "=")
		switch {
		case strings.EqualFold(name, "ALL") && !set:
			j.setSource("getenv", "true")
			names = nil
		case strings.EqualFold(name, "NONE") || strings.EqualFold(name, "NIL") || name == "":
		case !identifier().MatchString(name):
			x.returnToLine("export").noteDirectiveLost(fmt.Sprintf("%q cannot be the name of a variable.",
				shownLine(name)))
		case set:
			j.addToMap("environment", name, quotedText(value))
		case j.settings["getenv"] == "":
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		j.setSource("getenv", textListSource(names))
	}
}

// setStreams sets the output files.
func (x *slurmScript) setStreams() {
	j := x.job
	if x.output == "" {
		j.setSource("join_output", "true")
		if x.errors == "" {
			x.returnToLine().noteDifference(0, "no --output",
				"Slurm then writes slurm-ID.out; here the output is kept, and roost logs shows it.")
			return
		}
		delete(j.settings, "join_output")
	}
	if x.output != "" {
		x.returnToLine("output").setStream("stdout", x.output)
		if x.errors == "" || x.errors == x.output {
			j.setSource("join_output", "true")
			return
		}
	}
	if x.errors != "" {
		x.returnToLine("error").setStream("stderr", x.errors)
	}
}

func (x *slurmScript) setStream(setting, pattern string) {
	p := slurmPattern{script: x, index: x.job.index}
	x.job.setSource(setting, p.parsePattern(pattern).hclSource())
	for _, why := range p.remarks {
		x.noteDirectiveDifference(why)
	}
}
