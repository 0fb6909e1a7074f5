package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Program is what an attempt is to run, with every $(…) filled in.
type Program struct {
	Name                  string
	Executable            string
	Arguments             []string
	Environment           []string // "NAME=value"
	Script, Shell         string
	Directory             string
	Stdin                 string
	Stdout, Stderr        string // empty: captured
	JoinOutput, KeepEmpty bool
	Inputs, Outputs       []string
	Transfer, Domain      string
	Umask                 int // -1 where the job says nothing
	Walltime              time.Duration
	Notice                time.Duration // negative where the job says nothing
	User                  string
	UID, GID              uint32
}

// template is a parsed ad, kept for the job that was launched last.
type template struct {
	seq uint64
	ad  *classad.Ad
}

// templates are the attributes in which $(…) is filled in.
var templates = [...]string{
	roost.AttrCmd, roost.AttrArguments, roost.AttrEnvironment, roost.AttrIn, roost.AttrOut, roost.AttrErr, roost.AttrIwd,
	roost.AttrTransferIn, roost.AttrTransferOut, roost.AttrJobName,
}

// builtin reports whether a name, in lower case, stands for something in every job.
func builtin(name string) bool {
	return name == "taskindex" || name == "jobid" || name == "jobseq" || name == "attempt"
}

// Launch makes the program of a live attempt.
func (q *Queue) Launch(a roost.AttemptID) (*Program, error) {
	j, r := q.find(a)
	if r == nil {
		return nil, fmt.Errorf("%v: %w", a, roost.Stale)
	}
	if q.template.seq != j.seq {
		ad, err := classad.Parse(j.sub.Ad)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", a, err)
		}
		q.template = template{j.seq, ad}
	}
	f := filler{ad: q.template.ad, value: j.valuer(q.host, a)}
	c := j.class(a.Task.Index)
	p := &Program{
		Name: f.text(roost.AttrJobName), Executable: f.text(roost.AttrCmd), Arguments: f.list(roost.AttrArguments),
		Environment: f.list(roost.AttrEnvironment), Directory: f.text(roost.AttrIwd), Stdin: f.text(roost.AttrIn), Stdout: f.text(roost.AttrOut),
		Stderr: f.text(roost.AttrErr), Inputs: f.list(roost.AttrTransferIn), Outputs: f.list(roost.AttrTransferOut),
		Transfer: j.plan.transfer, Domain: j.plan.domain, Umask: -1, Walltime: c.plan.walltime, Notice: j.plan.notice,
		User: j.sub.Owner, UID: j.sub.UID, GID: j.sub.GID,
	}
	p.Script, _ = f.ad.Str(roost.AttrScript)
	p.Shell, _ = f.ad.Str(roost.AttrShell)
	p.JoinOutput, _ = f.ad.Bool(roost.AttrJoinOutput)
	p.KeepEmpty, _ = f.ad.Bool(roost.AttrKeepOutput)
	if n, ok := f.ad.Int(roost.AttrUmask); ok {
		p.Umask = int(n) & 0o777
	}
	if f.err != nil {
		return nil, fmt.Errorf("%v: %w", a, f.err)
	}
	return p, nil
}

// valuer returns what looks up the names of one attempt.
func (j *job) valuer(host string, a roost.AttemptID) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		switch strings.ToLower(name) {
		case "taskindex":
			return strconv.Itoa(a.Task.Index), true
		case "jobid":
			return j.id(host).String(), true
		case "jobseq":
			return strconv.FormatUint(j.seq, 10), true
		case "attempt":
			return strconv.Itoa(int(a.Attempt)), true
		}
		for i := range j.columns {
			if strings.EqualFold(j.columns[i].name, name) {
				return j.columns[i].value(a.Task.Index), true
			}
		}
		return "", false
	}
}

// filler reads attributes of an ad and fills them in. The first mistake sticks.
type filler struct {
	ad    *classad.Ad
	value func(name string) (string, bool)
	err   error
}

func (f *filler) text(attr string) string {
	s, _ := f.ad.Str(attr)
	return f.fill(attr, s)
}

func (f *filler) list(attr string) []string {
	list, ok := f.ad.Strings(attr)
	if !ok || len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = f.fill(attr, s)
	}
	return out
}

func (f *filler) fill(attr, s string) string {
	out, err := expand(s, f.value)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", attr, err)
	}
	return out
}

// expand replaces $(Name) by its value and $$ by a dollar sign. Any other dollar sign is a mistake.
func expand(s string, value func(name string) (string, bool)) (string, error) {
	at := strings.IndexByte(s, '$')
	if at < 0 {
		return s, nil
	}
	var out strings.Builder
	for ; at >= 0; at = strings.IndexByte(s, '$') {
		out.WriteString(s[:at])
		s = s[at+1:]
		if rest, ok := strings.CutPrefix(s, "$"); ok {
			out.WriteByte('$')
			s = rest
			continue
		}
		name, rest, ok := strings.Cut(strings.TrimPrefix(s, "("), ")")
		if !ok || !strings.HasPrefix(s, "(") {
			return "", fmt.Errorf("%w: a $ has to be followed by another, or by (Name)", roost.Invalid)
		}
		v, ok := value(name)
		if !ok {
			return "", fmt.Errorf("%w: $(%s) names no column", roost.Invalid, name)
		}
		out.WriteString(v)
		s = rest
	}
	out.WriteString(s)
	return out.String(), nil
}

// checkTemplates reports a $ in an ad that cannot be filled in, at submit and not at launch.
func checkTemplates(ad *classad.Ad, columns []packed) error {
	f := filler{ad: ad, value: func(name string) (string, bool) {
		if builtin(strings.ToLower(name)) {
			return "", true
		}
		for i := range columns {
			if strings.EqualFold(columns[i].name, name) {
				return "", true
			}
		}
		return "", false
	}}
	for _, attr := range templates {
		f.text(attr)
		f.list(attr)
	}
	return f.err
}
