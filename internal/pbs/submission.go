package pbs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// jobSubmission collects the options.
type jobSubmission struct {
	caller           QsubCaller
	script           string
	command          []string
	arguments        []string // of the script: Torque's -F
	fromFile         bool     // the name is that of a file
	name             string
	queue            string
	reservation      string
	server           string // submit node of the job; empty: the caller's
	out, err         string
	join             string // "", "oe", "eo"
	keepFiles        string // letters of -k
	remove           string // letters of -R
	dir              string
	shell            string
	shellOptions     string // the whole value of -S
	account          string
	project          string
	group            string // Unix group that it runs in; empty: the user's primary group
	exportAll        bool
	export           map[string]string
	start            time.Time
	held             bool
	priority         int
	noRerun          bool
	mayRerun         bool              // stated to be rerunnable
	checkpointOption string            // -c, empty for unspecified
	mail             string            // letters of -m
	mailTo           string            // users of -M
	resourceValues   map[string]string // -l: value by resource
	attributes       map[string]string // -W: value by key
	dependencies     []string
	umask            int64 // below 0: the default
	block            bool
	quiet            bool
	interactive      bool
	warnings         []string
	x11Forwarding    bool // X11 forwarding is requested
	exclusive        bool // exclusive machines: Torque's -n
	ownDirectory     bool // a directory of its own: sandbox, or files are staged
	stageIn          []stageFile
	stageOut         []stageFile
	request          resourceRequest
	array            *roost.ArrayIndexes // nil: no array
	arrayRange       string              // indexes of the array as written
	maxRunning       int                 // tasks that may run at once; 0: all

	paths map[byte]string // for qalter: the present paths of o and e, in the form of the ad
}

// applyOptions applies options; later ones override earlier ones.
func (s *jobSubmission) applyOptions(options []optionValue) error {
	for _, o := range options {
		read := optionReaders()[o.letter]
		if read == nil {
			// -C was read before the script, -f is about a daemon that Roost lacks, and
			// -b is a retry time
			continue
		}
		if err := read(s, strings.TrimSpace(o.value)); err != nil {
			return err
		}
	}
	return nil
}

// optionReaders returns the reader of each option (OpenPBS qsub(1B); -d, -D, -F, -n, -t,
// -T, -w and -x: Torque qsub(1B)).
func optionReaders() map[byte]func(s *jobSubmission, v string) error {
	return map[byte]func(s *jobSubmission, v string) error{
		'a': (*jobSubmission).setStart, 'A': textOption('A', func(s *jobSubmission) *string {
			return &s.account
		}), 'c': (*jobSubmission).setCheckpoint,
		'd': textOption('d', func(s *jobSubmission) *string {
			return &s.dir
		}), 'D': textOption('D', func(s *jobSubmission) *string { return &s.dir }),
		'e': textOption('e', func(s *jobSubmission) *string {
			return &s.err
		}), 'F': (*jobSubmission).setArguments, 'h': func(s *jobSubmission, _ string) error {
			s.held = true
			return nil
		},
		'I': interactiveCommand, 'j': (*jobSubmission).setJoin, 'J': func(s *jobSubmission, v string) error {
			return s.setArray('J', v)
		},
		'k': (*jobSubmission).setKeep, 'l': (*jobSubmission).addResources, 'm': (*jobSubmission).setMail,
		'M': textOption('M', func(s *jobSubmission) *string {
			return &s.mailTo
		}),
		'n': func(s *jobSubmission, _ string) error {
			s.exclusive = true
			return nil
		}, 'N': (*jobSubmission).setName, 'o': textOption('o', func(s *jobSubmission) *string { return &s.out }),
		'p': (*jobSubmission).setPriority, 'P': (*jobSubmission).setProject, 'q': (*jobSubmission).setDestination,
		'r': (*jobSubmission).setRerunnable, 'R': (*jobSubmission).setRemove, 'S': (*jobSubmission).setShell,
		't': func(s *jobSubmission, v string) error {
			return s.setArray('t', v)
		},
		'T': func(*jobSubmission, string) error {
			return refusalf("-T is not supported: prologue and epilogue are the machines' own", exitUsage)
		},
		'u': (*jobSubmission).setUser, 'v': (*jobSubmission).setVariables, 'V': func(s *jobSubmission, _ string) error {
			s.exportAll = true
			return nil
		},
		'w': textOption('w', func(s *jobSubmission) *string { return &s.dir }), 'W': (*jobSubmission).addAttributes,
		'x': func(*jobSubmission, string) error {
			return refusalf("-x is not supported: the script of an interactive job is read for its directives only",
				exitUsage)
		},
		'X': func(s *jobSubmission, _ string) error { s.x11Forwarding = true; return nil },
		'z': func(s *jobSubmission, _ string) error { s.quiet = true; return nil },
	}
}

// textOption returns the reader of an option whose value is any non-empty text.
func textOption(letter byte, field func(*jobSubmission) *string) func(*jobSubmission, string) error {
	return func(s *jobSubmission, v string) error {
		if v == "" {
			return illegalValueError(letter)
		}
		*field(s) = v
		return nil
	}
}

func (s *jobSubmission) setName(v string) error {
	if !isJobName(v) {
		return illegalValueError('N')
	}
	s.name, s.fromFile = v, false
	return nil
}

// isJobName reports whether s is a valid job name: at most 230 characters, and no dot
// first (OpenPBS).
func isJobName(s string) bool { return len(s) <= 230 && isPlainName(s) && s[0] != '.' }

// setProject parses -P. It is the project, and in Torque the user of the job, who must be
// the submitter.
func (s *jobSubmission) setProject(v string) error {
	if v == "" {
		return illegalValueError('P')
	}
	if !s.caller.isTorque() {
		s.project = v
		return nil
	}
	if user, _, _ := strings.Cut(v, ":"); user != s.caller.User {
		return refusalf("Unauthorized Request: jobs are of who submits them, "+s.caller.User+", and not of "+user,
			exitNotAllowed)
	}
	return nil
}

func (s *jobSubmission) setDestination(v string) error {
	queue, server, ok := ParseDestination(v)
	if !ok {
		return &RefusalError{"qsub: illegally formed destination: " + v, exitUsage}
	}
	s.queue, s.reservation, s.server = queue, "", server
	if ReservationName(queue) {
		s.queue, s.reservation = "", queue
	}
	return nil
}

// ParseDestination parses "queue", "@server" and "queue@server".
func ParseDestination(v string) (queue, server string, ok bool) {
	queue, server, at := strings.Cut(v, "@")
	return queue, server, v != "" && (queue == "" || isPlainName(queue)) && (!at || isPlainName(server))
}

func (s *jobSubmission) setPriority(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < roost.MinPriority || n > roost.MaxPriority {
		return illegalValueError('p')
	}
	s.priority = n
	return nil
}

func (s *jobSubmission) setRerunnable(v string) error {
	if v != "y" && v != "n" {
		return illegalValueError('r')
	}
	s.noRerun, s.mayRerun = v == "n", v == "y"
	return nil
}

// setShell parses "path[@host],…". The host is not known yet, so the path without a host
// counts; without one it is the login shell.
func (s *jobSubmission) setShell(v string) error {
	seen := map[string]bool{}
	shell := ""
	for _, item := range listItems(v) {
		p, host, _ := strings.Cut(item, "@")
		if !strings.HasPrefix(p, "/") || seen[host] {
			return illegalValueError('S')
		}
		if seen[host] = true; host == "" {
			shell = p
		}
	}
	s.shell, s.shellOptions = shell, v
	return nil
}

// setUser parses "user[@host],…": a job runs as its submitter and no other user.
func (s *jobSubmission) setUser(v string) error {
	seen, user := map[string]bool{}, ""
	for _, item := range listItems(v) {
		name, host, _ := strings.Cut(item, "@")
		if name == "" || seen[host] {
			return illegalValueError('u')
		}
		if seen[host] = true; host == "" || user == "" {
			user = name
		}
	}
	if user != s.caller.User {
		return refusalf("Bad UID for job execution: "+user+" is not you, and a job runs as who submits it", exitBadUser)
	}
	return nil
}

// setMail parses the letters of -m.
func (s *jobSubmission) setMail(v string) error {
	if v == "" || v != "n" && strings.Trim(v, "abej") != "" {
		return illegalValueError('m')
	}
	s.mail = v
	return nil
}

// setArguments parses Torque's -F: the arguments of the script, in one word.
func (s *jobSubmission) setArguments(v string) error {
	words, ok := SplitWords(v)
	if !ok || len(words) > maxWords {
		return illegalValueError('F')
	}
	s.arguments = words
	return nil
}

// checkConflicts refuses conflicting options.
func (s *jobSubmission) checkConflicts() error {
	switch {
	case s.fromFile && !isJobName(s.name):
		return illegalValueError('N')
	case s.array != nil && s.noRerun:
		return refusalf("cannot submit non-rerunable Array Job", exitUsage)
	case s.array == nil && s.maxRunning > 0:
		return refusalf("Attribute has to be set on an array job: max_run_subjobs", exitUsage)
	case s.array == nil && strings.Contains(s.mail, "j"):
		return refusalf("mail option 'j' can not be used without array job", exitUsage)
	case s.command != nil && len(s.arguments) > 0:
		return refusalf("-F gives arguments to a script, and there is a command", exitUsage)
	case s.command == nil && !s.interactive && strings.TrimSpace(s.script) == "":
		return refusalf("Job has no script", exitScript)
	case slices.ContainsFunc(append(slices.Clone(s.command), s.arguments...), func(a string) bool {
		return strings.IndexByte(a, 0) >= 0
	}):
		return refusalf("an argument holds a zero byte", exitUsage)
	}
	return nil
}
