package config

import (
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// SubmitFilter is the program of a site that looks at each submission and alteration. It
// stands for Slurm's job_submit plugins, PBS's queuejob hooks and HTCondor's job
// transforms.
type SubmitFilter struct {
	Program string        // absolute path; empty: none
	Timeout time.Duration // after which it is killed and the submission refused; 5 s by default
	// whose rights it has if the schedd has those of root; "nobody" by default
	User string
}

const (
	defaultFilterTime = 5 * time.Second
	defaultFilterUser = "nobody"
	maxFilterTime     = time.Minute
)

func (c *SubmitFilter) fillDefaults() {
	if c.Program == "" {
		return
	}
	if c.Timeout == 0 {
		c.Timeout = defaultFilterTime
	}
	if c.User == "" {
		c.User = defaultFilterUser
	}
}

func readSubmitFilter(s *blockReader, b *hclsyntax.Block, to *SubmitFilter) {
	c := s.innerBlock(b)
	c.readProgram("program", &to.Program)
	readTimeout(c, "5s", maxFilterTime, "users wait for it with each command", &to.Timeout)
	readUser(c, "nobody", &to.User)
	c.reportUnknown()
	if to.Program == "" {
		s.addProblem(b.TypeRange, `program = "/etc/roost/submit-filter"`, "submit_filter needs a program")
	}
}

func (w fileWriter) writeSubmitFilter(c SubmitFilter) {
	if c == (SubmitFilter{}) {
		return
	}
	b := w.writeBlock("submit_filter")
	b.writeText("program", c.Program)
	b.writeDuration("timeout", c.Timeout)
	b.writeText("user", c.User)
}
