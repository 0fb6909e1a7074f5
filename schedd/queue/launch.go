package queue

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Program is what one attempt of one task is to run, with every $(Name) replaced.
type Program struct {
	Executable  string
	Arguments   []string
	Environment []string
	Script      string
	ScriptFile  string // in its place: see roost.AttrScriptFile
	Iwd         string
	In          string
	Out         string // empty: captured
	Err         string
	Join        bool
	Remove      string // of o and e: Out, or Err, goes when the task has succeeded
	Umask       uint32
	Walltime    time.Duration
	Bounds      Bounds
	Expected    time.Duration // that the attempt takes; 0: nobody knows
	Once        bool          // the task is not run again if it is interrupted and nothing of it was saved
	Interactive bool          // it runs on its user's terminal
	Login       bool          // and is a login shell
	Notice      time.Duration
	Transfer    string // "auto", "always", "never"
	Domain      string // the submit side's FileSystemDomain
	Inputs      []string
	Outputs     []string
	Name        string
	PBS         string // the task's id as PBS writes it
	Queue       string
	Account     string // the group
	Owner       string
	UID, GID    uint32
	Checkpoint  *Policy  // nil: none are taken
	Restore     *Image   // what the attempt goes on from
	RestoreKey  []byte   // of that image, secret
	Rank        int      // of its task in its gang
	Peers       []string // the nodes of its gang by rank; none: it is of no gang
	Hosts       []Host   // of its job's processes, in the order of the file of nodes; none: it has no such file
	OfPBS       bool     // its job came by qsub
	Follows     bool     // it holds what it has for the first of its gang
}

// Host is so many processes that a task of a job is to have on a node.
type Host struct {
	Attempt   roost.AttemptID
	Node      string
	Processes int
}

// Launch materialises the program of an attempt.
func (q *Queue) Launch(a roost.AttemptID) (Program, error) {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil || a.Task.Index >= len(j.state) {
		return Program{}, fmt.Errorf("task %v: %w", a.Task, roost.NotFound)
	}
	m, err := q.materialiser(j, a)
	if err != nil {
		return Program{}, err
	}
	p := Program{
		Executable: m.text(roost.AttrCmd), Arguments: m.list(roost.AttrArguments), Environment: m.list(roost.AttrEnvironment),
		Iwd: m.text(roost.AttrIwd), In: m.text(roost.AttrIn), Out: m.text(roost.AttrOut), Err: m.text(roost.AttrErr),
		Inputs: m.list(roost.AttrTransferIn), Outputs: m.list(roost.AttrTransferOut), Walltime: j.class(a.Task.Index).plan.walltime, Bounds: j.plan.bounds,
		Expected: q.predict(j.class(a.Task.Index).request), Once: !j.plan.rerunnable, Notice: j.plan.notice, Transfer: j.plan.transfer, Domain: j.plan.domain, Name: j.plan.name,
		OfPBS: j.plan.pbs, Owner: j.sub.Owner, UID: j.sub.UID, GID: j.sub.GID,
	}
	p.Script, _ = m.ad.Str(roost.AttrScript)
	p.ScriptFile, _ = m.ad.Str(roost.AttrScriptFile)
	if p.Script != "" || p.ScriptFile != "" {
		if p.Executable = m.text(roost.AttrShell); p.Executable == "" && !strings.HasPrefix(p.Script, "#!") { // which says what runs it
			p.Executable = "/bin/sh"
		}
	}
	p.PBS, p.Queue, p.Account = m.pbsID(), cmp.Or(j.plan.queue, roost.UsualQueue), j.plan.group
	if p.Interactive = j.plan.interactive; p.Interactive {
		_, p.Login = m.ad.Lookup(roost.AttrShell)
	}
	p.Rank, p.Peers = q.peers(j, a.Task.Index)
	p.Hosts = q.hosts(j, a)
	q.continued(j, a, &p)
	p.Join, _ = m.ad.Bool(roost.AttrJoinOutput)
	p.Remove, _ = m.ad.Str(roost.AttrRemoveOutput)
	p.Umask = 0o022
	if n, ok := m.ad.Int(roost.AttrUmask); ok {
		p.Umask = uint32(n) & 0o777
	}
	if j.follows(a.Task.Index) {
		p.follow()
	}
	return p, m.err
}

// follow makes of a job's program what a task runs that holds its part of a machine for the leader: nothing, for as long as that may run. Its walltime
// is there to say when the machine is free again; it is the leader's that ends the job.
func (p *Program) follow() {
	p.Follows, p.Interactive, p.Executable, p.Arguments, p.Script = true, false, "/bin/sleep", []string{"infinity"}, ""
	p.ScriptFile = ""
	p.In, p.Out, p.Err, p.Join, p.Inputs = "", "/dev/null", "/dev/null", false, nil
	if p.Walltime > 0 {
		p.Walltime += p.Notice + followSlack
	}
}

// followSlack is by how much those that follow a leader may outlive its walltime and notice.
const followSlack = time.Minute

// Script is one that the schedd keeps for a user.
type Script struct {
	UID  uint32
	Name string
}

// Scripts lists those that jobs of the queue name.
func (q *Queue) Scripts() (list []Script) {
	for _, j := range q.jobs {
		if j.plan.scriptFile != "" {
			list = append(list, Script{j.sub.UID, j.plan.scriptFile})
		}
	}
	return list
}

// materialiser replaces $(Name) in the attributes of one task.
type materialiser struct {
	ad  *classad.Ad
	job *job
	a   roost.AttemptID
	err error
}

func (q *Queue) materialiser(j *job, a roost.AttemptID) (*materialiser, error) {
	if before := j.class(a.Task.Index).past; before != nil {
		if before.parsed == nil {
			ad, err := classad.Parse(before.ad)
			if err != nil {
				return nil, fmt.Errorf("ad of job %v: %w", a.Task.Job, err)
			}
			before.parsed = ad
		}
		return &materialiser{ad: before.parsed, job: j, a: a}, nil
	}
	if j.ad == nil { // parsed when it is first run, and kept while it is in the queue
		ad, err := classad.Parse(j.sub.Ad)
		if err != nil {
			return nil, fmt.Errorf("ad of job %v: %w", a.Task.Job, err)
		}
		j.ad = ad
	}
	return &materialiser{ad: j.ad, job: j, a: a}, nil
}

func (m *materialiser) text(name string) string {
	s, _ := m.ad.Str(name)
	return m.expand(s)
}

func (m *materialiser) list(name string) []string {
	list, _ := m.ad.Strings(name)
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = m.expand(s)
	}
	return out
}

// expand replaces $(Name) and $$.
func (m *materialiser) expand(s string) string {
	if strings.IndexByte(s, '$') < 0 {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		end := strings.IndexByte(s[i:], ')')
		switch {
		case s[i+1] == '$':
			b.WriteByte('$')
			s = s[i+2:]
		case s[i+1] == '(' && end > 0:
			b.WriteString(m.value(s[i+2 : i+end]))
			s = s[i+end+1:]
		default:
			b.WriteByte('$')
			s = s[i+1:]
		}
	}
}

func (m *materialiser) value(name string) string {
	switch name {
	case "TaskIndex":
		return strconv.Itoa(m.a.Task.Index / m.job.stride())
	case "JobId":
		return m.a.Task.Job.String()
	case "JobSeq":
		return strconv.FormatUint(m.a.Task.Job.Seq, 10)
	case "JobHost":
		return m.a.Task.Job.Host
	case "Attempt":
		return strconv.Itoa(int(m.a.Attempt))
	}
	if c := m.job.columns[name]; c != nil {
		return c.at(m.a.Task.Index)
	}
	if name == "ArrayIndex" && m.job.indexes != nil {
		return strconv.Itoa(m.job.names().index(m.a.Task.Index))
	}
	if m.err == nil {
		m.err = fmt.Errorf("task %s: %w: $(%s) stands for nothing: the job has no such column", m.job.names().Task(m.a.Task), roost.Invalid, name)
	}
	return ""
}

// pbsID is the id of the task as PBS writes it: that of its job, with its index in the array if that is one.
func (m *materialiser) pbsID() string {
	id := m.a.Task
	if !m.job.plan.array && (len(m.job.state) == 1 || m.job.plan.led) {
		return id.Job.String()
	}
	id.Index = m.job.names().index(id.Index)
	return id.String()
}

// Output says where the standard streams of a task go, and on whose behalf: for those who want to read them.
type Output struct {
	Out, Err string // as in Program
	Iwd      string
	Join     bool
	UID, GID uint32
	Owner    string
	Attempt  roost.AttemptID // the last one; attempt 0 when there was none
	State    roost.TaskState
	Node     string
	Running  bool // its processes may be writing

	Interactive bool     // it has a terminal
	Command     []string // that runs there; none: a login shell
}

// OutputOf tells where the streams of a task are.
func (q *Queue) OutputOf(t roost.TaskID) (Output, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return Output{}, fmt.Errorf("task %v: %w", t, roost.NotFound)
	}
	a := roost.AttemptID{Task: t}
	o := Output{State: j.state[t.Index]}
	if r := j.book.at(t.Index); r != nil {
		a.Attempt, o.Node, o.Running = r.attempt, r.node, r.live
	}
	p, err := q.Launch(a)
	o.Out, o.Err, o.Iwd, o.Join, o.UID, o.GID, o.Owner, o.Attempt = p.Out, p.Err, p.Iwd, p.Join, p.UID, p.GID, p.Owner, a
	if o.Interactive = p.Interactive; o.Interactive && !p.Login {
		o.Command = append([]string{p.Executable}, p.Arguments...)
	}
	return o, err
}
