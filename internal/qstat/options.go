package qstat

import (
	"strings"

	"github.com/roost-batch/roost"
)

// Options are what a command line asks for.
type Options struct {
	Mode      Mode
	Full      bool   // -f
	Format    string // of -f: "", "json" or "dsv"
	Delimiter string // of dsv
	Alternate bool   // the other list
	Wide      bool
	Behind    bool // -1
	Hosts     bool
	Comments  bool
	Gigabytes bool
	Megawords bool
	Estimates bool
	Done      bool // -p
	Arrays    bool // -J: only those
	Subjobs   bool // -t
	Elements  bool // of Torque, where jobs are chosen: the tasks of arrays in their place
	Ended     bool // -x, -H: those, too
	OnlyEnded bool
	States    string   // only jobs in these; empty: any
	Users     []string // only theirs; none: everybody's
	Limits    bool     // -q
	Express   bool     // -E: operands are ids of jobs
	Living    bool     // -c of Torque: none that have ended

	Dialect roost.Dialect
	XML     bool // Torque's -x
}

// Mode is what is listed.
type Mode int

// The modes: jobs, -Q and -q, -B.
const (
	ListJobs Mode = iota
	ListQueues
	ListServers
)

// Letters are the options of qstat, as getopt(3) has them: those of OpenPBS, and c, e, l and R of Torque.
const Letters = "ainpqrstwxu:fGHJMQEBW:T1F:D:celR"

// Given is what getopt found: the letters in their order, each with its value.
type Given struct {
	Letter byte
	Value  string
}

// The marks of options that may conflict.
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

// Read understands a command line. The messages are those of options that do not go together; with any the command is not done. They are OpenPBS's but
// for -f -1, which in Torque folds nothing, and for -f with -u, -i, -r and -H, which shows everything about the jobs that these choose.
func Read(given []Given) (o Options, messages []string) {
	r := reading{Options: o}
	for _, g := range given {
		r.take(g.Letter, g.Value)
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
		r.Wide = r.Wide || r.Behind
	case r.marks&^markW != 0:
		r.Alternate, r.Full = true, false
	}
	if r.bad || len(r.messages) > 0 {
		return r.Options, append(r.messages, "")
	}
	return r.Options, nil
}

// In makes of a command line what it means in a dialect. In Torque's -x asks for XML, which has everything about jobs, and not for those that have ended:
// these are shown for a while in any case. The formats of -F are OpenPBS's, and with them everybody speaks that.
func (o *Options) In(d roost.Dialect) {
	if o.Dialect = d; o.Format != "" {
		o.Dialect = roost.OpenPBS
	}
	o.Elements = o.Dialect == roost.Torque && o.Mode == ListJobs && !o.Arrays && !o.OnlyEnded && (o.States != "" || len(o.Users) > 0)
	if o.Dialect != roost.Torque || o.Mode != ListJobs || !o.Ended || o.OnlyEnded {
		return
	}
	if o.Ended, o.XML = false, !o.Hosts && !o.Comments && !o.Gigabytes && !o.Megawords && !o.Estimates && !o.Done; o.XML {
		o.Full, o.Alternate = true, false
	}
}

// reading is a command line that is being understood.
type reading struct {
	Options
	marks    int
	messages []string
	bad      bool // something makes no sense, and the usage says enough
	queues   bool // -Q
	servers  bool // -B
}

func (r *reading) conflict() { r.messages = append(r.messages, "qstat: conflicting options.") }

// plain are the options that only set something.
var plain = map[byte]func(r *reading){
	'f': func(r *reading) { r.Full = true },
	't': func(r *reading) { r.Subjobs = true },
	'x': func(r *reading) { r.Ended = true },
	'p': func(r *reading) { r.Done = true },
	'J': func(r *reading) { r.Arrays = true },
	'E': func(r *reading) { r.Express = true },
	'B': func(r *reading) { r.Mode, r.servers = ListServers, true },
	'Q': func(r *reading) { r.Mode, r.queues = ListQueues, true },
	'c': func(r *reading) { r.Living = true },
	'e': func(*reading) {},                     // of Torque: only jobs in execution queues, where those are that are shown
	'l': func(*reading) {},                     // likewise: with aliases of servers, of which there are none
	'R': func(r *reading) { r.alternate('a') }, // likewise: it adds columns about disks of machines that are no more
}

func (r *reading) take(letter byte, value string) {
	if set := plain[letter]; set != nil {
		set(r)
		return
	}
	switch letter {
	case 'n', 's':
		r.Full = false // of these and -f the last counts
	case 'u':
		r.users(value)
	case 'F':
		r.Format = strings.ToLower(value)
		r.bad = r.bad || r.Format != "default" && r.Format != "json" && r.Format != "dsv"
		if r.Delimiter == "" {
			r.Delimiter = "|"
		}
	case 'D':
		r.Delimiter = value
		r.bad = r.bad || r.Format != "dsv"
	case 'W':
		r.words(value)
	}
	r.alternate(letter)
}

func (r *reading) users(list string) {
	for _, u := range strings.Split(list, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(u), "@")
		r.Users = append(r.Users, name)
	}
}

// words reads -W of POSIX: letters of options in one word, of which u takes the rest.
func (r *reading) words(value string) {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == ' ':
		case c == 'u':
			r.alternate('u')
			r.users(value[i+1:])
			return
		case strings.IndexByte("airHnsqGM1", c) >= 0:
			r.alternate(c)
		default:
			r.bad = true
		}
	}
}

// alternates are the options of the other list: their marks, and what they set.
var alternates = map[byte]struct {
	mark int
	set  func(o *Options)
}{
	'a': {markA, func(*Options) {}},
	'i': {markI, func(o *Options) { o.States = "EHQTW" }},
	'r': {markR, func(o *Options) { o.States = "RSU" }},
	'H': {markH, func(o *Options) { o.Ended, o.OnlyEnded, o.States = true, true, "MFX" }},
	'u': {markU, func(*Options) {}},
	'n': {markN, func(o *Options) { o.Hosts = true }},
	's': {markS, func(o *Options) { o.Comments = true }},
	'q': {markQ, func(o *Options) { o.Mode, o.Limits = ListQueues, true }},
	'G': {markG, func(o *Options) { o.Gigabytes = true }},
	'M': {markM, func(o *Options) { o.Megawords = true }},
	'1': {mark1, func(o *Options) { o.Behind = true }},
	'w': {markW, func(o *Options) { o.Wide = true }},
	'T': {markT, func(o *Options) { o.Estimates = true }},
}

// alternate takes an option of the other list; any other is none of its business.
func (r *reading) alternate(letter byte) {
	if a, ok := alternates[letter]; ok {
		r.marks |= a.mark
		a.set(&r.Options)
	}
}
