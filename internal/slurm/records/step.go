package records

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// BatchStep is the name of the step that a job's script is.
const BatchStep = "batch"

// RecordStepsOnly is the attribute of a job of srun or salloc, which has no script of its
// user's.
const RecordStepsOnly = "StepsOnly"

// Step is a step of a job that has started.
type Step struct {
	*Job
	StepName string                // "batch", or its number
	Name     string                // of its program
	Record   *scheddapi.StepRecord // nil: of the script
	State    string                // in Slurm's long words
}

// Steps are the steps of a job: its script, and then what srun ran in it, in order. A job
// that has not started has none.
func (j *Job) Steps() (list []*Step) {
	if j.GetStarted() == 0 || j.State == "PENDING" || j.IsArray && !j.IsTask {
		return nil
	}
	if !j.HasStepsOnly() {
		list = append(list, &Step{Job: j, StepName: BatchStep, Name: BatchStep, State: j.State})
	}
	all := j.JobStatus.GetSteps()
	if j.IsFinal() {
		all = j.GetExit().GetSteps()
	}
	for _, r := range all {
		s := &Step{Job: j, StepName: strconv.FormatUint(uint64(r.GetNumber()), 10), Name: r.GetName(), Record: r}
		s.State = s.state()
		list = append(list, s)
	}
	return list
}

// HasStepsOnly reports whether the job is one of srun or salloc.
func (j *Job) HasStepsOnly() bool {
	record, ok := j.Ad.Sub(roost.AttrSlurm)
	if !ok {
		return false
	}
	only, _ := record.Bool(RecordStepsOnly)
	return only
}

// state is the state of a step that srun ran.
func (s *Step) state() string {
	switch r := s.Record; {
	case r.GetEnd() == "cancelled":
		return "CANCELLED"
	case r.GetEnd() == "timeout":
		return "TIMEOUT"
	case r.GetEnd() == "node_fail":
		return "NODE_FAIL"
	case r.GetEnded() == 0 && !s.IsFinal():
		return cmp.Or(strings.TrimPrefix(s.Job.State, "COMPLETING"), "RUNNING")
	case r.GetEnded() == 0 && s.Job.State != "COMPLETED":
		return "CANCELLED"
	case r.GetCode() != 0 || r.GetSignal() != 0:
		return "FAILED"
	}
	return "COMPLETED"
}

// IsRunning reports whether the step has not ended.
func (s *Step) IsRunning() bool {
	return !s.IsFinal() && (s.Record == nil || s.Record.GetEnded() == 0)
}

// ID is the id of the step, as "12.0" or "12_3.batch".
func (s *Step) ID() string { return s.Job.ID() + "." + s.StepName }

// Tasks is how many tasks the step has.
func (s *Step) Tasks() int64 {
	if s.Record == nil {
		return 1
	}
	return int64(s.Record.GetTasks())
}

// CPUs is how many CPUs its tasks have together.
func (s *Step) CPUs() int64 {
	if s.Record == nil {
		return s.Job.CPUs()
	}
	return int64(s.Record.GetCpus())
}

// NodeCount is on how many machines it is.
func (s *Step) NodeCount() int {
	if s.Record == nil {
		return 1
	}
	return int(s.Record.GetNodes())
}

// NodeList names its machines.
func (s *Step) NodeList() string {
	if s.Record == nil {
		return firstHost(s.Job)
	}
	return s.Record.GetNodeList()
}

// Start is when the step began.
func (s *Step) Start() time.Time {
	if s.Record == nil {
		return s.Job.Start()
	}
	return time.Unix(0, s.Record.GetBegan())
}

// End is when it ended; zero: it runs.
func (s *Step) End() time.Time {
	switch {
	case s.Record != nil && s.Record.GetEnded() != 0:
		return time.Unix(0, s.Record.GetEnded())
	case s.IsFinal():
		return time.Unix(0, s.GetEnded())
	}
	return time.Time{}
}

// RunTime is for how long it has run.
func (s *Step) RunTime(now time.Time) time.Duration {
	if end := s.End(); !end.IsZero() {
		now = end
	}
	return max(now.Sub(s.Start()), 0)
}

// ExitCode is its exit code and signal.
func (s *Step) ExitCode() (code, signal int) {
	switch r := s.Record; {
	case r == nil:
		return s.Job.ExitCode()
	case r.GetEnded() == 0 && s.State == "CANCELLED":
		return 0, 15
	default:
		return int(r.GetCode()), int(r.GetSignal())
	}
}

// memory is its share of the job's memory, in bytes, by its share of the processors.
func (s *Step) memory() int64 {
	return s.GetRequest().GetMemory() * min(s.CPUs(), s.Job.CPUs()) / s.Job.CPUs()
}

// TRES lists what the step has.
func (s *Step) TRES() string {
	text := "cpu=" + decimal(s.CPUs())
	if memory := s.memory(); memory > 0 {
		text += ",mem=" + Memory(memory)
	}
	return text + ",node=" + strconv.Itoa(s.NodeCount())
}

// Show is all of the step, as scontrol show step prints it.
func (s *Step) Show(c *Clock, oneLine bool) string {
	cpus, tres, layout := s.CPUs(), s.TRES(), " Dist=Block"
	host := firstHost(s.Job) + ":0"
	if s.Record == nil {
		cpus, tres, layout, host = 0, "(null)", "", "(null):0"
	}
	lines := []string{
		fmt.Sprintf("StepId=%s UserId=%s StartTime=%s TimeLimit=UNLIMITED", s.ID(), adNumber(s.Job, roost.AttrOwnerUID),
			c.Time(s.Start(), "Unknown")),
		fmt.Sprintf("State=%s Partition=%s NodeList=%s", s.State, s.Partition(), orNull(s.NodeList())),
		fmt.Sprintf("Nodes=%d CPUs=%d Tasks=%d Name=%s Network=(null)", s.NodeCount(), cpus, s.Tasks(),
			visible(s.Name)),
		"TRES=" + tres, "ResvPorts=(null)", "CPUFreqReq=Default" + layout, "SrunHost:Pid=" + host,
	}
	if oneLine {
		return strings.Join(lines, " ") + "\n"
	}
	return strings.Join(lines, "\n   ") + "\n\n"
}

// StepFormat has the columns of squeue --steps.
const StepFormat = "%.15i %.8j %.9P %.8u %.9M %N"

// stepField is something that squeue can list about a step.
type stepField struct {
	letter byte
	title  string
	value  func(*Step, *Clock) string
}

func stepFields() []stepField {
	return []stepField{
		{'i', "STEPID", func(s *Step, _ *Clock) string { return s.ID() }},
		{'j', "NAME", func(s *Step, _ *Clock) string { return s.Name }},
		{'P', "PARTITION", func(s *Step, _ *Clock) string { return s.Partition() }},
		{'u', "USER", func(s *Step, _ *Clock) string { return s.GetOwner() }},
		{'U', "UID", func(s *Step, _ *Clock) string { return adNumber(s.Job, roost.AttrOwnerUID) }},
		{'M', "TIME", func(s *Step, c *Clock) string { return Duration(s.RunTime(c.Now)) }},
		{'N', "NODELIST", func(s *Step, _ *Clock) string { return s.NodeList() }},
		{'b', "TRES_PER_JOB", func(*Step, *Clock) string { return "(null)" }},
		{'A', "TASKS", func(s *Step, _ *Clock) string { return decimal(s.Tasks()) }},
		{'S', "START_TIME", func(s *Step, c *Clock) string { return c.Time(s.Start(), "N/A") }},
		{'l', "TIME_LIMIT", func(*Step, *Clock) string { return "UNLIMITED" }},
	}
}

// ParseStepFormat reads a format of squeue --steps. It returns the letters that stand for
// no field, too.
func ParseStepFormat(text string) (f Format, unknown []string) {
	all := stepFields()
	prefix, parts := SplitFormat(text)
	f = append(f, Column{Suffix: prefix})
	for _, p := range parts {
		i := slices.IndexFunc(all, func(g stepField) bool { return g.letter == p.Letter })
		switch {
		case i >= 0:
			f = append(f, Column{Field: &Field{Letter: p.Letter, Title: all[i].title}, Width: p.Width, Right: p.Right,
				Suffix: p.Suffix})
		case p.Raw != "": // of %%
			unknown = append(unknown, strings.Trim(string(rune(p.Letter)), "\x00"))
			f = append(f, Column{Suffix: "%" + p.Raw})
		}
	}
	return f, unknown
}

// StepLine is the line of a step.
func (f Format) StepLine(s *Step, c *Clock) string {
	all := stepFields()
	return f.line((*Column).fitValue, func(g *Field) string {
		for _, one := range all {
			if one.letter == g.Letter {
				return visible(one.value(s, c))
			}
		}
		return ""
	})
}
