package config

import (
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// JobHooks are programs of a site that a schedd runs at the start and the end of each
// attempt. They stand for OpenPBS's runjob and jobobit hooks, and for Slurm's
// PrologSlurmctld and EpilogSlurmctld.
type JobHooks struct {
	Start   string        // absolute path; empty: none
	End     string        // absolute path; empty: none
	Timeout time.Duration // after which one is killed; 10 s by default
	AtOnce  int           // the most of each kind that run at the same time; 16 by default
	// whose rights they have if the schedd has those of root; "nobody" by default
	User string
}

const (
	defaultHookTime   = 10 * time.Second
	maxHookTime       = 5 * time.Minute
	defaultHookUser   = "nobody"
	defaultHookAtOnce = 16
	maxHookAtOnce     = 1024
)

func (c *JobHooks) fillDefaults() {
	if c.Start+c.End == "" {
		return
	}
	setDefaultDuration(&c.Timeout, defaultHookTime)
	setDefault(&c.User, defaultHookUser)
	if c.AtOnce == 0 {
		c.AtOnce = defaultHookAtOnce
	}
}

func readJobHooks(s *blockReader, b *hclsyntax.Block, to *JobHooks) {
	c := s.innerBlock(b)
	c.readProgram("start", &to.Start)
	c.readProgram("end", &to.End)
	readTimeout(c, "10s", maxHookTime, "the claim of the task waits meanwhile", &to.Timeout)
	c.readCount("at_once", &to.AtOnce)
	readUser(c, "nobody", &to.User)
	c.reportUnknown()
	if to.Start+to.End == "" {
		s.addProblem(b.TypeRange, `start = "/etc/roost/job-start"`, "job_hooks needs a program: start, end, or both")
	}
	if to.AtOnce > maxHookAtOnce {
		s.addProblem(b.TypeRange, "each is a process on the submit node", "at_once: %d is more than %d", to.AtOnce,
			maxHookAtOnce)
	}
}

func (w fileWriter) writeJobHooks(c JobHooks) {
	if c == (JobHooks{}) {
		return
	}
	b := w.writeBlock("job_hooks")
	b.writeText("start", c.Start)
	b.writeText("end", c.End)
	b.writeDuration("timeout", c.Timeout)
	if c.AtOnce != 0 {
		b.writeNumber("at_once", c.AtOnce)
	}
	b.writeText("user", c.User)
}
