package config

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// AttemptScripts are the administrator's programs that a startd runs before and after
// each attempt. They have the startd's own rights unless User says otherwise (OpenPBS
// Administrator's Guide, "Prologue and epilogue").
type AttemptScripts struct {
	Prologue string        // absolute path; empty: none
	Epilogue string        // absolute path; empty: none
	Within   time.Duration // time limit of each
	// whose rights they have: ScriptUserJob, or the name of a user; empty: those of the
	// startd
	User string
}

// ScriptUserJob stands for the user of the job, in AttemptScripts.User.
const ScriptUserJob = "job"

// maxScriptTime bounds the time limit of a script, during which a claim does nothing.
const maxScriptTime = time.Hour

// defaultScriptTime is OpenPBS's default.
const defaultScriptTime = 30 * time.Second

func (c *AttemptScripts) fillDefaults() {
	if c.Within == 0 && c.Prologue+c.Epilogue != "" {
		c.Within = defaultScriptTime
	}
}

func (s *blockReader) readScripts(b *hclsyntax.Block, to *AttemptScripts) {
	c := s.innerBlock(b)
	c.readProgram("prologue", &to.Prologue)
	c.readProgram("epilogue", &to.Epilogue)
	readTimeout(c, "30s", maxScriptTime, "nothing else runs on the claim meanwhile", &to.Within)
	readUser(c, "job", &to.User)
	c.reportUnknown()
}

// readProgram reads the absolute path of a program. A relative path would depend on the
// environment of the process.
func (s *blockReader) readProgram(name string, to *string) {
	s.readSetting(name, `"/etc/roost/`+name+`"`, func(text string) error {
		if !filepath.IsAbs(text) || filepath.Clean(text) != text {
			return fmt.Errorf("%q is no absolute path", text)
		}
		*to = text
		return nil
	})
}

// readTimeout reads a time limit of programs, which has a highest value for a reason.
func readTimeout(s *blockReader, example string, highest time.Duration, why string, to *time.Duration) {
	s.readSetting("timeout", strconv.Quote(example), func(text string) (err error) {
		if *to, err = roost.ParseDuration(text); err != nil {
			return err
		}
		if *to <= 0 || *to > highest {
			return fmt.Errorf("%v is not between 0s and %v: %s", *to, highest, why)
		}
		return nil
	})
}

// readUser reads the name of a user, who need not exist here and now.
func readUser(s *blockReader, example string, to *string) {
	s.readSetting("user", strconv.Quote(example), func(text string) error {
		if text == "" {
			return fmt.Errorf("it names no user")
		}
		*to = text
		return nil
	})
}

func (w fileWriter) writeScripts(c AttemptScripts) {
	if c == (AttemptScripts{}) {
		return
	}
	b := w.writeBlock("scripts")
	b.writeText("prologue", c.Prologue)
	b.writeText("epilogue", c.Epilogue)
	b.writeDuration("timeout", c.Within)
	b.writeText("user", c.User)
}
