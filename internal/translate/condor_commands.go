package translate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// carryOver carries a command over, if it is set.
func (q *condorJob) carryOver(do func(s submitSetting), names ...string) {
	if s, ok := q.commandValue(names...); ok {
		q.current = s
		q.job.origin = s.note(Mistake, "")
		q.carried++
		do(s)
		q.job.origin = Note{}
	}
}

// fixedValue returns the value of a command that is the same for all jobs.
func (q *condorJob) fixedValue(s submitSetting) (string, bool) {
	t := q.expandMacros(s.value)
	text, ok := t.fixedText()
	if !ok && !q.needNodes(t) {
		q.noteCommandMistake(s, s.name+" is the same for all jobs of a queue command here. Write a queue command for "+
			"each value.")
	}
	return strings.Trim(strings.TrimSpace(text), `"`), ok
}

// setProgram sets the program.
func (q *condorJob) setProgram() {
	j := q.job
	q.setUniverse()
	q.carryOver(q.setExecutable, "executable")
	if j.settings["executable"] == "" && j.settings["image"] != "" {
		j.setSource("image_entrypoint", "true")
	} else if j.settings["executable"] == "" {
		j.setSource("executable", `"/bin/true"`)
		q.noteMistake(q.line, q.source, "It names no executable; /bin/true is used in its place.")
	}
	q.carryOver(func(s submitSetting) {
		if list := q.splitWords(s.value); len(list) > 0 {
			j.setSource("arguments", list2source(list))
		}
	}, "arguments", "args", "arguments2")
	q.carryOver(func(s submitSetting) {
		j.setSource("directory", q.expandMacros(s.value).hclSource())
	}, "initialdir", "initial_dir", "job_iwd")
	q.carryOver(q.setGetenv, "getenv", "get_env")
	q.carryOver(q.setEnvironment, "environment", "env", "environment2")
}

// setUniverse sets what kind of job it is, and the container image.
func (q *condorJob) setUniverse() {
	q.carryOver(func(s submitSetting) {
		text, ok := q.fixedValue(s)
		if !ok {
			return
		}
		if key := strings.ToLower(s.name); key == "docker_image" && !strings.Contains(text, "://") {
			text = "docker://" + text
		}
		q.job.setText("image", text)
	}, "container_image", "docker_image", "singularity_image")
	q.carryOver(func(s submitSetting) {
		if text, ok := q.fixedValue(s); ok && q.job.settings["image"] != "" {
			q.job.setText("image_workdir", text)
		}
	}, "container_target_dir")
	q.carryOver(func(s submitSetting) {
		v, _ := q.fixedValue(s)
		switch strings.ToLower(v) {
		case "vanilla", "5":
		case "docker", "container":
			if q.job.settings["image"] == "" {
				q.noteCommandMistake(s, "It names no image: write container_image = docker://python:3.12.")
			}
		case "parallel", "mpi", "11":
			q.setGang(s)
		case "scheduler", "local", "7", "12":
			q.noteCommandLost(s, "Jobs do not run at the submit node beside the queue: this runs on an execute node.")
		default:
			q.noteCommandMistake(s, "There is one kind of job here: a program, which runs on an execute node.")
		}
	}, "universe")
}

// setExecutable sets the program. A relative name refers to the directory of the submit
// description, also where the job has a directory of its own.
func (q *condorJob) setExecutable(s submitSetting) {
	t := q.expandMacros(strings.Trim(s.value, `"`))
	if name, fixed := t.fixedText(); fixed && q.options.Dir != "" && q.job.settings["image"] == "" {
		_, moved := q.commandValue("initialdir", "initial_dir", "job_iwd")
		if !strings.HasPrefix(name, "/") && moved {
			t = templateText{{fixed: q.absolutePath(name)}}
		}
	}
	q.job.setSource("executable", t.hclSource())
}

// setGetenv sets which variables of the submitter the job gets.
func (q *condorJob) setGetenv(s submitSetting) {
	v, _ := q.fixedValue(s)
	switch {
	case parseBool(v):
		q.job.setSource("getenv", "true")
		return
	case strings.EqualFold(v, "false") || v == "":
		return
	}
	names := splitCommas(v)
	if strings.ContainsAny(v, "*!") {
		if q.options.Environ == nil {
			q.noteCommandLost(s, "Patterns are not known here. Write the names: getenv = [\"PATH\"].")
			return
		}
		names = matchVariables(q.options.Environ, names)
	}
	if len(names) > 0 {
		q.job.setSource("getenv", textListSource(names))
	}
}

// matchVariables returns the variables of an environment that patterns select, the last
// one that matches deciding. Those that begin with ! exclude.
func matchVariables(environ, patterns []string) (names []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		isSelected := false
		for _, p := range patterns {
			p, excluded := strings.CutPrefix(p, "!")
			if ok, err := path.Match(strings.ToLower(p), strings.ToLower(name)); ok && err == nil {
				isSelected = !excluded
			}
		}
		if isSelected && identifier().MatchString(name) {
			names = append(names, name)
		}
	}
	return names
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
		if !ok && q.needNodes(t) {
			continue
		}
		if !ok || t[0].expr != "" || !identifier().MatchString(name) {
			q.noteCommandMistake(s, "One of these is no NAME=value.")
			continue
		}
		t[0].fixed = rest
		q.job.addToMap("environment", name, t.hclSource())
	}
}

// setPlacement sets where and when the job runs.
func (q *condorJob) setPlacement() {
	j := q.job
	q.carryOver(func(s submitSetting) { q.passExpression("requirements", s) }, "requirements")
	q.carryOver(func(s submitSetting) { q.passExpression("rank", s) }, "rank", "preferences")
	q.carryOver(func(s submitSetting) {
		if n, ok := q.parseNumber(s); ok {
			if n < roost.MinPriority || n > roost.MaxPriority {
				q.noteDifferenceAt(s, fmt.Sprintf("Priorities go from %d to %d.",
					roost.MinPriority, roost.MaxPriority))
			}
			j.setInt("priority", max(roost.MinPriority, min(roost.MaxPriority, n)))
		}
	}, "priority", "prio")
	q.carryOver(func(s submitSetting) {
		if v, ok := q.fixedValue(s); ok {
			j.setText("group", v)
		}
	}, "accounting_group", "+accountinggroup", "+acctgroup")
	q.carryOver(func(s submitSetting) {
		if v, ok := q.fixedValue(s); ok && parseBool(v) {
			j.setText("band", "free")
		}
	}, "nice_user")
	q.carryOver(func(s submitSetting) {
		if v, ok := q.fixedValue(s); ok {
			j.setSource("limits", textListSource(splitCommas(v)))
		}
	}, "concurrency_limits")
	q.carryOver(func(s submitSetting) {
		if v, ok := q.fixedValue(s); ok && parseBool(v) {
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
	"gpumemorymax hascheckpoint kflops mips " +
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
