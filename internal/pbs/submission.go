package pbs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// submission gathers what the options say.
type submission struct {
	caller      Caller
	script      string
	command     []string
	arguments   []string // of the script: Torque's -F
	fromFile    bool     // the name is that of a file
	name        string
	queue       string
	reservation string
	server      string // the node in whose queue the job goes; empty: the caller's
	out, err    string
	join        string // "", "oe", "eo"
	keep        string // letters of -k
	remove      string // letters of -R
	dir         string
	shell       string
	shells      string // all that -S said
	account     string
	project     string
	group       string // Unix group that it runs in; empty: the user's own
	exportAll   bool
	export      map[string]string
	start       time.Time
	held        bool
	priority    int
	noRerun     bool
	mayRerun    bool              // it was said that it may
	saving      string            // -c, empty for unspecified
	mail        string            // points of -m
	mailTo      string            // users of -M
	wanted      map[string]string // -l: a value by resource
	attributes  map[string]string // -W: a value by key
	depends     []string
	umask       int64 // below 0: the usual one
	block       bool
	quiet       bool
	interactive bool
	warnings    []string
	windows     bool // X11 is to be forwarded
	whole       bool // its machines are to be had alone: Torque's -n
	private     bool // in a directory of its own: sandbox, or files are staged
	stageIn     []staged
	stageOut    []staged
	request     request
	array       *roost.Indexes // nil: no array
	indices     string         // of the array, as they were written
	atOnce      int            // tasks that may run at once; 0: all

	paths map[byte]string // of a job that is altered: where o and e go already, as its ad has it
}

// apply folds options in, later ones over earlier ones.
func (s *submission) apply(options []option) error {
	for _, o := range options {
		read := optionReaders()[o.letter]
		if read == nil {
			continue // -C was read before the script, -f is of a daemon that we do not need, and -b is how long to try
		}
		if err := read(s, strings.TrimSpace(o.value)); err != nil {
			return err
		}
	}
	return nil
}

// optionReaders says what each option means (OpenPBS qsub(1B); -d, -D, -F, -n, -t, -T, -w and -x: Torque qsub(1B)).
func optionReaders() map[byte]func(s *submission, v string) error {
	return map[byte]func(s *submission, v string) error{
		'a': (*submission).setStart, 'A': text('A', func(s *submission) *string { return &s.account }), 'c': (*submission).setCheckpoint,
		'd': text('d', func(s *submission) *string { return &s.dir }), 'D': text('D', func(s *submission) *string { return &s.dir }),
		'e': text('e', func(s *submission) *string { return &s.err }), 'F': (*submission).setArguments, 'h': func(s *submission, _ string) error { s.held = true; return nil },
		'I': interactive, 'j': (*submission).setJoin, 'J': func(s *submission, v string) error { return s.setArray('J', v) },
		'k': (*submission).setKeep, 'l': (*submission).addResources, 'm': (*submission).setMail, 'M': text('M', func(s *submission) *string { return &s.mailTo }),
		'n': func(s *submission, _ string) error { s.whole = true; return nil }, 'N': (*submission).setName, 'o': text('o', func(s *submission) *string { return &s.out }),
		'p': (*submission).setPriority, 'P': (*submission).setProject, 'q': (*submission).setDestination,
		'r': (*submission).setRerunnable, 'R': (*submission).setRemove, 'S': (*submission).setShell, 't': func(s *submission, v string) error { return s.setArray('t', v) },
		'T': func(*submission, string) error {
			return refuse("-T is not supported: prologue and epilogue are the machines' own", exitUsage)
		},
		'u': (*submission).setUser, 'v': (*submission).setVariables, 'V': func(s *submission, _ string) error { s.exportAll = true; return nil },
		'w': text('w', func(s *submission) *string { return &s.dir }), 'W': (*submission).addAttributes,
		'x': func(*submission, string) error {
			return refuse("-x is not supported: the script of an interactive job is read for its directives only", exitUsage)
		},
		'X': func(s *submission, _ string) error { s.windows = true; return nil },
		'z': func(s *submission, _ string) error { s.quiet = true; return nil },
	}
}

// text reads an option whose value is any text but an empty one.
func text(letter byte, field func(*submission) *string) func(*submission, string) error {
	return func(s *submission, v string) error {
		if v == "" {
			return illegal(letter)
		}
		*field(s) = v
		return nil
	}
}

func (s *submission) setName(v string) error {
	if !jobName(v) {
		return illegal('N')
	}
	s.name, s.fromFile = v, false
	return nil
}

// jobName reports whether s can be the name of a job: at most 230 characters, of which the first is no dot (OpenPBS).
func jobName(s string) bool { return len(s) <= 230 && plainName(s) && s[0] != '.' }

// setProject reads -P: the project, and in Torque the user that the job is to be of, who has to be the one who submits it.
func (s *submission) setProject(v string) error {
	if v == "" {
		return illegal('P')
	}
	if !s.caller.torque() {
		s.project = v
		return nil
	}
	if user, _, _ := strings.Cut(v, ":"); user != s.caller.User {
		return refuse("Unauthorized Request: jobs are of who submits them, "+s.caller.User+", and not of "+user, exitNotAllowed)
	}
	return nil
}

func (s *submission) setDestination(v string) error {
	queue, server, ok := Destination(v)
	if !ok {
		return &Error{"qsub: illegally formed destination: " + v, exitUsage}
	}
	s.queue, s.reservation, s.server = queue, "", server
	if ReservationName(queue) {
		s.queue, s.reservation = "", queue
	}
	return nil
}

// Destination reads "queue", "@server" and "queue@server".
func Destination(v string) (queue, server string, ok bool) {
	queue, server, at := strings.Cut(v, "@")
	return queue, server, v != "" && (queue == "" || plainName(queue)) && (!at || plainName(server))
}

func (s *submission) setPriority(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < roost.MinPriority || n > roost.MaxPriority {
		return illegal('p')
	}
	s.priority = n
	return nil
}

func (s *submission) setRerunnable(v string) error {
	if v != "y" && v != "n" {
		return illegal('r')
	}
	s.noRerun, s.mayRerun = v == "n", v == "y"
	return nil
}

// setShell reads "path[@host],…". Where the job will run is not known yet, so the path without a host counts; with none it is the login shell.
func (s *submission) setShell(v string) error {
	seen := map[string]bool{}
	shell := ""
	for _, item := range items(v) {
		p, host, _ := strings.Cut(item, "@")
		if !strings.HasPrefix(p, "/") || seen[host] {
			return illegal('S')
		}
		if seen[host] = true; host == "" {
			shell = p
		}
	}
	s.shell, s.shells = shell, v
	return nil
}

// setUser reads "user[@host],…": a job runs as who submits it, and as nobody else.
func (s *submission) setUser(v string) error {
	seen, user := map[string]bool{}, ""
	for _, item := range items(v) {
		name, host, _ := strings.Cut(item, "@")
		if name == "" || seen[host] {
			return illegal('u')
		}
		if seen[host] = true; host == "" || user == "" {
			user = name
		}
	}
	if user != s.caller.User {
		return refuse("Bad UID for job execution: "+user+" is not you, and a job runs as who submits it", exitBadUser)
	}
	return nil
}

// setMail reads the points of -m.
func (s *submission) setMail(v string) error {
	if v == "" || v != "n" && strings.Trim(v, "abej") != "" {
		return illegal('m')
	}
	s.mail = v
	return nil
}

// setArguments reads Torque's -F: the arguments of the script, in one word.
func (s *submission) setArguments(v string) error {
	words, ok := Words(v)
	if !ok || len(words) > maxWords {
		return illegal('F')
	}
	s.arguments = words
	return nil
}

// check refuses options that do not go together.
func (s *submission) check() error {
	switch {
	case s.fromFile && !jobName(s.name):
		return illegal('N')
	case s.array != nil && s.noRerun:
		return refuse("cannot submit non-rerunable Array Job", exitUsage)
	case s.array == nil && s.atOnce > 0:
		return refuse("Attribute has to be set on an array job: max_run_subjobs", exitUsage)
	case s.array == nil && strings.Contains(s.mail, "j"):
		return refuse("mail option 'j' can not be used without array job", exitUsage)
	case s.command != nil && len(s.arguments) > 0:
		return refuse("-F gives arguments to a script, and there is a command", exitUsage)
	case s.command == nil && !s.interactive && strings.TrimSpace(s.script) == "":
		return refuse("Job has no script", exitScript)
	case slices.ContainsFunc(append(slices.Clone(s.command), s.arguments...), func(a string) bool { return strings.IndexByte(a, 0) >= 0 }):
		return refuse("an argument holds a zero byte", exitUsage)
	}
	return nil
}
