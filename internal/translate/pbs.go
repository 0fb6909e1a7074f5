package translate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
	"github.com/roost-batch/roost/internal/pbs/qsub"
)

// pbsScript collects the options of a qsub script.
type pbsScript struct {
	*fileTranslation
	job         *jobBlock
	directive   scriptDirective
	name        string
	out, err    string
	join        string
	keepOnNode  string // letters of -k
	remove      string // letters of -R
	array       *arrayIndexes
	parts       []chunkRequest // of -l select and nodes
	jobWide     chunkRequest   // what is requested for the whole job
	currentPart *chunkRequest  // the request being read
	// process and processVirtual bound the memory and address space of a process.
	process, processVirtual roost.Bytes
	limits                  []string
	getenv                  []string
	mail                    string // letters of -m
	mailTo                  string
	account                 string
	project                 string
	layoutLine              scriptDirective
	initialDirectory        bool // -d sets the directory
	// arrangement says how the chunks may be placed, and group names the machine
	// attribute that must be equal for all.
	arrangement, group string
}

// translatePBS translates a qsub script (qsub(1B) of OpenPBS, with the options of
// Torque).
func (t *fileTranslation) translatePBS(text string) error {
	s := parseScript(text, func(line string) (string, bool) {
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#PBS")
		return rest, ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '-')
	}, true)
	if !s.hasCommands() {
		return nothingError("the script has no commands")
	}
	x := &pbsScript{fileTranslation: t, job: newJob(), name: t.baseName()}
	x.currentPart = &x.jobWide
	x.jobWide.count = 1
	for _, d := range s.directives {
		x.readDirective(d)
	}
	t.jobs = append(t.jobs, x.job)
	x.finishJob()
	if home := !x.initialDirectory && !changesToWorkdir(s.lines); home {
		t.noteDifference(0, "no cd $PBS_O_WORKDIR",
			"PBS starts a job in the home directory; here it starts in the directory where it was submitted. "+
				"directory = \"~\" starts it at home.")
	}
	t.setScript(x.job, &s)
	return nil
}

var workdir = lazyregexp.New(`\bcd\s|PBS_O_WORKDIR|PBS_O_INITDIR`)

func changesToWorkdir(lines []string) bool {
	for _, l := range lines {
		if !strings.HasPrefix(strings.TrimSpace(l), "#") && workdir().MatchString(l) {
			return true
		}
	}
	return false
}

const (
	pbsFlags            = "fhIVXzxn"
	pbsOptionsWithValue = "aAbcCdDeFjJklmMNopPqrRSTtuvwWK"
)

// readDirective reads the options of one line.
func (x *pbsScript) readDirective(d scriptDirective) {
	x.directive = d
	list, ok := qsub.SplitWords(d.args)
	if !ok {
		x.noteDirectiveLost("A quote is not closed on this line.")
		return
	}
	for i := 0; i < len(list); i++ {
		word := list[i]
		if len(word) < 2 || word[0] != '-' {
			x.noteDirectiveLost(fmt.Sprintf("%q is no option; it is ignored.", shownLine(word)))
			continue
		}
		if x.setQueueChoice(word) {
			continue
		}
		for k := 1; k < len(word); k++ {
			letter, value := word[k], ""
			if strings.IndexByte(pbsFlags, letter) < 0 {
				if strings.IndexByte(pbsOptionsWithValue, letter) < 0 {
					x.noteDirectiveLost(fmt.Sprintf("qsub has no option -%s.", shownLine(word[k:])))
					return
				}
				if value = word[k+1:]; value == "" {
					if i++; i == len(list) {
						x.noteDirectiveLost(fmt.Sprintf("-%c wants a value.", letter))
						break
					}
					value = list[i]
				}
				k = len(word)
			}
			if x.setOption(letter, strings.TrimSpace(value)) {
				x.carried++
			}
		}
	}
}

// setQueueChoice carries Roost's own options of qsub over.
func (x *pbsScript) setQueueChoice(word string) bool {
	if word != "--cell" && word != "--local" {
		return false
	}
	x.job.setSource("cell_queue", strconv.FormatBool(word == "--cell"))
	x.carried++
	return true
}

func (x *pbsScript) noteDirectiveLost(why string) bool {
	x.noteLost(x.directive.line, x.directive.text, why)
	return false
}

func (x *pbsScript) noteDirectiveDifference(why string) {
	x.noteDifference(x.directive.line, x.directive.text, why)
}

// setOption carries one option over, and reports whether it could.
func (x *pbsScript) setOption(letter byte, v string) bool {
	j := x.job
	switch letter {
	case 'N':
		x.name = strings.Trim(strings.TrimPrefix(v, "="), `"`)
	case 'l':
		return x.readResources(v)
	case 'o':
		x.out = v
	case 'e':
		x.err = v
	case 'j':
		x.join = strings.TrimSuffix(v, "n")
	case 'q':
		name, server, _ := strings.Cut(v, "@")
		if name == "" {
			return x.noteDirectiveLost("The server " + shownLine(server) + " is not known here.")
		}
		x.request.queue = name
		j.setText("queue", name)
		x.noteDirectiveDifference("The administrator makes a queue with roost queue set; roost queue lists them.")
	case 'A', 'P':
		if letter == 'P' && x.from == Torque {
			return x.noteDirectiveLost("A job belongs to the user who submits it.")
		}
		if letter == 'A' {
			x.account = v
		} else {
			x.project = v
		}
	case 'J', 't':
		a, ok := parseArray(v)
		if !ok {
			return x.noteDirectiveLost("These are no indexes of an array; they are written as 0-9, 1-99:2 or " +
				"1,3,7-9, and %N behind them says how many run at once.")
		}
		x.array = &a
	case 'h':
		j.setSource("hold", "true")
	case 'p':
		n, err := strconv.Atoi(v)
		if err != nil {
			return x.noteDirectiveLost("It wants a number from -1024 to 1023.")
		}
		j.setInt("priority", n)
	case 'r':
		j.setSource("rerunnable", strconv.FormatBool(v != "n"))
	case 'S':
		return x.setShell(v)
	case 'v':
		return x.setExports(v)
	case 'V':
		j.setSource("getenv", "true")
	case 'W':
		return x.setAttributes(v)
	case 'a':
		return x.setStartAfter(v)
	case 'c':
		return x.setCheckpoint(v)
	case 'd', 'w':
		x.initialDirectory = true
		j.setText("directory", v)
	default:
		return x.noteUnsupported(letter, v)
	}
	return true
}

// noteUnsupported handles options without a counterpart, and those that need none.
func (x *pbsScript) noteUnsupported(letter byte, v string) bool {
	switch letter {
	case 'm':
		x.mail = v
		return v == "n" || strings.Trim(v, "abej") == "" ||
			x.noteDirectiveLost("It wants letters of a, b, e and j, or n.")
	case 'M':
		x.mailTo = v
		return true
	case 'k':
		x.keepOnNode = strings.TrimSuffix(v, "n")
		return true
	case 'I', 'X', 'x':
		return x.noteDirectiveLost("For an interactive job, run roost run -- COMMAND, or submit one and enter " +
			"it with roost ssh.")
	case 'R':
		x.remove = v
		return strings.Trim(v, "oe") == "" || x.noteDirectiveLost("It wants o, e or both.")
	case 'u':
		return x.noteDirectiveLost("A job runs as the user who submits it.")
	case 'F':
		args, ok := qsub.SplitWords(v)
		if ok && len(args) > 0 {
			x.job.setSource("arguments", textListSource(args))
		}
		return ok
	case 'n':
		return x.setExclusive()
	case 'z', 'f', 'b':
		return true
	case 'C':
		return x.noteDirectiveLost("It works on the command line only.")
	}
	return x.noteDirectiveLost(noControl)
}

// setExports reads the value of -v, such as A,B=2,C="x,y".
func (x *pbsScript) setExports(v string) bool {
	for _, item := range qsub.SplitList(v) {
		name, value, set := strings.Cut(strings.TrimSpace(item), "=")
		switch {
		case name == "":
		case !identifier().MatchString(name):
			return x.noteDirectiveLost(fmt.Sprintf("%q cannot be the name of a variable.", shownLine(name)))
		case set:
			x.job.addToMap("environment", name, quotedText(value))
		default:
			x.getenv = append(x.getenv, name)
		}
	}
	return true
}

// setStartAfter reads -a. Omitted parts mean the next such time, which job files have
// only for a time of day.
func (x *pbsScript) setStartAfter(v string) bool {
	digits, secs, _ := strings.Cut(v, ".")
	for _, c := range digits + secs {
		if c < '0' || c > '9' {
			digits = ""
		}
	}
	at := func(i int) string { return digits[len(digits)-i : len(digits)-i+2] }
	switch len(digits) {
	case 4:
		x.job.setText("start_after", at(4)+":"+at(2))
	case 10, 12:
		century := "20"
		if len(digits) == 12 {
			century = digits[:2]
		}
		x.job.setText("start_after", fmt.Sprintf("%s%s-%s-%s %s:%s", century, at(10), at(8), at(6), at(4), at(2)))
	default:
		return x.noteDirectiveLost("Write the day with its year, and the time: start_after = \"2026-12-24 18:00\".")
	}
	return true
}

// setCheckpoint reads -c.
func (x *pbsScript) setCheckpoint(v string) bool {
	kind, minutes, timed := strings.Cut(v, "=")
	switch {
	case v == "n":
		x.job.checkpoint = []blockEntry{{"enabled", "false"}}
	case v == "s":
		x.job.checkpoint = []blockEntry{{"every", `"never"`}}
	case (kind == "c" || kind == "w") && timed:
		n, err := strconv.ParseUint(minutes, 10, 16)
		if err != nil {
			return x.noteDirectiveLost("It wants minutes, as c=30.")
		}
		x.job.checkpoint = []blockEntry{{"every", quotedText(strconv.FormatUint(n, 10) + "m")}}
	case v == "c" || v == "w" || v == "u":
	default:
		return x.noteDirectiveLost("A checkpoint block says when checkpoints are taken: checkpoint { every " +
			"= \"30m\" }.")
	}
	return true
}

// setShell reads -S: the shell without a host counts, as with qsub.
func (x *pbsScript) setShell(v string) bool {
	for _, item := range qsub.SplitList(v) {
		path, host, _ := strings.Cut(strings.TrimSpace(item), "@")
		if host == "" {
			x.job.setText("shell", path)
			return true
		}
	}
	return x.noteDirectiveLost("These shells are for single machines; a job has one: shell = \"/bin/bash\".")
}

// finishJob handles what depends on several options.
func (x *pbsScript) finishJob() {
	j := x.job
	j.name = newJobName(x.name)
	parts := x.placeChunks()
	nodes := 0
	for _, p := range parts {
		nodes += p.count
	}
	switch {
	case nodes > 1 && x.array != nil:
		most := largestChunk(parts)
		parts = []chunkRequest{most}
		j.setText("spread", roost.AttrMachine)
		x.noteDifference(x.layoutLine.line, x.layoutLine.text,
			fmt.Sprintf("Each index of the array becomes %d tasks that start together, one for each machine. Each "+
				"of them runs the whole script and asks for the most that one chunk does; "+
				"in PBS only the first machine runs it. $ROOST_GANG_RANK, $ROOST_GANG_SIZE and "+
				"$ROOST_GANG_NODES tell the tasks apart.", nodes))
	case nodes > 1:
		x.setGang(parts)
	}
	if nodes > 1 && x.group != "" {
		j.setText("together", x.group)
	}
	together := 1
	if x.array != nil {
		together = nodes
	}
	x.setTasks(together)
	if j.settings["led"] != "" {
		delete(j.small, "count") // the overrides name its tasks
	}
	for _, e := range parts[0].chunkSettings() {
		if e.name != "processes" || j.settings["led"] != "" || parts[0].perNode > 1 {
			j.setSource(e.name, e.value)
		}
	}
	if v := parts[0].virtual; v > 0 {
		j.setText("virtual_memory", sizeText(v))
	}
	if len(x.limits) > 0 {
		j.setSource("limits", textListSource(x.limits))
	}
	if account := cmp.Or(x.account, x.project); account != "" {
		j.setText("group", account)
		x.request.account = account
	}
	if len(x.getenv) > 0 && j.settings["getenv"] == "" {
		j.setSource("getenv", textListSource(x.getenv))
	}
	x.setMail()
	x.setStreams()
	x.request.name, x.request.array, x.request.nodes, x.request.cpus, x.request.gpus = x.name, x.array, nodes,
		max(parts[0].cpus, 1), parts[0].gpus
	x.request.perNode = max(parts[0].perNode, 1)
}

// setTasks sets the number of tasks, except that of an MPI gang.
func (x *pbsScript) setTasks(together int) {
	j := x.job
	if !j.setTasks(x.array, together) {
		x.noteLost(0, "-J, -t", tooManyTasks)
		x.array, j.gang = nil, 0
	} else if x.array != nil && j.index == "" {
		x.noteLost(0, "-J, -t", noIndexes)
	}
	if x.array != nil && x.array.maxRunning > 0 {
		j.setInt("max_running", x.array.maxRunning)
	}
	if together > 1 && j.settings["max_running"] != "" {
		delete(j.settings, "max_running")
		x.noteLost(0, "%", "How many tasks run at once cannot be said of tasks that start together.")
	}
}

// setMail sets which events are mailed.
func (x *pbsScript) setMail() {
	points := x.mail
	if x.array == nil {
		points = strings.ReplaceAll(points, "j", "")
	}
	x.job.setMail(points, qsub.SplitList(x.mailTo))
}
