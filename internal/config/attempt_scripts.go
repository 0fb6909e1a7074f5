package config

import (
	"fmt"
	"path/filepath"
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
	User     string        // whose rights they have; empty: those of the startd
}

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
	c.readSetting("timeout", `"30s"`, func(text string) (err error) {
		if to.Within, err = roost.ParseDuration(text); err != nil {
			return err
		}
		if to.Within <= 0 || to.Within > maxScriptTime {
			return fmt.Errorf("%v is not within 1s and %v: nothing else runs on the claim meanwhile", to.Within,
				maxScriptTime)
		}
		return nil
	})
	c.readText("user", &to.User)
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
