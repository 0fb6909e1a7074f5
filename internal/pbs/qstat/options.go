package qstat

import (
	"strings"

	"github.com/roost-batch/roost"
)

// CommandOptions is a parsed command line.
type CommandOptions struct {
	Mode          ListMode
	Full          bool   // -f
	Format        string // of -f: "", "json" or "dsv"
	Delimiter     string // of dsv
	Alternate     bool   // alternate list
	Wide          bool
	SameLine      bool // -1
	Hosts         bool
	Comments      bool
	Gigabytes     bool
	Megawords     bool
	Estimates     bool
	PercentDone   bool // -p
	Arrays        bool // -J: only arrays
	Subjobs       bool // -t
	ArrayElements bool // Torque with a selection of jobs: list the tasks of arrays in place of the array
	Ended         bool // -x, -H: include ended jobs
	OnlyEnded     bool
	States        string   // only jobs in these states; empty: any
	Users         []string // only jobs of these users; empty: any
	Limits        bool     // -q
	JobIDsOnly    bool     // -E: operands are job ids
	ExcludeEnded  bool     // Torque's -c: without ended jobs

	Dialect roost.PBSDialect
	XML     bool // Torque's -x
}

// ListMode is what is listed.
type ListMode int

// The modes: jobs; -Q and -q; -B.
const (
	ListJobs ListMode = iota
	ListQueues
	ListServers
)

// OptionSpec is the getopt string: the options of OpenPBS, and c, e, l and R of Torque.
const OptionSpec = "ainpqrstwxu:fGHJMQEBW:T1F:D:celR"

// GivenOption is one option that getopt returned.
type GivenOption struct {
	Letter byte
	Value  string
}

// Bits of options that may conflict.
const (
	markA = 1 << iota
	markI
	markR
	markU
	markN
	markS
	markH
	markQ
	markM
	markG
	mark1
	markT
	markW
)

// ParseCommandLine parses a command line. The messages report options that conflict; if
// there are any, the command is not run. The rules are OpenPBS's with two exceptions: -f
// -1 does not fold lines, as in Torque, and -f with -u, -i, -r or -H shows all attributes
// of the selected jobs.
func ParseCommandLine(given []GivenOption) (o CommandOptions, messages []string) {
	r := optionParser{CommandOptions: o}
	for _, g := range given {
		r.takeOption(g.Letter, g.Value)
	}
	if r.Format == "default" {
		r.Format = ""
	}
	if r.queues && r.servers || (r.queues || r.servers) && r.marks&^markW != 0 {
		r.conflict()
	}
	const rows = markA | markI | markR | markQ | markH
	if one := r.marks & rows; one&(one-1) != 0 {
		r.conflict()
	}
	if r.marks&markM != 0 && r.marks&markG != 0 {
		r.conflict()
	}
	if r.Format != "" && (!r.Full || r.marks != 0) {
		r.conflict()
	}
	if r.marks&markQ != 0 && r.Full {
		r.conflict()
	}
	if r.marks&mark1 != 0 && r.marks&(markN|markS) == 0 && !r.Full {
		r.conflict()
	}
	if r.Wide && r.Format != "" {
		r.messages = append(r.messages, "qstat: option w cannot be used with -F")
	}
	const chooses = markU | markI | markR | markH | markW | mark1
	switch {
	case r.Full && r.marks&^chooses == 0:
		r.Wide = r.Wide || r.SameLine
	case r.marks&^markW != 0:
		r.Alternate, r.Full = true, false
	}
	if r.isInvalid || len(r.messages) > 0 {
		return r.CommandOptions, append(r.messages, "")
	}
	return r.CommandOptions, nil
}

// InDialect adapts a command line to a dialect. Torque's -x means XML, which has all
// attributes of jobs, and not ended jobs: those are shown for a while in any case. The
// formats of -F exist only in OpenPBS, so with -F its dialect is used.
func (o *CommandOptions) InDialect(d roost.PBSDialect) {
	if o.Dialect = d; o.Format != "" {
		o.Dialect = roost.OpenPBS
	}
	o.ArrayElements = o.Dialect == roost.Torque && o.Mode == ListJobs && !o.Arrays && !o.OnlyEnded &&
		(o.States != "" || len(o.Users) > 0)
	if o.Dialect != roost.Torque || o.Mode != ListJobs || !o.Ended || o.OnlyEnded {
		return
	}
	if o.Ended, o.XML = false, !o.Hosts && !o.Comments && !o.Gigabytes && !o.Megawords && !o.Estimates &&
		!o.PercentDone; o.XML {
		o.Full, o.Alternate = true, false
	}
}

// optionParser is the state of parsing a command line.
type optionParser struct {
	CommandOptions
	marks     int
	messages  []string
	isInvalid bool // invalid: the usage message suffices
	queues    bool // -Q
	servers   bool // -B
}

func (r *optionParser) conflict() { r.messages = append(r.messages, "qstat: conflicting options.") }

// plainOptions are the options that only set a field.
var plainOptions = map[byte]func(r *optionParser){
	'f': func(r *optionParser) { r.Full = true },
	't': func(r *optionParser) { r.Subjobs = true },
	'x': func(r *optionParser) { r.Ended = true },
	'p': func(r *optionParser) { r.PercentDone = true },
	'J': func(r *optionParser) { r.Arrays = true },
	'E': func(r *optionParser) { r.JobIDsOnly = true },
	'B': func(r *optionParser) { r.Mode, r.servers = ListServers, true },
	'Q': func(r *optionParser) { r.Mode, r.queues = ListQueues, true },
	'c': func(r *optionParser) { r.ExcludeEnded = true },
	// Torque: only jobs in execution queues, which all shown jobs are in
	'e': func(*optionParser) {},
	// Torque: with aliases of servers, which do not exist
	'l': func(*optionParser) {},
	// Torque: adds columns about kinds of disks that no longer exist
	'R': func(r *optionParser) { r.takeAlternateOption('a') },
}

func (r *optionParser) takeOption(letter byte, value string) {
	if set := plainOptions[letter]; set != nil {
		set(r)
		return
	}
	switch letter {
	case 'n', 's':
		r.Full = false // the last of these and -f wins
	case 'u':
		r.readUsers(value)
	case 'F':
		r.Format = strings.ToLower(value)
		r.isInvalid = r.isInvalid || r.Format != "default" && r.Format != "json" && r.Format != "dsv"
		if r.Delimiter == "" {
			r.Delimiter = "|"
		}
	case 'D':
		r.Delimiter = value
		r.isInvalid = r.isInvalid || r.Format != "dsv"
	case 'W':
		r.readWords(value)
	}
	r.takeAlternateOption(letter)
}

func (r *optionParser) readUsers(list string) {
	for _, u := range strings.Split(list, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(u), "@")
		r.Users = append(r.Users, name)
	}
}

// readWords reads the value of POSIX's -W: option letters in one word; u takes the rest.
func (r *optionParser) readWords(value string) {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == ' ':
		case c == 'u':
			r.takeAlternateOption('u')
			r.readUsers(value[i+1:])
			return
		case strings.IndexByte("airHnsqGM1", c) >= 0:
			r.takeAlternateOption(c)
		default:
			r.isInvalid = true
		}
	}
}

// alternateOptions are the options of the alternate list: their bits, and what they set.
var alternateOptions = map[byte]struct {
	mark int
	set  func(o *CommandOptions)
}{
	'a': {markA, func(*CommandOptions) {}},
	'i': {markI, func(o *CommandOptions) { o.States = "EHQTW" }},
	'r': {markR, func(o *CommandOptions) { o.States = "RSU" }},
	'H': {markH, func(o *CommandOptions) { o.Ended, o.OnlyEnded, o.States = true, true, "MFX" }},
	'u': {markU, func(*CommandOptions) {}},
	'n': {markN, func(o *CommandOptions) { o.Hosts = true }},
	's': {markS, func(o *CommandOptions) { o.Comments = true }},
	'q': {markQ, func(o *CommandOptions) { o.Mode, o.Limits = ListQueues, true }},
	'G': {markG, func(o *CommandOptions) { o.Gigabytes = true }},
	'M': {markM, func(o *CommandOptions) { o.Megawords = true }},
	'1': {mark1, func(o *CommandOptions) { o.SameLine = true }},
	'w': {markW, func(o *CommandOptions) { o.Wide = true }},
	'T': {markT, func(o *CommandOptions) { o.Estimates = true }},
}

// takeAlternateOption applies an option of the alternate list, and ignores others.
func (r *optionParser) takeAlternateOption(letter byte) {
	if a, ok := alternateOptions[letter]; ok {
		r.marks |= a.mark
		a.set(&r.CommandOptions)
	}
}
