package qsub

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// JobSubmission collects the options.
type JobSubmission struct {
	Caller           QsubCaller
	Script           string
	Command          []string
	arguments        []string // of the script: Torque's -F
	fromFile         bool     // the name is that of a file
	Name             string
	Queue            string
	reservation      string
	Server           string // submit node of the job; empty: the caller's
	out, err         string
	Join             string // "", "oe", "eo"
	KeepFiles        string // letters of -k
	Remove           string // letters of -R
	Dir              string
	Shell            string
	ShellOptions     string // the whole value of -S
	Account          string
	Project          string
	group            string // Unix group that it runs in; empty: the user's primary group
	exportAll        bool
	export           map[string]string
	Start            time.Time
	held             bool
	Priority         int
	NoRerun          bool
	mayRerun         bool              // stated to be rerunnable
	checkpointOption string            // -c, empty for unspecified
	Mail             string            // letters of -m
	MailTo           string            // users of -M
	ResourceValues   map[string]string // -l: value by resource
	Attributes       map[string]string // -W: value by key
	dependencies     []string
	umask            int64 // below 0: the default
	block            bool
	quiet            bool
	interactive      bool
	cellQueue        *bool // whether the queue of the cell takes it; nil: unspecified
	warnings         []string
	x11Forwarding    bool // X11 forwarding is requested
	exclusive        bool // exclusive machines: Torque's -n
	ownDirectory     bool // a directory of its own: sandbox, or files are staged
	stageIn          []stageFile
	stageOut         []stageFile
	request          resourceRequest
	Array            *roost.ArrayIndexes // nil: no array
	ArrayRange       string              // indexes of the array as written
	maxRunning       int                 // tasks that may run at once; 0: all

	Paths map[byte]string // for qalter: the present paths of o and e, in the form of the ad
}

// ApplyOptions applies options; later ones override earlier ones.
func (s *JobSubmission) ApplyOptions(options []OptionValue) error {
	for _, o := range options {
		read := optionReaders()[o.Letter]
		if read == nil {
			// -C was read before the script, -f is about a daemon that Roost lacks, and
			// -b is a retry time
			continue
		}
		if err := read(s, strings.TrimSpace(o.Value)); err != nil {
			return err
		}
	}
	return nil
}

// optionReaders returns the reader of each option (OpenPBS qsub(1B); -d, -D, -F, -n, -t,
// -T, -w and -x: Torque qsub(1B)).
func optionReaders() map[byte]func(s *JobSubmission, v string) error {
	return map[byte]func(s *JobSubmission, v string) error{
		'a': (*JobSubmission).setStart, 'A': textOption('A', func(s *JobSubmission) *string {
			return &s.Account
		}), 'c': (*JobSubmission).setCheckpoint,
		'd': textOption('d', func(s *JobSubmission) *string {
			return &s.Dir
		}), 'D': textOption('D', func(s *JobSubmission) *string { return &s.Dir }),
		'e': textOption('e', func(s *JobSubmission) *string {
			return &s.err
		}), 'F': (*JobSubmission).setArguments, 'h': func(s *JobSubmission, _ string) error {
			s.held = true
			return nil
		},
		'I': interactiveCommand, 'j': (*JobSubmission).setJoin, 'J': func(s *JobSubmission, v string) error {
			return s.setArray('J', v)
		},
		'k': (*JobSubmission).setKeep, 'l': (*JobSubmission).AddResources, 'm': (*JobSubmission).setMail,
		'M': textOption('M', func(s *JobSubmission) *string {
			return &s.MailTo
		}),
		'n': func(s *JobSubmission, _ string) error {
			s.exclusive = true
			return nil
		}, 'N': (*JobSubmission).setName, 'o': textOption('o', func(s *JobSubmission) *string { return &s.out }),
		'p': (*JobSubmission).setPriority, 'P': (*JobSubmission).setProject, 'q': (*JobSubmission).setDestination,
		'r': (*JobSubmission).setRerunnable, 'R': (*JobSubmission).setRemove, 'S': (*JobSubmission).setShell,
		't': func(s *JobSubmission, v string) error {
			return s.setArray('t', v)
		},
		'T': func(*JobSubmission, string) error {
			return refusalf("-T is not supported: prologue and epilogue are the machines' own", ExitUsage)
		},
		'u': (*JobSubmission).setUser, 'v': (*JobSubmission).setVariables, 'V': func(s *JobSubmission, _ string) error {
			s.exportAll = true
			return nil
		},
		'w': textOption('w', func(s *JobSubmission) *string { return &s.Dir }), 'W': (*JobSubmission).AddAttributes,
		'x': func(*JobSubmission, string) error {
			return refusalf("-x is not supported: the script of an interactive job is read for its directives only",
				ExitUsage)
		},
		'X':        func(s *JobSubmission, _ string) error { s.x11Forwarding = true; return nil },
		cellOption: queueOption(true), localOption: queueOption(false),
		'z': func(s *JobSubmission, _ string) error { s.quiet = true; return nil },
	}
}

// queueOption returns the reader of an option that says which queue takes the job.
func queueOption(cell bool) func(*JobSubmission, string) error {
	return func(s *JobSubmission, _ string) error {
		s.cellQueue = &cell
		return nil
	}
}

// textOption returns the reader of an option whose value is any non-empty text.
func textOption(letter byte, field func(*JobSubmission) *string) func(*JobSubmission, string) error {
	return func(s *JobSubmission, v string) error {
		if v == "" {
			return IllegalValueError(letter)
		}
		*field(s) = v
		return nil
	}
}

func (s *JobSubmission) setName(v string) error {
	if !isJobName(v) {
		return IllegalValueError('N')
	}
	s.Name, s.fromFile = v, false
	return nil
}

// isJobName reports whether s is a valid job name: at most 230 characters, and no dot
// first (OpenPBS).
func isJobName(s string) bool { return len(s) <= 230 && isPlainName(s) && s[0] != '.' }

// setProject parses -P. It is the project, and in Torque the user of the job, who must be
// the submitter.
func (s *JobSubmission) setProject(v string) error {
	if v == "" {
		return IllegalValueError('P')
	}
	if !s.Caller.isTorque() {
		s.Project = v
		return nil
	}
	if user, _, _ := strings.Cut(v, ":"); user != s.Caller.User {
		return refusalf("Unauthorized Request: jobs are of who submits them, "+s.Caller.User+", and not of "+user,
			exitNotAllowed)
	}
	return nil
}

func (s *JobSubmission) setDestination(v string) error {
	queue, server, ok := ParseDestination(v)
	if !ok {
		return &RefusalError{"qsub: illegally formed destination: " + v, ExitUsage}
	}
	s.Queue, s.reservation, s.Server = queue, "", server
	if ReservationName(queue) {
		s.Queue, s.reservation = "", queue
	}
	return nil
}

// ParseDestination parses "queue", "@server" and "queue@server".
func ParseDestination(v string) (queue, server string, ok bool) {
	queue, server, at := strings.Cut(v, "@")
	return queue, server, v != "" && (queue == "" || isPlainName(queue)) && (!at || isPlainName(server))
}

func (s *JobSubmission) setPriority(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < roost.MinPriority || n > roost.MaxPriority {
		return IllegalValueError('p')
	}
	s.Priority = n
	return nil
}

func (s *JobSubmission) setRerunnable(v string) error {
	if v != "y" && v != "n" {
		return IllegalValueError('r')
	}
	s.NoRerun, s.mayRerun = v == "n", v == "y"
	return nil
}

// setShell parses "path[@host],…". The host is not known yet, so the path without a host
// counts; without one it is the login shell.
func (s *JobSubmission) setShell(v string) error {
	seen := map[string]bool{}
	shell := ""
	for _, item := range listItems(v) {
		p, host, _ := strings.Cut(item, "@")
		if !strings.HasPrefix(p, "/") || seen[host] {
			return IllegalValueError('S')
		}
		if seen[host] = true; host == "" {
			shell = p
		}
	}
	s.Shell, s.ShellOptions = shell, v
	return nil
}

// setUser parses "user[@host],…": a job runs as its submitter and no other user.
func (s *JobSubmission) setUser(v string) error {
	seen, user := map[string]bool{}, ""
	for _, item := range listItems(v) {
		name, host, _ := strings.Cut(item, "@")
		if name == "" || seen[host] {
			return IllegalValueError('u')
		}
		if seen[host] = true; host == "" || user == "" {
			user = name
		}
	}
	if user != s.Caller.User {
		return refusalf("Bad UID for job execution: "+user+" is not you, and a job runs as who submits it", exitBadUser)
	}
	return nil
}

// setMail parses the letters of -m.
func (s *JobSubmission) setMail(v string) error {
	if v == "" || v != "n" && strings.Trim(v, "abej") != "" {
		return IllegalValueError('m')
	}
	s.Mail = v
	return nil
}

// setArguments parses Torque's -F: the arguments of the script, in one word.
func (s *JobSubmission) setArguments(v string) error {
	words, ok := SplitWords(v)
	if !ok || len(words) > maxWords {
		return IllegalValueError('F')
	}
	s.arguments = words
	return nil
}

// checkConflicts refuses conflicting options.
func (s *JobSubmission) checkConflicts() error {
	switch {
	case s.fromFile && !isJobName(s.Name):
		return IllegalValueError('N')
	case s.Array != nil && s.NoRerun:
		return refusalf("cannot submit non-rerunable Array Job", ExitUsage)
	case s.Array == nil && s.maxRunning > 0:
		return refusalf("Attribute has to be set on an array job: max_run_subjobs", ExitUsage)
	case s.Array == nil && strings.Contains(s.Mail, "j"):
		return refusalf("mail option 'j' can not be used without array job", ExitUsage)
	case s.Command != nil && len(s.arguments) > 0:
		return refusalf("-F gives arguments to a script, and there is a command", ExitUsage)
	case s.Command == nil && !s.interactive && strings.TrimSpace(s.Script) == "":
		return refusalf("Job has no script", exitScript)
	case slices.ContainsFunc(append(slices.Clone(s.Command), s.arguments...), func(a string) bool {
		return strings.IndexByte(a, 0) >= 0
	}):
		return refusalf("an argument holds a zero byte", ExitUsage)
	}
	return nil
}
