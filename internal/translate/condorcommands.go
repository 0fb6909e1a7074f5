package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// take carries a command over, if it is set.
func (q *queued) take(do func(s setting), names ...string) {
	if s, ok := q.value(names...); ok {
		q.at = s
		q.carried++
		do(s)
	}
}

// program says what is run.
func (q *queued) program() {
	j := q.j
	q.take(func(s setting) { j.set("executable", q.expand(strings.Trim(s.value, `"`)).source()) }, "executable")
	if j.settings["executable"] == "" {
		j.set("executable", `"/bin/true"`)
		q.lost(q.line, q.source, "It names no executable; /bin/true stands for it.")
	}
	q.take(func(s setting) {
		if list := q.words(s.value); len(list) > 0 {
			j.set("arguments", list2source(list))
		}
	}, "arguments", "args")
	q.take(func(s setting) { j.set("directory", q.expand(s.value).source()) }, "initialdir", "initial_dir")
	q.take(func(s setting) {
		switch v := strings.TrimSpace(s.value); {
		case yes(v):
			j.set("getenv", "true")
		case strings.EqualFold(v, "false") || strings.ContainsAny(v, "*!"):
			if strings.ContainsAny(v, "*!") {
				q.refuse(s, "Patterns are not known here. Write the names: getenv = [\"PATH\"].")
			}
		default:
			j.set("getenv", texts(commas(v)))
		}
	}, "getenv", "get_env")
	q.take(q.variables, "environment", "env")
	q.take(func(s setting) {
		switch v := strings.ToLower(strings.TrimSpace(s.value)); v {
		case "vanilla", "5":
		case "docker", "container":
			q.refuse(s, "Tasks run on the machine itself, in namespaces of their own, not in images. A runtime such as apptainer can be the executable.")
		case "parallel", "mpi":
			q.machines(s)
		default:
			q.refuse(s, "There is one kind of job here: a program, which runs on an execute node.")
		}
	}, "universe")
}

func list2source(l []text) string { return list(sourcesOf(l)) }

// machines makes a parallel job a gang.
func (q *queued) machines(s setting) {
	m, ok := q.value("machine_count", "node_count")
	if !ok || q.several {
		q.refuse(s, "Tasks that start together are written with count and gang.")
		return
	}
	if n, ok := q.number(m); ok && n > 1 && n <= 2048 {
		q.j.setTasks(nil, n)
		q.several = true
		q.remarkOn(s, "$ROOST_GANG_RANK, $ROOST_GANG_SIZE and $ROOST_GANG_NODES say who is who.")
	}
}

func (q *queued) variables(s setting) {
	value := strings.TrimSpace(s.value)
	var list []text
	if strings.HasPrefix(value, `"`) {
		list = q.words(value)
	} else {
		for _, part := range strings.Split(q.flat(value, 0), ";") {
			if strings.TrimSpace(part) != "" {
				list = append(list, q.assemble(strings.TrimLeft(part, " \t")))
			}
		}
	}
	for _, t := range list {
		name, rest, ok := strings.Cut(t[0].fixed, "=")
		if !ok || t[0].expr != "" || !identifier.MatchString(name) {
			q.refuse(s, "One of these is no NAME=value.")
			continue
		}
		t[0].fixed = rest
		q.j.add("environment", name, t.source())
	}
}

// files says what is read and written.
func (q *queued) files() {
	j := q.j
	q.take(func(s setting) { j.set("stdin", q.expand(s.value).source()) }, "input", "stdin")
	q.take(func(s setting) { q.stream("stdout", s) }, "output", "stdout")
	q.take(func(s setting) { q.stream("stderr", s) }, "error", "stderr")
	q.take(func(s setting) {
		q.remarkOn(s, "There is no log file: roost show ID tells what has happened, and roost wait ID waits.")
	}, "log")
	q.take(func(s setting) {
		mode, ok := map[string]string{"yes": "always", "no": "never", "if_needed": "auto"}[strings.ToLower(strings.TrimSpace(s.value))]
		if !ok {
			q.refuse(s, "It is YES, NO or IF_NEEDED.")
			return
		}
		j.setText("transfer", mode)
	}, "should_transfer_files")
	q.take(func(s setting) {
		if !strings.EqualFold(strings.TrimSpace(s.value), "ON_EXIT") {
			q.remarkOn(s, "Output comes back when a task has ended. What it needs to go on elsewhere is a matter of a checkpoint block: method = \"self\".")
		}
	}, "when_to_transfer_output")
	q.take(func(s setting) {
		var list []string
		for _, f := range strings.Split(q.flat(s.value, 0), ",") {
			f = strings.Trim(strings.TrimSpace(f), `"`)
			switch {
			case f == "":
			case strings.Contains(f, "://"):
				q.refuse(s, "URLs are not fetched. Let the program do it.")
			default:
				if len(f) > 1 && strings.HasSuffix(f, "/") {
					q.remarkOn(s, "A directory is brought as it is, with its name; with a / at the end HTCondor brings what is in it.")
					f = strings.TrimRight(f, "/")
				}
				list = append(list, q.assemble(f).source())
			}
		}
		if len(list) > 0 {
			j.set("inputs", "["+strings.Join(list, ", ")+"]")
		}
	}, "transfer_input_files")
	q.take(func(s setting) {
		var list []string
		for _, f := range strings.Split(q.flat(s.value, 0), ",") {
			if f = strings.TrimSpace(f); f != "" && f != `""` {
				list = append(list, q.assemble(f).source())
			}
		}
		if len(list) > 0 {
			j.set("outputs", "["+strings.Join(list, ", ")+"]")
		}
	}, "transfer_output_files")
}

// stream sets the file of a standard stream; tasks that are several get files of their own.
func (q *queued) stream(name string, s setting) {
	t := q.expand(strings.Trim(s.value, `"`))
	fixed, same := t.fixed()
	if same && fixed == "" || len(t) == 0 {
		return
	}
	if q.several && t.alike() && fixed != "/dev/null" {
		t = append(t.add("."), piece{expr: "task.index"})
		q.remarkOn(s, "Each task needs a file of its own: its number was added.")
	}
	q.j.set(name, t.source())
}

// amounts says what is asked for.
func (q *queued) amounts() {
	q.take(func(s setting) { q.amount("cpus", s) }, "request_cpus", "requestcpus")
	q.take(func(s setting) { q.amount("gpus", s) }, "request_gpus", "requestgpus")
	q.take(func(s setting) { q.size("memory", s, roost.MiB, "MiB") }, "request_memory", "requestmemory")
	q.take(func(s setting) { q.size("disk", s, roost.KiB, "KiB") }, "request_disk", "requestdisk")
	q.take(func(s setting) {
		if n, ok := q.number(s); ok && n > 0 {
			q.j.setText("walltime", length(time.Duration(min(n, 1<<29))*time.Second))
		}
	}, "allowed_execute_duration", "+maxruntime", "+maxwalltimemins")
}

func (q *queued) amount(name string, s setting) {
	t := q.expand(s.value)
	if fixed, ok := t.fixed(); ok {
		if n, err := strconv.ParseUint(strings.TrimSpace(fixed), 10, 16); err == nil {
			if n > 0 || name == "cpus" {
				q.j.setInt(name, int(n))
			}
			return
		}
		q.refuse(s, "An expression over the machine cannot be asked for. Write a number.")
		return
	}
	q.j.set(name, "tonumber("+t.source()+")")
}

func (q *queued) size(name string, s setting, unit roost.Bytes, word string) {
	t := q.expand(s.value)
	fixed, ok := t.fixed()
	if !ok {
		if last := t[len(t)-1]; last.expr != "" {
			t = t.add(word)
			q.remarkOn(s, "The values are taken to be numbers in "+word+".")
		}
		q.j.set(name, t.source())
		return
	}
	n, ok := sizeIn(strings.TrimSpace(fixed), unit)
	if !ok || n == 0 {
		q.refuse(s, "An expression cannot be asked for, only a size, as 4GB.")
		return
	}
	q.j.setText(name, size(n))
}

// placement says where and when it runs.
func (q *queued) placement() {
	j := q.j
	q.take(func(s setting) { q.expression("requirements", s) }, "requirements")
	q.take(func(s setting) { q.expression("rank", s) }, "rank", "preferences")
	q.take(func(s setting) {
		if n, ok := q.number(s); ok {
			j.setInt("priority", max(roost.MinPriority, min(roost.MaxPriority, n)))
		}
	}, "priority", "prio")
	q.take(func(s setting) { j.setText("group", strings.Trim(strings.TrimSpace(s.value), `"`)) }, "accounting_group", "+accountinggroup", "+acctgroup")
	q.take(func(s setting) {
		if yes(s.value) {
			j.setText("band", "free")
		}
	}, "nice_user")
	q.take(func(s setting) { j.set("limits", texts(commas(strings.Trim(s.value, `"`)))) }, "concurrency_limits")
	q.take(func(s setting) {
		if yes(s.value) {
			j.set("hold", "true")
		}
	}, "hold")
	q.take(func(s setting) {
		if n, ok := q.number(s); ok && n > 0 && q.several && j.gang < 2 {
			j.setInt("max_running", n)
			q.remarkOn(s, "So many tasks run at once; how many wait makes no difference here.")
		}
	}, "max_materialize")
}

var adWord = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_.]*[ \t]*\(?`)

// machineAttributes are those that machines have here as they have there.
var machineAttributes = strings.Fields("arch opsys memory disk cpus gpus machine name loadavg state activity totalcpus totalmemory totaldisk totalgpus filesystemdomain keyboardidle consoleidle clockmin clockday gpumodels gpumemorymax hascheckpoint " +
	"true false undefined error is isnt and or not")

// expression passes a ClassAd expression through.
func (q *queued) expression(name string, s setting) {
	t := q.expand(s.value)
	q.j.set(name, t.source())
	var strange []string
	for _, w := range adWord.FindAllString(s.value, -1) {
		word := strings.ToLower(strings.TrimSpace(w))
		if word[0] == '"' || strings.HasSuffix(word, "(") || strings.HasPrefix(word, "my.") || strings.HasPrefix(word, "request") {
			continue
		}
		word = strings.TrimPrefix(word, "target.")
		if !slices.Contains(machineAttributes, word) && !slices.Contains(strange, strings.TrimSpace(w)) && q.set[word].name == "" && q.vars[word] == "" {
			strange = append(strange, strings.TrimSpace(w))
		}
	}
	if len(strange) > 0 {
		q.remarkOn(s, "Machines do not have "+strings.Join(strange, ", ")+" by themselves here: their administrators add it in the node file, see roost-node(5), or the expression has to ask for something else.")
	}
}

// policy says what happens in the end and in between.
func (q *queued) policy() {
	j := q.j
	whole := func(to string, least int) func(s setting) {
		return func(s setting) {
			if n, ok := q.number(s); ok && n >= least {
				j.setInt(to, n)
			}
		}
	}
	seconds := func(to string) func(s setting) {
		return func(s setting) {
			if n, ok := q.number(s); ok && n > 0 {
				j.setText(to, length(time.Duration(min(n, 1<<29))*time.Second))
			}
		}
	}
	q.mail()
	q.take(whole("retries", 0), "max_retries")
	q.take(seconds("lease"), "job_lease_duration")
	q.take(seconds("notice"), "job_max_vacate_time", "kill_sig_timeout")
	q.take(func(s setting) {
		if n, ok := q.number(s); ok {
			j.checkpoint = []entry{{"method", `"self"`}, {"exit_code", strconv.Itoa(n)}}
			if f, ok := q.value("transfer_checkpoint_files"); ok {
				j.checkpoint = append(j.checkpoint, entry{"files", texts(commas(f.value))})
			}
		}
	}, "checkpoint_exit_code")
}

// mail says what is told of the job, and whom.
func (q *queued) mail() {
	letters, to := "", []string(nil)
	q.take(func(s setting) {
		l, ok := map[string]string{"never": "", "error": "a", "complete": "ae", "always": "abe"}[strings.ToLower(strings.TrimSpace(s.value))]
		if !ok {
			q.refuse(s, "It is Always, Complete, Error or Never.")
		}
		letters = l
	}, "notification")
	q.take(func(s setting) { to = commas(s.value) }, "notify_user")
	if letters != "" { // without it HTCondor sends none
		q.j.mail(letters, to)
	}
}

// attributes makes labels of attributes of one's own.
func (q *queued) attributes() {
	for _, key := range q.names {
		s := q.set[key]
		if !s.attr || q.used[key] {
			continue
		}
		q.at = s
		t := q.expand(s.value)
		if v, fixed := t.fixed(); fixed && identifier.MatchString(s.name) {
			q.j.add("labels", s.name, quoted(strings.Trim(strings.TrimSpace(v), `"`)))
			q.remarkOn(s, "It becomes a label, a text for people and scripts: nothing is decided by it.")
			continue
		}
		q.refuse(s, fmt.Sprintf("%s cannot be a label, which is a text that all tasks share.", shown(s.name)))
	}
}
