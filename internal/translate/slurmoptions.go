package translate

import (
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// slurmOption is one option of sbatch.
type slurmOption struct {
	name  string
	short byte
	value valued
	why   string                                  // it is never carried over, and this says why
	do    func(x *slurmScript, value string) bool // whether it was carried over; nil: nothing has to be done for it
}

type valued int

const (
	none   valued = iota
	needed        // a value follows
	maybe         // a value can follow an =
)

const (
	noQOS      = "Roost has no QOS. A queue gives its jobs a band, a priority and bounds (roost queue), and quotas limit who may have how much (roost quota)."
	noSteps    = "Roost places and binds tasks by itself: each gets cores, memory and GPUs of its own, near each other."
	noShell    = "Such a thing is said on the command line here: roost submit --help."
	noControl  = "There is nothing like it in Roost."
	noWaste    = "A task has what it asks for to itself, whoever else is on the machine; exclusive = true has it there alone."
	noClusters = "A job file is submitted to one pool."
)

// slurmOptions are the options of sbatch. Those without an action mean here what happens anyway.
func slurmOptions() []slurmOption {
	set := func(setting string) func(*slurmScript, string) bool {
		return func(x *slurmScript, v string) bool { x.j.setText(setting, v); return true }
	}
	truth := func(setting, value string) func(*slurmScript, string) bool {
		return func(x *slurmScript, _ string) bool { x.j.set(setting, value); return true }
	}
	number := func(to func(x *slurmScript) *int) func(*slurmScript, string) bool {
		return func(x *slurmScript, v string) bool {
			n, ranged, ok := count(v)
			if !ok {
				return x.refuse("It wants a number of at least 1.")
			}
			if ranged {
				x.remark("Of a range the smaller number is taken.")
			}
			*to(x) = n
			return true
		}
	}
	amount := func(to func(x *slurmScript) *roost.Bytes) func(*slurmScript, string) bool {
		return func(x *slurmScript, v string) bool {
			n, ok := slurmSize(v)
			if !ok {
				return x.refuse("It wants a size, as 4G; a number alone is in MiB.")
			}
			if n == 0 {
				return x.refuse("0 asks Slurm for all memory of the machine. Say here how much it is: memory = \"64GiB\".")
			}
			*to(x) = n
			return true
		}
	}
	return append([]slurmOption{
		{"job-name", 'J', needed, "", func(x *slurmScript, v string) bool { x.name = v; return v != "" }},
		{"partition", 'p', needed, "", (*slurmScript).partition},
		{"account", 'A', needed, "", func(x *slurmScript, v string) bool { x.request.account = v; x.j.setText("group", v); return true }},
		{"time", 't', needed, "", (*slurmScript).time},
		{"nodes", 'N', needed, "", number(func(x *slurmScript) *int { return &x.nodes })},
		{"ntasks", 'n', needed, "", number(func(x *slurmScript) *int { return &x.tasks })},
		{"ntasks-per-node", 0, needed, "", number(func(x *slurmScript) *int { return &x.perNode })},
		{"tasks-per-node", 0, needed, "", number(func(x *slurmScript) *int { return &x.perNode })},
		{"cpus-per-task", 'c', needed, "", number(func(x *slurmScript) *int { return &x.cpus })},
		{"mincpus", 0, needed, "", func(x *slurmScript, v string) bool {
			if x.cpus > 0 {
				return true
			}
			return number(func(x *slurmScript) *int { return &x.cpus })(x, v)
		}},
		{"cpus-per-gpu", 0, needed, "", number(func(x *slurmScript) *int { return &x.cpusPerGPU })},
		{"mem", 0, needed, "", amount(func(x *slurmScript) *roost.Bytes { return &x.memory })},
		{"mem-per-cpu", 0, needed, "", amount(func(x *slurmScript) *roost.Bytes { return &x.memoryPerCPU })},
		{"mem-per-gpu", 0, needed, "", amount(func(x *slurmScript) *roost.Bytes { return &x.memoryPerGPU })},
		{"tmp", 0, needed, "", func(x *slurmScript, v string) bool {
			n, ok := slurmSize(v)
			if ok && n > 0 {
				x.j.setText("disk", size(n))
			}
			return ok
		}},
		{"gres", 0, needed, "", (*slurmScript).gres},
		{"gpus", 'G', needed, "", func(x *slurmScript, v string) bool { return x.cards(v, &x.gpus) }},
		{"gpus-per-node", 0, needed, "", func(x *slurmScript, v string) bool { return x.cards(v, &x.gpusPerNode) }},
		{"gpus-per-task", 0, needed, "", func(x *slurmScript, v string) bool { return x.cards(v, &x.gpusPerTask) }},
		{"array", 'a', needed, "", func(x *slurmScript, v string) bool {
			a, ok := parseArray(v)
			if !ok {
				return x.refuse("These are no indexes of an array; they are written as 0-9, 1-99:2 or 1,3,7-9, and %N behind them says how many run at once.")
			}
			x.array = &a
			return true
		}},
		{"dependency", 'd', needed, "", (*slurmScript).dependency},
		{"output", 'o', needed, "", func(x *slurmScript, v string) bool { x.output = v; return true }},
		{"error", 'e', needed, "", func(x *slurmScript, v string) bool { x.errors = v; return true }},
		{"input", 'i', needed, "", func(x *slurmScript, v string) bool { x.stream("stdin", v); return true }},
		{"export", 0, needed, "", func(x *slurmScript, v string) bool { x.export = v; return true }},
		{"chdir", 'D', needed, "", set("directory")},
		{"workdir", 0, needed, "", set("directory")},
		{"constraint", 'C', needed, "", (*slurmScript).constraint},
		{"prefer", 0, needed, "", func(x *slurmScript, v string) bool {
			c, why := features(v)
			if why != "" {
				return x.refuse(why)
			}
			x.j.set("prefer", list([]string{c}))
			return true
		}},
		{"nodelist", 'w', needed, "", func(x *slurmScript, v string) bool { return x.hosts(v, "==") }},
		{"exclude", 'x', needed, "", func(x *slurmScript, v string) bool { return x.hosts(v, "!=") }},
		{"requeue", 0, none, "", truth("rerunnable", "true")},
		{"no-requeue", 0, none, "", truth("rerunnable", "false")},
		{"begin", 'b', needed, "", func(x *slurmScript, v string) bool {
			at, ok := slurmBegin(v)
			if !ok {
				return x.refuse("Write such a time as start_after = \"18:00\", \"2026-12-24 18:00\" or \"2h\" (from now).")
			}
			if at != "" {
				x.j.setText("start_after", at)
			}
			return true
		}},
		{"hold", 'H', none, "", truth("hold", "true")},
		{"reservation", 0, needed, "", set("reservation")},
		{"licenses", 'L', needed, "", (*slurmScript).licences},
		{"signal", 0, needed, "", (*slurmScript).signal},
		{"nice", 0, maybe, "", (*slurmScript).nice},
		{"comment", 0, needed, "", func(x *slurmScript, v string) bool { x.j.add("labels", "comment", quoted(v)); return true }},
		{"wckey", 0, needed, "", func(x *slurmScript, v string) bool { x.j.add("labels", "wckey", quoted(v)); return true }},
		{"no-kill", 'k', maybe, "When one machine of a gang is lost, the others are ended, too, and all start together again.", nil},
		{"mail-type", 0, needed, "", (*slurmScript).mailType},
		{"mail-user", 0, needed, "", func(x *slurmScript, v string) bool { x.mailTo = commas(v); return true }},
		{"qos", 'q', needed, noQOS, nil},
		{"exclusive", 0, maybe, "", truth("exclusive", "true")},
	}, slurmOthers()...)
}

// slurmOthers are the options that are never carried over, and those that need not be.
func slurmOthers() []slurmOption {
	var all []slurmOption
	for _, o := range []struct {
		why   string
		value valued
		names string
	}{
		{noSteps, needed, "threads-per-core cores-per-socket sockets-per-node ntasks-per-core ntasks-per-socket ntasks-per-gpu hint cpu-bind mem-bind gpu-bind distribution core-spec thread-spec extra-node-info gres-flags switches tres-bind tres-per-task"},
		{noSteps, none, "contiguous spread-job use-min-nodes overcommit"},
		{noWaste, maybe, "oversubscribe share"},
		{noControl, needed, "cpu-freq gpu-freq network power profile acctg-freq bb bbf cluster-constraint deadline delay-boot mcs-label propagate time-min priority gid uid container container-id oom-kill-step segment stepmgr"},
		{noControl, maybe, "get-user-env propagate resv-ports kill-on-invalid-dep reboot"},
		{noClusters, needed, "clusters cluster"},
		{"Output is written anew by each attempt; one that goes on from a checkpoint continues it.", needed, "open-mode"},
		{noShell, needed, "wait-all-nodes batch export-file wrap"},
		{noShell, none, "wait test-only parsable x11"},
		{"", none, "quiet verbose ignore-pbs"},
	} {
		for _, name := range strings.Fields(o.names) {
			all = append(all, slurmOption{name: name, value: o.value, why: o.why, short: slurmShort[name]})
		}
	}
	return all
}

var slurmShort = map[string]byte{"distribution": 'm', "core-spec": 'S', "extra-node-info": 'B', "overcommit": 'O', "oversubscribe": 's', "clusters": 'M', "wait": 'W', "quiet": 'Q', "verbose": 'v'}

// mailType reads BEGIN,END,FAIL,ALL,ARRAY_TASKS and the like.
func (x *slurmScript) mailType(v string) bool {
	letters := map[string]string{"NONE": "", "BEGIN": "b", "END": "e", "FAIL": "a", "REQUEUE": "", "ALL": "abe", "TIME_LIMIT": "a", "ARRAY_TASKS": "j", "INVALID_DEPEND": "a"}
	x.mail = ""
	for _, kind := range commas(strings.ToUpper(v)) {
		l, known := letters[kind]
		if !known || kind == "REQUEUE" {
			x.remark("Mail is sent when a job begins, ends or is aborted: there is none of " + shown(kind) + ".")
		}
		x.mail += l
	}
	return true
}

func (x *slurmScript) partition(v string) bool {
	first, _, several := strings.Cut(v, ",")
	if several {
		x.remark("A job goes to one queue; the first of these is taken. Without a queue it may run anywhere.")
	}
	x.request.queue = first
	x.j.setText("queue", first)
	x.remark("A partition is a queue here. The administrator makes one with roost queue set; roost queue lists them.")
	return true
}

func (x *slurmScript) time(v string) bool {
	d, none, ok := slurmTime(v)
	switch {
	case !ok:
		return x.refuse("This is no length of time: they are written as minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or days-hours:minutes:seconds.")
	case !none:
		x.j.setText("walltime", length(d))
	}
	return true
}

// cards reads "2", "a100:2" and "a100:1,v100:1".
func (x *slurmScript) cards(v string, to *int) bool {
	total := 0
	for _, part := range strings.Split(v, ",") {
		kind, n, typed := strings.Cut(part, ":")
		if !typed {
			if _, err := strconv.Atoi(kind); err == nil {
				kind, n = "", kind
			} else {
				n = "1"
			}
		}
		number, _, ok := count(n)
		if !ok {
			return x.refuse("It wants a number of GPUs, as 2 or a100:2.")
		}
		if kind != "" {
			x.card(kind)
		}
		total += number
	}
	*to = total
	return true
}

// card asks for a kind of GPU: a word of the card's name.
func (x *slurmScript) card(kind string) {
	x.require = append(x.require, condition{ad: `regexp(` + adText(escapeRegexp(kind)) + `, join(",", TARGET.GpuModels), "i")`})
	x.remark("The kind of the GPU is looked for in the names of the machines' cards, as roost nodes --gpus shows them.")
}

func (x *slurmScript) gres(v string) bool {
	carried := false
	for _, part := range strings.Split(v, ",") {
		name, rest, _ := strings.Cut(part, ":")
		if (name == "gpu" || name == "gpus") && rest == "" {
			rest = "1"
		}
		switch {
		case name == "gpu" || name == "gpus":
			carried = x.cards(rest, &x.gpusPerNode) || carried
		case name == "none" || name == "":
		case name == "tmpdisk" || name == "tmp" || name == "localtmp":
			if n, ok := slurmSize(rest); ok && n > 0 {
				x.j.setText("disk", size(n))
				carried = true
				continue
			}
			fallthrough
		default:
			x.refuse("Machines have cpus, memory, disk and GPUs. What the pool has a number of is asked for with limits = [\"" + shown(name) + "\"], and what a machine has or has not with requirements.")
		}
	}
	return carried
}

func (x *slurmScript) dependency(v string) bool {
	return x.refuse(dependsOn(v, ",?"))
}

func (x *slurmScript) licences(v string) bool {
	var names []string
	for _, part := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == '|' }) {
		name, n, counted := strings.Cut(part, ":")
		name, _, _ = strings.Cut(name, "@")
		if counted {
			name += ":" + n
		}
		names = append(names, name)
	}
	if strings.Contains(v, "|") {
		x.remark("All of them are asked for, not one.")
	}
	if len(names) == 0 {
		return x.refuse("It names no licence.")
	}
	x.j.set("limits", texts(names))
	return true
}

// signal reads "[R:][B:]signal[@seconds]": here it is always SIGTERM, and the seconds are between it and SIGKILL.
func (x *slurmScript) signal(v string) bool {
	name, secs, timed := strings.Cut(v[strings.LastIndexByte(v, ':')+1:], "@")
	n := uint64(60)
	if timed {
		var err error
		if n, err = strconv.ParseUint(secs, 10, 16); err != nil {
			return x.refuse("It wants a signal and after @ how many seconds before the end it is sent.")
		}
	}
	x.j.setText("notice", length(time.Duration(n)*time.Second))
	if name = strings.TrimPrefix(strings.ToUpper(name), "SIG"); name != "TERM" && name != "15" {
		x.remark("A task gets SIGTERM, not SIG" + shown(name) + ", when its walltime is over or it has to leave its machine, and SIGKILL when the notice is over: trap TERM. A program that saves its own state needs a checkpoint block with method = \"self\" and signal.")
	} else {
		x.remark("The signal comes when the walltime is over or the task has to leave its machine, and SIGKILL after the notice.")
	}
	return true
}

func (x *slurmScript) nice(v string) bool {
	n := 100
	if v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			return x.refuse("It wants a number.")
		}
	}
	x.j.setInt("priority", max(roost.MinPriority, min(roost.MaxPriority, -n)))
	x.remark("priority orders your own jobs, from -1024 to 1023; how you stand to others is a matter of shares.")
	return true
}
