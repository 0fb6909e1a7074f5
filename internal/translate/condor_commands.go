package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// carryOver carries a command over, if it is set.
func (q *condorJob) carryOver(do func(s submitSetting), names ...string) {
	if s, ok := q.commandValue(names...); ok {
		q.current = s
		q.carried++
		do(s)
	}
}

// setProgram sets the program.
func (q *condorJob) setProgram() {
	j := q.job
	q.carryOver(func(s submitSetting) {
		j.setSource("executable", q.expandMacros(strings.Trim(s.value, `"`)).hclSource())
	}, "executable")
	if j.settings["executable"] == "" {
		j.setSource("executable", `"/bin/true"`)
		q.noteLost(q.line, q.source, "It names no executable; /bin/true is used in its place.")
	}
	q.carryOver(func(s submitSetting) {
		if list := q.splitWords(s.value); len(list) > 0 {
			j.setSource("arguments", list2source(list))
		}
	}, "arguments", "args")
	q.carryOver(func(s submitSetting) {
		j.setSource("directory", q.expandMacros(s.value).hclSource())
	}, "initialdir", "initial_dir")
	q.carryOver(func(s submitSetting) {
		switch v := strings.TrimSpace(s.value); {
		case parseBool(v):
			j.setSource("getenv", "true")
		case strings.EqualFold(v, "false") || strings.ContainsAny(v, "*!"):
			if strings.ContainsAny(v, "*!") {
				q.noteCommandLost(s, "Patterns are not known here. Write the names: getenv = [\"PATH\"].")
			}
		default:
			j.setSource("getenv", textListSource(splitCommas(v)))
		}
	}, "getenv", "get_env")
	q.carryOver(q.setEnvironment, "environment", "env")
	q.carryOver(func(s submitSetting) {
		switch v := strings.ToLower(strings.TrimSpace(s.value)); v {
		case "vanilla", "5":
		case "docker", "container":
			q.noteCommandLost(s, "Tasks run on the machine itself, in namespaces of their own, not in images. "+
				"A runtime such as apptainer can be the executable.")
		case "parallel", "mpi":
			q.setGang(s)
		default:
			q.noteCommandLost(s, "There is one kind of job here: a program, which runs on an execute node.")
		}
	}, "universe")
}

func list2source(l []templateText) string { return listSource(sourceList(l)) }

// setGang makes a parallel job a gang.
func (q *condorJob) setGang(s submitSetting) {
	m, ok := q.commandValue("machine_count", "node_count")
	if !ok || q.isSeveral {
		q.noteCommandLost(s, "Tasks that start together are written with count and gang.")
		return
	}
	if n, ok := q.parseNumber(m); ok && n > 1 && n <= 2048 {
		q.job.setTasks(nil, n)
		q.isSeveral = true
		q.noteDifferenceAt(s, "$ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES tell the tasks apart.")
	}
}

func (q *condorJob) setEnvironment(s submitSetting) {
	value := strings.TrimSpace(s.value)
	var list []templateText
	if strings.HasPrefix(value, `"`) {
		list = q.splitWords(value)
	} else {
		for _, part := range strings.Split(q.flatText(value, 0), ";") {
			if strings.TrimSpace(part) != "" {
				list = append(list, q.assembleText(strings.TrimLeft(part, " \t")))
			}
		}
	}
	for _, t := range list {
		name, rest, ok := strings.Cut(t[0].fixed, "=")
		if !ok || t[0].expr != "" || !identifier().MatchString(name) {
			q.noteCommandLost(s, "One of these is no NAME=value.")
			continue
		}
		t[0].fixed = rest
		q.job.addToMap("environment", name, t.hclSource())
	}
}

// setFiles sets the files that are read and written.
func (q *condorJob) setFiles() {
	j := q.job
	q.carryOver(func(s submitSetting) { j.setSource("stdin", q.expandMacros(s.value).hclSource()) }, "input", "stdin")
	q.carryOver(func(s submitSetting) { q.setStream("stdout", s) }, "output", "stdout")
	q.carryOver(func(s submitSetting) { q.setStream("stderr", s) }, "error", "stderr")
	q.carryOver(func(s submitSetting) {
		q.noteDifferenceAt(s, "There is no log file: roost show ID tells what has happened, and roost wait ID waits.")
	}, "log")
	q.carryOver(func(s submitSetting) {
		mode, ok := map[string]string{"yes": "always", "no": "never",
			"if_needed": "auto"}[strings.ToLower(strings.TrimSpace(s.value))]
		if !ok {
			q.noteCommandLost(s, "It is YES, NO or IF_NEEDED.")
			return
		}
		j.setText("transfer", mode)
	}, "should_transfer_files")
	q.carryOver(func(s submitSetting) {
		if !strings.EqualFold(strings.TrimSpace(s.value), "ON_EXIT") {
			q.noteDifferenceAt(s, "Output comes back when a task has ended. To continue elsewhere it needs a "+
				"checkpoint block with method = \"self\".")
		}
	}, "when_to_transfer_output")
	q.carryOver(func(s submitSetting) {
		var list []string
		for _, f := range strings.Split(q.flatText(s.value, 0), ",") {
			f = strings.Trim(strings.TrimSpace(f), `"`)
			switch {
			case f == "":
			case strings.Contains(f, "://"):
				q.noteCommandLost(s, "URLs are not fetched. Let the program do it.")
			default:
				if len(f) > 1 && strings.HasSuffix(f, "/") {
					q.noteDifferenceAt(s, "A directory is brought as it is, with its name; with a / at the end "+
						"HTCondor brings what is in it.")
					f = strings.TrimRight(f, "/")
				}
				list = append(list, q.assembleText(f).hclSource())
			}
		}
		if len(list) > 0 {
			j.setSource("inputs", "["+strings.Join(list, ", ")+"]")
		}
	}, "transfer_input_files")
	q.carryOver(func(s submitSetting) {
		var list []string
		for _, f := range strings.Split(q.flatText(s.value, 0), ",") {
			if f = strings.TrimSpace(f); f != "" && f != `""` {
				list = append(list, q.assembleText(f).hclSource())
			}
		}
		if len(list) > 0 {
			j.setSource("outputs", "["+strings.Join(list, ", ")+"]")
		}
	}, "transfer_output_files")
}

// setStream sets the file of a standard stream. Each of several tasks gets a file of its
// own.
func (q *condorJob) setStream(name string, s submitSetting) {
	t := q.expandMacros(strings.Trim(s.value, `"`))
	fixed, same := t.fixedText()
	if same && fixed == "" || len(t) == 0 {
		return
	}
	if q.isSeveral && t.isSameForAll() && fixed != "/dev/null" {
		t = append(t.appendFixed("."), templatePiece{expr: "task.index"})
		q.noteDifferenceAt(s, "Each task needs a file of its own: its number was added.")
	}
	q.job.setSource(name, t.hclSource())
}

// setResources sets the requested resources.
func (q *condorJob) setResources() {
	q.carryOver(func(s submitSetting) { q.setResource("cpus", s) }, "request_cpus", "requestcpus")
	q.carryOver(func(s submitSetting) { q.setResource("gpus", s) }, "request_gpus", "requestgpus")
	q.carryOver(func(s submitSetting) { q.setSize("memory", s, roost.MiB, "MiB") }, "request_memory", "requestmemory")
	q.carryOver(func(s submitSetting) { q.setSize("disk", s, roost.KiB, "KiB") }, "request_disk", "requestdisk")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok && n > 0 {
			q.job.setText("walltime", durationText(time.Duration(min(n, 1<<29))*time.Second))
		}
	}, "allowed_execute_duration", "+maxruntime", "+maxwalltimemins")
}

func (q *condorJob) setResource(name string, s submitSetting) {
	t := q.expandMacros(s.value)
	if fixed, ok := t.fixedText(); ok {
		if n, err := strconv.ParseUint(strings.TrimSpace(fixed), 10, 16); err == nil {
			if n > 0 || name == "cpus" {
				q.job.setInt(name, int(n))
			}
			return
		}
		q.noteCommandLost(s, "An expression over the machine cannot be asked for. Write a number.")
		return
	}
	q.job.setSource(name, "tonumber("+t.hclSource()+")")
}

func (q *condorJob) setSize(name string, s submitSetting, unit roost.Bytes, word string) {
	t := q.expandMacros(s.value)
	fixed, ok := t.fixedText()
	if !ok {
		if last := t[len(t)-1]; last.expr != "" {
			t = t.appendFixed(word)
			q.noteDifferenceAt(s, "The values are taken to be numbers in "+word+".")
		}
		q.job.setSource(name, t.hclSource())
		return
	}
	n, ok := parseSize(strings.TrimSpace(fixed), unit)
	if !ok || n == 0 {
		q.noteCommandLost(s, "An expression cannot be asked for, only a size, as 4GB.")
		return
	}
	q.job.setText(name, sizeText(n))
}

// setPlacement sets where and when the job runs.
func (q *condorJob) setPlacement() {
	j := q.job
	q.carryOver(func(s submitSetting) { q.passExpression("requirements", s) }, "requirements")
	q.carryOver(func(s submitSetting) { q.passExpression("rank", s) }, "rank", "preferences")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok {
			j.setInt("priority", max(roost.MinPriority, min(roost.MaxPriority, n)))
		}
	}, "priority", "prio")
	q.carryOver(func(s submitSetting) {
		j.setText("group", strings.Trim(strings.TrimSpace(s.value), `"`))
	}, "accounting_group", "+accountinggroup", "+acctgroup")
	q.carryOver(func(s submitSetting) {
		if parseBool(s.value) {
			j.setText("band", "free")
		}
	}, "nice_user")
	q.carryOver(func(s submitSetting) {
		j.setSource("limits", textListSource(splitCommas(strings.Trim(s.value, `"`))))
	}, "concurrency_limits")
	q.carryOver(func(s submitSetting) {
		if parseBool(s.value) {
			j.setSource("hold", "true")
		}
	}, "hold")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok && n > 0 && q.isSeveral && j.gang < 2 {
			j.setInt("max_running", n)
			q.noteDifferenceAt(s, "So many tasks run at once; how many wait makes no difference here.")
		}
	}, "max_materialize")
}

var adWord = lazyregexp.New(`"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_.]*[ \t]*\(?`)

// machineAttributes are the machine attributes that Roost and HTCondor both have.
var machineAttributes = strings.Fields("arch opsys memory disk cpus gpus machine name loadavg state activity " +
	"totalcpus totalmemory totaldisk totalgpus filesystemdomain keyboardidle consoleidle clockmin clockday gpumodels " +
	"gpumemorymax hascheckpoint " +
	"true false undefined error is isnt and or not")

// passExpression passes a ClassAd expression through.
func (q *condorJob) passExpression(name string, s submitSetting) {
	t := q.expandMacros(s.value)
	q.job.setSource(name, t.hclSource())
	var strange []string
	for _, w := range adWord().FindAllString(s.value, -1) {
		word := strings.ToLower(strings.TrimSpace(w))
		if word[0] == '"' || strings.HasSuffix(word, "(") || strings.HasPrefix(word, "my.") ||
			strings.HasPrefix(word, "request") {
			continue
		}
		word = strings.TrimPrefix(word, "target.")
		if !slices.Contains(machineAttributes, word) && !slices.Contains(strange, strings.TrimSpace(w)) &&
			q.set[word].name == "" && q.itemVariables[word] == "" {
			strange = append(strange, strings.TrimSpace(w))
		}
	}
	if len(strange) > 0 {
		q.noteDifferenceAt(s, "Machines do not have "+strings.Join(strange, ", ")+
			" by themselves here: their administrators add it in the node file, see roost-node(5), or the expression "+
			"has to ask for something else.")
	}
}

// setPolicies sets what happens while the job runs and at its end.
func (q *condorJob) setPolicies() {
	j := q.job
	whole := func(to string, least int) func(s submitSetting) {
		return func(s submitSetting) {
			if n, ok := q.parseNumber(s); ok && n >= least {
				j.setInt(to, n)
			}
		}
	}
	seconds := func(to string) func(s submitSetting) {
		return func(s submitSetting) {
			if n, ok := q.parseNumber(s); ok && n > 0 {
				j.setText(to, durationText(time.Duration(min(n, 1<<29))*time.Second))
			}
		}
	}
	q.setMail()
	q.carryOver(whole("retries", 0), "max_retries")
	q.carryOver(seconds("lease"), "job_lease_duration")
	q.carryOver(seconds("notice"), "job_max_vacate_time", "kill_sig_timeout")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok {
			j.checkpoint = []blockEntry{{"method", `"self"`}, {"exit_code", strconv.Itoa(n)}}
			if f, ok := q.commandValue("transfer_checkpoint_files"); ok {
				j.checkpoint = append(j.checkpoint, blockEntry{"files", textListSource(splitCommas(f.value))})
			}
		}
	}, "checkpoint_exit_code")
}

// setMail sets which events are mailed, and the recipients.
func (q *condorJob) setMail() {
	letters, to := "", []string(nil)
	q.carryOver(func(s submitSetting) {
		l, ok := map[string]string{"never": "", "error": "a", "complete": "ae",
			"always": "abe"}[strings.ToLower(strings.TrimSpace(s.value))]
		if !ok {
			q.noteCommandLost(s, "It is Always, Complete, Error or Never.")
		}
		letters = l
	}, "notification")
	q.carryOver(func(s submitSetting) { to = splitCommas(s.value) }, "notify_user")
	if letters != "" { // without notification HTCondor sends no mail
		q.job.setMail(letters, to)
	}
}

// setLabels makes labels of custom attributes.
func (q *condorJob) setLabels() {
	for _, key := range q.names {
		s := q.set[key]
		if !s.isAttribute || q.usedAsMacro[key] {
			continue
		}
		q.current = s
		t := q.expandMacros(s.value)
		if v, fixed := t.fixedText(); fixed && identifier().MatchString(s.name) {
			q.job.addToMap("labels", s.name, quotedText(strings.Trim(strings.TrimSpace(v), `"`)))
			q.noteDifferenceAt(s, "It becomes a label, a text for people and scripts: nothing is decided by it.")
			continue
		}
		q.noteCommandLost(s, fmt.Sprintf("%s cannot be a label, which is a text that all tasks share.",
			shownLine(s.name)))
	}
}
