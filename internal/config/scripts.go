package config

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Scripts are programs of the administrator's that a startd runs around each attempt, with its own rights (OpenPBS Administrator's Guide, "Prologue and
// epilogue").
type Scripts struct {
	Prologue string        // absolute path; empty: none
	Epilogue string        // likewise
	Within   time.Duration // that each may take
}

// defaultScriptTime is OpenPBS's.
const defaultScriptTime = 30 * time.Second

func (c *Scripts) fill() {
	if c.Within == 0 && c.Prologue+c.Epilogue != "" {
		c.Within = defaultScriptTime
	}
}

func (s *section) readScripts(b *hclsyntax.Block, to *Scripts) {
	c := s.inside(b)
	c.program("prologue", &to.Prologue)
	c.program("epilogue", &to.Epilogue)
	c.duration("timeout", `"30s"`, &to.Within)
	c.done()
}

// program reads the path of a program: where it would be looked for otherwise depends on who looks.
func (s *section) program(name string, to *string) {
	s.set(name, `"/etc/roost/`+name+`"`, func(text string) error {
		if !filepath.IsAbs(text) || filepath.Clean(text) != text {
			return fmt.Errorf("%q is no absolute path", text)
		}
		*to = text
		return nil
	})
}

func (w writer) scripts(c Scripts) {
	if c == (Scripts{}) {
		return
	}
	b := w.block("scripts")
	b.text("prologue", c.Prologue)
	b.text("epilogue", c.Epilogue)
	b.duration("timeout", c.Within)
}
