package translate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// slurmOption is one option of sbatch.
type slurmOption struct {
	name       string
	short      byte
	value      optionWithValue
	lostReason string // why it is never carried over, if that is so
	// reports whether it was carried over; nil: nothing is needed
	apply func(x *slurmScript, value string) bool
}

type optionWithValue int

const (
	noValue       optionWithValue = iota
	valueRequired                 // a value follows
	valueOptional                 // a value may follow an =
)

const (
	noQOS = "Roost has no QOS. A queue gives its jobs a band, a priority and bounds (roost queue), " +
		"and quotas limit who may have how much (roost quota)."
	noSteps = "Roost places and binds tasks by itself: each gets cores, memory and GPUs of its own, " +
		"near each other."
	noShell       = "Such a thing is said on the command line here: roost submit --help."
	noControl     = "There is nothing like it in Roost."
	noWasteRemark = "A task has what it asks for to itself, whoever else is on the machine; exclusive = true has " +
		"it there alone."
	noClusters = "A job file is submitted to one pool."
)

// slurmOptions returns the options of sbatch. One without an action asks for Roost's
// default.
func slurmOptions() []slurmOption {
	return slices.Concat(slurmRequestOptions(), slurmTaskOptions(), slurmPolicyOptions(), unsupportedSlurmOptions())
}

// textSetting returns an action that sets a text.
func textSetting(name string) func(*slurmScript, string) bool {
	return func(x *slurmScript, v string) bool { x.job.setText(name, v); return true }
}

// sourceSetting returns an action that sets a fixed value.
func sourceSetting(name, value string) func(*slurmScript, string) bool {
	return func(x *slurmScript, _ string) bool { x.job.setSource(name, value); return true }
}

// countOption returns an action that reads a number of at least 1.
func countOption(to func(x *slurmScript) *int) func(*slurmScript, string) bool {
	return func(x *slurmScript, v string) bool {
		n, ranged, ok := parseCount(v)
		if !ok {
			return x.noteDirectiveLost("It wants a number of at least 1.")
		}
		if ranged {
			x.noteDirectiveDifference("Of a range the smaller number is taken.")
		}
		*to(x) = n
		return true
	}
}

// sizeOption returns an action that reads a size above 0.
func sizeOption(to func(x *slurmScript) *roost.Bytes) func(*slurmScript, string) bool {
	return func(x *slurmScript, v string) bool {
		n, ok := parseSlurmSize(v)
		if !ok {
			return x.noteDirectiveLost("It wants a size, as 4G; a number alone is in MiB.")
		}
		if n == 0 {
			return x.noteDirectiveLost("0 asks Slurm for all memory of the machine. Say here how much it is: " +
				"memory = \"64GiB\".")
		}
		*to(x) = n
		return true
	}
}

// slurmRequestOptions returns the options that name the job and request resources.
func slurmRequestOptions() []slurmOption {
	return []slurmOption{
		{"job-name", 'J', valueRequired, "", func(x *slurmScript, v string) bool { x.name = v; return v != "" }},
		{"partition", 'p', valueRequired, "", (*slurmScript).setPartition},
		{"account", 'A', valueRequired, "", func(x *slurmScript, v string) bool {
			x.request.account = v
			x.job.setText("group", v)
			return true
		}},
		{"time", 't', valueRequired, "", (*slurmScript).setTimeLimit},
		{"nodes", 'N', valueRequired, "", countOption(func(x *slurmScript) *int { return &x.nodes })},
		{"ntasks", 'n', valueRequired, "", countOption(func(x *slurmScript) *int { return &x.tasks })},
		{"ntasks-per-node", 0, valueRequired, "", countOption(func(x *slurmScript) *int { return &x.perNode })},
		{"tasks-per-node", 0, valueRequired, "", countOption(func(x *slurmScript) *int { return &x.perNode })},
		{"cpus-per-task", 'c', valueRequired, "", countOption(func(x *slurmScript) *int { return &x.cpus })},
		{"mincpus", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			if x.cpus > 0 {
				return true
			}
			return countOption(func(x *slurmScript) *int { return &x.cpus })(x, v)
		}},
		{"cpus-per-gpu", 0, valueRequired, "", countOption(func(x *slurmScript) *int { return &x.cpusPerGPU })},
		{"mem", 0, valueRequired, "", sizeOption(func(x *slurmScript) *roost.Bytes { return &x.memory })},
		{"mem-per-cpu", 0, valueRequired, "", sizeOption(func(x *slurmScript) *roost.Bytes { return &x.memoryPerCPU })},
		{"mem-per-gpu", 0, valueRequired, "", sizeOption(func(x *slurmScript) *roost.Bytes { return &x.memoryPerGPU })},
		{"tmp", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			n, ok := parseSlurmSize(v)
			if ok && n > 0 {
				x.job.setText("disk", sizeText(n))
			}
			return ok
		}},
		{"gres", 0, valueRequired, "", (*slurmScript).setGRES},
		{"gpus", 'G', valueRequired, "", func(x *slurmScript, v string) bool { return x.parseGPUs(v, &x.gpus) }},
		{"gpus-per-node", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			return x.parseGPUs(v, &x.gpusPerNode)
		}},
		{"gpus-per-task", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			return x.parseGPUs(v, &x.gpusPerTask)
		}},
	}
}

// slurmTaskOptions returns the options about the tasks, their files and their machines.
func slurmTaskOptions() []slurmOption {
	return []slurmOption{
		{"array", 'a', valueRequired, "", func(x *slurmScript, v string) bool {
			a, ok := parseArray(v)
			if !ok {
				return x.noteDirectiveLost("These are no indexes of an array; they are written as 0-9, 1-99:2 or " +
					"1,3,7-9, and %N behind them says how many run at once.")
			}
			x.array = &a
			return true
		}},
		{"dependency", 'd', valueRequired, "", (*slurmScript).setDependency},
		{"output", 'o', valueRequired, "", func(x *slurmScript, v string) bool { x.output = v; return true }},
		{"error", 'e', valueRequired, "", func(x *slurmScript, v string) bool { x.errors = v; return true }},
		{"input", 'i', valueRequired, "", func(x *slurmScript, v string) bool { x.setStream("stdin", v); return true }},
		{"export", 0, valueRequired, "", func(x *slurmScript, v string) bool { x.export = v; return true }},
		{"chdir", 'D', valueRequired, "", textSetting("directory")},
		{"workdir", 0, valueRequired, "", textSetting("directory")},
		{"constraint", 'C', valueRequired, "", (*slurmScript).setConstraint},
		{"prefer", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			c, why := parseFeatures(v)
			if why != "" {
				return x.noteDirectiveLost(why)
			}
			x.job.setSource("prefer", listSource([]string{c}))
			return true
		}},
		{"nodelist", 'w', valueRequired, "", func(x *slurmScript, v string) bool { return x.setHosts(v, "==") }},
		{"exclude", 'x', valueRequired, "", func(x *slurmScript, v string) bool { return x.setHosts(v, "!=") }},
	}
}

// slurmPolicyOptions returns the options about when and how the job runs.
func slurmPolicyOptions() []slurmOption {
	return []slurmOption{
		{"requeue", 0, noValue, "", sourceSetting("rerunnable", "true")},
		{"no-requeue", 0, noValue, "", sourceSetting("rerunnable", "false")},
		{"begin", 'b', valueRequired, "", func(x *slurmScript, v string) bool {
			at, ok := parseSlurmBegin(v)
			if !ok {
				return x.noteDirectiveLost("Write such a time as start_after = \"18:00\", \"2026-12-24 18:00\" or " +
					"\"2h\" (from now).")
			}
			if at != "" {
				x.job.setText("start_after", at)
			}
			return true
		}},
		{"hold", 'H', noValue, "", sourceSetting("hold", "true")},
		{"reservation", 0, valueRequired, "", textSetting("reservation")},
		{"licenses", 'L', valueRequired, "", (*slurmScript).setConcurrencyLimits},
		{"signal", 0, valueRequired, "", (*slurmScript).setSignal},
		{"nice", 0, valueOptional, "", (*slurmScript).setNice},
		{"comment", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			x.job.addToMap("labels", "comment", quotedText(v))
			return true
		}},
		{"wckey", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			x.job.addToMap("labels", "wckey", quotedText(v))
			return true
		}},
		{"no-kill", 'k', valueOptional,
			"When one machine of a gang is lost, the others are ended, too, and all start together again.", nil},
		{"mail-type", 0, valueRequired, "", (*slurmScript).setMailType},
		{"mail-user", 0, valueRequired, "", func(x *slurmScript, v string) bool {
			x.mailTo = splitCommas(v)
			return true
		}},
		{"qos", 'q', valueRequired, noQOS, nil},
		{"exclusive", 0, valueOptional, "", sourceSetting("exclusive", "true")},
	}
}

// unsupportedSlurmOptions returns the options that are never carried over, and those that
// need not be.
func unsupportedSlurmOptions() []slurmOption {
	var all []slurmOption
	for _, o := range []struct {
		why   string
		value optionWithValue
		names string
	}{
		{noSteps, valueRequired, "threads-per-core cores-per-socket sockets-per-node ntasks-per-core " +
			"ntasks-per-socket ntasks-per-gpu hint cpu-bind mem-bind gpu-bind distribution core-spec thread-spec " +
			"extra-node-info gres-flags switches tres-bind tres-per-task"},
		{noSteps, noValue, "contiguous spread-job use-min-nodes overcommit"},
		{noWasteRemark, valueOptional, "oversubscribe share"},
		{noControl, valueRequired, "cpu-freq gpu-freq network power profile acctg-freq bb bbf cluster-constraint " +
			"deadline delay-boot mcs-label propagate time-min priority gid uid container container-id oom-kill-step " +
			"segment stepmgr"},
		{noControl, valueOptional, "get-user-env propagate resv-ports kill-on-invalid-dep reboot"},
		{noClusters, valueRequired, "clusters cluster"},
		{"Output is written anew by each attempt; one that goes on from a checkpoint continues it.", valueRequired,
			"open-mode"},
		{noShell, valueRequired, "wait-all-nodes batch export-file wrap"},
		{noShell, noValue, "wait test-only parsable x11"},
		{"", noValue, "quiet verbose ignore-pbs"},
	} {
		for _, name := range strings.Fields(o.names) {
			all = append(all, slurmOption{name: name, value: o.value, lostReason: o.why, short: slurmShort[name]})
		}
	}
	return all
}

var slurmShort = map[string]byte{"distribution": 'm', "core-spec": 'S', "extra-node-info": 'B', "overcommit": 'O',
	"oversubscribe": 's', "clusters": 'M', "wait": 'W', "quiet": 'Q', "verbose": 'v'}

// setMailType reads the value of --mail-type, such as BEGIN,END,FAIL,ALL,ARRAY_TASKS.
func (x *slurmScript) setMailType(v string) bool {
	letters := map[string]string{"NONE": "", "BEGIN": "b", "END": "e", "FAIL": "a", "REQUEUE": "", "ALL": "abe",
		"TIME_LIMIT": "a", "ARRAY_TASKS": "j", "INVALID_DEPEND": "a"}
	x.mail = ""
	for _, kind := range splitCommas(strings.ToUpper(v)) {
		l, known := letters[kind]
		if !known || kind == "REQUEUE" {
			x.noteDirectiveDifference("Mail is sent when a job begins, ends or is aborted: there is none of " +
				shownLine(kind) + ".")
		}
		x.mail += l
	}
	return true
}

func (x *slurmScript) setPartition(v string) bool {
	first, _, several := strings.Cut(v, ",")
	if several {
		x.noteDirectiveDifference("A job goes to one queue; the first of these is taken. Without a queue it may " +
			"run anywhere.")
	}
	x.request.queue = first
	x.job.setText("queue", first)
	x.noteDirectiveDifference("A partition is a queue here. The administrator makes one with roost queue set; roost " +
		"queue lists them.")
	return true
}

func (x *slurmScript) setTimeLimit(v string) bool {
	d, none, ok := parseSlurmTime(v)
	switch {
	case !ok:
		return x.noteDirectiveLost("This is no length of time: they are written as minutes, minutes:seconds, " +
			"hours:minutes:seconds, days-hours, days-hours:minutes or days-hours:minutes:seconds.")
	case !none:
		x.job.setText("walltime", durationText(d))
	}
	return true
}

// parseGPUs parses a number of GPUs such as "2", "a100:2" and "a100:1,v100:1".
func (x *slurmScript) parseGPUs(v string, to *int) bool {
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
		number, _, ok := parseCount(n)
		if !ok {
			return x.noteDirectiveLost("It wants a number of GPUs, as 2 or a100:2.")
		}
		if kind != "" {
			x.requireGPUModel(kind)
		}
		total += number
	}
	*to = total
	return true
}

// requireGPUModel requires a GPU model: a word of the device's name.
func (x *slurmScript) requireGPUModel(kind string) {
	x.require = append(x.require,
		machineCondition{ad: `regexp(` + adString(escapeRegexp(kind)) + `, join(",", TARGET.GpuModels), "i")`})
	x.noteDirectiveDifference("The kind of the GPU is looked for in the names of the machines' cards, as roost nodes " +
		"--gpus shows them.")
}

func (x *slurmScript) setGRES(v string) bool {
	carried := false
	for _, part := range strings.Split(v, ",") {
		name, rest, _ := strings.Cut(part, ":")
		if (name == "gpu" || name == "gpus") && rest == "" {
			rest = "1"
		}
		switch {
		case name == "gpu" || name == "gpus":
			carried = x.parseGPUs(rest, &x.gpusPerNode) || carried
		case name == "none" || name == "":
		case name == "tmpdisk" || name == "tmp" || name == "localtmp":
			if n, ok := parseSlurmSize(rest); ok && n > 0 {
				x.job.setText("disk", sizeText(n))
				carried = true
				continue
			}
			fallthrough
		default:
			x.noteDirectiveLost("Machines have cpus, memory, disk and GPUs. What the pool has a number of is asked " +
				"for with limits = [\"" + shownLine(name) + "\"], and what a machine has or has not with requirements.")
		}
	}
	return carried
}

func (x *slurmScript) setDependency(v string) bool {
	return x.noteDirectiveLost(parseDependsOn(v, ",?"))
}

func (x *slurmScript) setConcurrencyLimits(v string) bool {
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
		x.noteDirectiveDifference("All of them are asked for, not one.")
	}
	if len(names) == 0 {
		return x.noteDirectiveLost("It names no licence.")
	}
	x.job.setSource("limits", textListSource(names))
	return true
}

// setSignal reads "[R:][B:]signal[@seconds]". The signal is always SIGTERM here, and the
// seconds are the notice period.
func (x *slurmScript) setSignal(v string) bool {
	name, secs, timed := strings.Cut(v[strings.LastIndexByte(v, ':')+1:], "@")
	n := uint64(60)
	if timed {
		var err error
		if n, err = strconv.ParseUint(secs, 10, 16); err != nil {
			return x.noteDirectiveLost("It wants a signal and after @ how many seconds before the end it is sent.")
		}
	}
	x.job.setText("notice", durationText(time.Duration(n)*time.Second))
	if name = strings.TrimPrefix(strings.ToUpper(name), "SIG"); name != "TERM" && name != "15" {
		x.noteDirectiveDifference("A task gets SIGTERM, not SIG" + shownLine(name) +
			", when its walltime is over or it has to leave its machine, and SIGKILL when the notice is over: trap " +
			"TERM. A program that saves its own state needs a checkpoint block with method = \"self\" and signal.")
	} else {
		x.noteDirectiveDifference("The signal comes when the walltime is over or the task has to leave its machine, " +
			"and SIGKILL after the notice.")
	}
	return true
}

func (x *slurmScript) setNice(v string) bool {
	n := 100
	if v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			return x.noteDirectiveLost("It wants a number.")
		}
	}
	x.job.setInt("priority", max(roost.MinPriority, min(roost.MaxPriority, -n)))
	x.noteDirectiveDifference("priority orders your own jobs, from -1024 to 1023; the order between users is " +
		"decided by shares.")
	return true
}
